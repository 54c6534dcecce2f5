"""Answers compared with keys: how many are right, in multiple choice and in yes or no."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stats.arrays import FloatArray, check_lengths, dense_codes, ratio
from stats.proportions import rate
from stats.resampling import bootstrap, distinct_rows
from stats.results import Estimate


def shown_as(label: str, labels: Sequence[str], *, shift: int = 0, order: Sequence[str] | None = None) -> str:
    """The option that stood behind a label: of ``order``, or of the rotation where place i shows option i + shift.

    Raises ValueError for a label that is not one of ``labels``.
    """
    place = list(labels).index(label)
    return order[place] if order is not None else labels[(place + shift) % len(labels)]


@dataclass(frozen=True, slots=True)
class ChoiceScores:
    """``vanilla``: right in the pass without rotation. ``circular``: right in every rotation (None: none were sent)."""

    vanilla: Estimate
    circular: Estimate | None
    chance: float | None  # expected of a vanilla pass that draws an option for each sample


def choice_scores(
    *, vanilla: npt.ArrayLike, circular: npt.ArrayLike | None, options: npt.ArrayLike, cluster: npt.ArrayLike
) -> ChoiceScores:
    """VanillaEval and CircularEval (MMBench, 4.1) of n samples, each an array of shape (n,).

    ``vanilla`` and ``circular`` are 0 or 1, ``options`` the number of options of each sample, ``cluster`` what samples
    share. Intervals as ``proportions.rate``. A text without an option is not right. Raises LengthMismatch and
    InvalidOutcome.
    """
    number = np.asarray(options, dtype=np.float64)
    check_lengths(vanilla=np.asarray(vanilla), options=number)
    return ChoiceScores(
        vanilla=rate(hits=vanilla, cluster=cluster),
        circular=None if circular is None else rate(hits=circular, cluster=cluster),
        chance=float((1 / number).mean()) if len(number) else None,
    )


# ---- Yes or no questions: what a text says, and accuracy, precision, recall, F1 and the share of yes ----


NO_YES = "neither the key nor the answers hold a yes"


@dataclass(frozen=True, slots=True)
class YesNoScores:
    """``precision`` and ``recall`` are those of yes; ``yes_ratio`` is the share of all answers that say yes."""

    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    yes_ratio: Estimate


def yes_no_scores(
    *, key: npt.ArrayLike, said: npt.ArrayLike, cluster: npt.ArrayLike, rng: np.random.Generator, replicates: int = 1000
) -> YesNoScores:
    """The measures of POPE (arXiv 2305.10355) for n questions; every array has shape (n,).

    ``key`` is 1 for yes and 0 for no; ``said`` the same, or -1 for an answer that says neither: it is not right, and a
    yes that it missed counts against recall. Shares have the interval of ``proportions.rate``; F1 that of the cluster
    bootstrap. Raises LengthMismatch.
    """
    true, told, groups = np.asarray(key), np.asarray(said), np.asarray(cluster)
    check_lengths(key=true, said=told, cluster=groups)
    yes = told == 1
    codes, clusters = dense_codes(groups)
    hit, wrong, missed = yes & (true == 1), yes & (true == 0), ~yes & (true == 1)
    table = np.stack([np.bincount(codes, weights=kind, minlength=clusters) for kind in (hit, wrong, missed)], axis=1)
    rows, times = distinct_rows(table.astype(np.int64))

    def f1(weights: FloatArray) -> FloatArray:
        counts = weights @ rows
        return ratio(2 * counts[:, 0], 2 * counts[:, 0] + counts[:, 1] + counts[:, 2])[:, None]

    return YesNoScores(
        accuracy=rate(hits=told == true, cluster=groups),
        precision=rate(hits=hit[yes], cluster=groups[yes]),
        recall=rate(hits=yes[true == 1], cluster=groups[true == 1]),
        f1=bootstrap(times=times, statistic=f1, n=len(true), rng=rng, replicates=replicates, undefined=NO_YES)[0],
        yes_ratio=rate(hits=yes, cluster=groups),
    )


# ---- what an answer says ----


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
    said = _THOUGHT.sub("", text).strip()
    bare = said.strip(" \t\r\n*_`\"'“”‘’()[]{}.,:;!#$")
    for label in labels:
        if bare == label or bare.casefold() == label.casefold():
            return label
    one_of = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    declared = set(re.findall(rf"(?i:{_SAYS})[*_`\"'(\[]*({one_of})(?![\w'’])(?!\s+[a-z])", said))
    if len(declared) == 1:
        return str(declared.pop())
    found = {
        match["label"]
        for match in re.finditer(rf"(?<![\w'’])(?P<before>[(\[*_`\"]*)(?P<label>{one_of})(?![\w'’])", said)
        if match["label"] not in _WORDS or _is_marked(said, match, one_of)
    }
    return found.pop() if len(found) == 1 else None


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
    said = _THOUGHT.sub("", text).strip(" \t\r\n*_`\"'“”‘’([{#>-")
    found = [match[1].lower() for match in _WORD.finditer(said)]
    first = re.match(r"(?:yes|no)\b(?!\s*(?:and|or|/)\s*(?:yes|no)\b)", said, re.IGNORECASE)
    if first and found and found[0] == first[0].lower():
        return found[0] == "yes"
    return found[0] == "yes" if len(set(found)) == 1 else None
