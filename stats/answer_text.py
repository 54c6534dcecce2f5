"""What an answer says in words: the option it names, or yes or no. Without numpy, so that it loads at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

_THOUGHT = re.compile(r"^\s*<think(?:ing)?>.*</think(?:ing)?>", re.DOTALL)
_WORDS = frozenset({"A", "I"})  # labels that are words of English, too
_SAYS = r"\b(?:answer|option|choice|correct(?:\s+(?:answer|option|choice))?)\s*(?:is|:|：|would\s+be)*\s*(?:option\s+)?"
_WORD = re.compile(r"\b(yes|no)\b(?!\s+(?:idea|way|doubt|matter|need)\b)", re.IGNORECASE)


def option_in(text: str, labels: Sequence[str]) -> str | None:
    """The label that a text names, as the first step of MMBench's extraction reads it; None where it names none.

    A label counts where it stands alone, with or without marks round it: ``C``, ``C.``, ``C)``, ``(C)``, ``**C**``
    (MMBench, arXiv 2307.06281, 4.2, step 1). In a sentence an ``A`` without such a mark is the article and an ``I`` the
    pronoun. Two different labels name none, unless one stands after "answer", "option" or the like and no other does.
    What an option *says* is not read here: that is the next step's, and nothing is guessed.
    """
    answer = _THOUGHT.sub("", text).strip()
    bare = answer.strip(" \t\r\n*_`\"'“”‘’()[]{}.,:;!#$")
    for label in labels:
        if bare == label or bare.casefold() == label.casefold():
            return label
    one_of = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    declared = set(re.findall(rf"(?i:{_SAYS})[*_`\"'(\[]*({one_of})(?![\w'’])(?!\s+[a-z])", answer))
    if len(declared) == 1:
        return str(declared.pop())
    labels_found = {
        match["label"]
        for match in re.finditer(rf"(?<![\w'’])(?P<before>[(\[*_`\"]*)(?P<label>{one_of})(?![\w'’])", answer)
        if match["label"] not in _WORDS or _is_marked(answer, match, one_of)
    }
    return labels_found.pop() if len(labels_found) == 1 else None


def _is_marked(text: str, match: re.Match[str], one_of: str) -> bool:
    """Whether an A or an I is written as a label: with a mark, at the end, or beside another label ("A and B")."""
    before, behind = text[: match.start()], text[match.end() :]
    if match["before"] or not behind or behind[0] in ".):]*`：" or (behind[0] == "," and not before):
        return True
    joined = r"\s*(?:and|or|nor|[,/&])\s*"
    return bool(re.match(rf"{joined}(?:{one_of})\b", behind) or re.search(rf"\b(?:{one_of}){joined}$", before))


def answer_in(text: str) -> bool | None:
    """True for yes, False for no, None where a text says neither or both.

    The first word decides ("Yes, there is no doubt"); else the only one of the two that occurs. POPE's own script
    takes whatever holds no "no" or "not" for a yes, which reads an evasion as an answer; here it counts as none.
    """
    answer = _THOUGHT.sub("", text).strip(" \t\r\n*_`\"'“”‘’([{#>-")
    words = [match[1].lower() for match in _WORD.finditer(answer)]
    first = re.match(r"(?:yes|no)\b(?!\s*(?:and|or|/)\s*(?:yes|no)\b)", answer, re.IGNORECASE)
    if first and words and words[0] == first[0].lower():
        return words[0] == "yes"
    return words[0] == "yes" if len(set(words)) == 1 else None


def pope_answer(text: str) -> bool:
    """Yes or no as POPE's own script reads it (arXiv 2305.10355, evaluate.py): no, if the first sentence holds the word
    no or not; else yes, whatever it says.
    """
    words = text.split(".")[0].replace(",", "").split(" ")
    return not {"No", "no", "not"} & set(words)
