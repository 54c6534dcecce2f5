"""From a judge's reply to a verdict. Pure functions: text in, verdict out, nothing guessed.

Only the judge's own reply is ever read here, never the material it was shown. A verdict is an anchored line; whatever
else a reply says is analysis. What carries no verdict is null with a status and a reason in our own words: the reply's
words may quote hidden criteria.
"""

from judging.verdicts.choices import NONE_OF_THEM, option, yes_or_no
from judging.verdicts.pairs import pair_letter, pair_vote
from judging.verdicts.rankings import ranking
from judging.verdicts.reply import Found, NoVerdict, Place, Reading, Reply, Status, Token, read
from judging.verdicts.scores import components, score, weighted_score

__all__ = [
    "NONE_OF_THEM",
    "Found",
    "NoVerdict",
    "Place",
    "Reading",
    "Reply",
    "Status",
    "Token",
    "components",
    "option",
    "pair_letter",
    "pair_vote",
    "ranking",
    "read",
    "score",
    "weighted_score",
    "yes_or_no",
]
