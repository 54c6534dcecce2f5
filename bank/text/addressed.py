"""Answers that speak to a judge: the words by which a text turns to whoever grades it.

Such an answer is no proof of anything. Where many do, a curator should read some: a judge that obeys an answer can be
asked about what it was shown.
"""

import re

# Stems of the words for judges, criteria and votes, and of orders to them, in the languages that judges read most.
WORDS = (
    "judge|grader|grading|evaluator|criteri|rubric|guideline|vote for|verdict|prefer this answer|this answer is better"
    "|ignore (?:all |the |any )?(?:previous|above|other)|score (?:of )?(?:5|10|ten|five)|full marks|answer key"
    "|bewert|richter|kriteri|stimme für|abstimm"
    "|évaluat|critère|barème|votez|"
    "evaluador|criterio|vota por|puntuaci"
    "|giudic|valutator|"
    "критери|судь[яеию]|оценщик|голосу"
    "|评委|评判|评分|标准答案|投票|裁判|評価基準|審査|採点|심사|채점|평가 기준"
)
ADDRESSED = re.compile("|".join(filter(None, WORDS.split("|"))), re.IGNORECASE)


def is_addressed(text: str) -> bool:
    """Whether a text speaks of the judge, criteria or votes."""
    return ADDRESSED.search(text) is not None
