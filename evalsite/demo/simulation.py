"""Verdicts of simulated people and judges on the answers of the demo benchmark. The same seed gives the same verdicts.

``data/quality.json`` says for every sample how good each model's answer really is, 0 to 10, written by hand with the
answers. Everybody sees those numbers through noise of their own and has a limit below which two answers are a tie; some
lean to longer answers or, among judges, to the answer shown first. People work in sittings. Scores go from 1 to 5, half
the quality and rounded.

Pairs have two rounds. The first is complete: five labels for each of 90 pairs of all 32 samples. The second has begun:
the pairs that are left of ten samples. Three judges decided all pairs, each in both orders.
"""

import itertools
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("data")
SEED = 20261110
ZONE = timezone(timedelta(hours=1))
STILL_OPEN = 10  # samples whose pairs, rankings and reviews are still being labelled
FIRST_ROUND = 90  # pairs
ALIKE = 1  # difference of quality up to which two answers can be equally good
PAIRS, MORE_PAIRS = "Everyday scenes, round 1", "Everyday scenes, round 2"
SCORES, RANKINGS = "Everyday scenes, scores", "Everyday scenes, rankings"

Row = dict[str, Any]
Pair = tuple[str, str, str]  # sample, first model, second model


@dataclass(frozen=True, slots=True)
class Mind:
    """Noise and tie limit on the scale of the quality, and what moves a verdict beside it: the points that an answer
    gains when it is twice as long as the other, and when it is shown first.
    """

    name: str
    noise: float
    tie_limit: float
    per_doubling: float = 0.0
    for_first: float = 0.0
    per_thousand: float = 0.0  # US dollars that its verdicts would cost, longer answers more


@dataclass(frozen=True, slots=True)
class Person(Mind):
    words_a_second: float = 4.0
    hour: int = 18  # when a sitting begins


def _lines(name: str) -> list[Row]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


PEOPLE = tuple(Person(**values) for values in _lines("people.jsonl"))
JUDGES = tuple(Mind(**values) for values in _lines("judges.jsonl"))
STEADY = JUDGES[0]
JURY = "Jury of three"
SETTINGS = {"order": "both", "criteria": False, "context": "image", "reasoning": "first"}
# What the steady judge writes, by how far apart it saw the two answers.
CLEAR = "Answer {better} does what was asked and stays with the picture. Answer {worse} gets the main point wrong."
CLOSE = "Both answer the question. Answer {better} is more exact, answer {worse} leaves something out."
EVEN = "Both answers say the same, in other words, and both follow from the picture."


@cache
def models() -> list[str]:
    return [model["name"] for model in _lines("models.jsonl")]


@cache
def quality() -> dict[str, dict[str, int]]:
    """By sample and model, 0 to 10."""
    marks: dict[str, dict[str, int]] = json.loads((FOLDER / "quality.json").read_text(encoding="utf-8"))
    return marks


@cache
def closed_questions() -> set[str]:
    """Samples with one right answer, on which two answers can both be right."""
    return {row["key"] for row in _lines("samples.jsonl") if row["question_type"] == "closed-ended"}


@cache
def lengths() -> dict[tuple[str, str], int]:
    """Words of each answer, by sample and model."""
    return {(row["sample"], row["model"]): len(row["text"].split()) for row in _lines("responses.jsonl")}


@cache
def mean_length() -> float:
    return sum(lengths().values()) / len(lengths())


@cache
def comments() -> dict[tuple[str, ...], str]:
    """By sample, both models and the choice that it fits; the first person who chooses so says it."""
    return {(row["sample"], *row["responses"], row["choice"]): row["comment"] for row in _lines("comments.jsonl")}


def open_samples() -> list[str]:
    return sorted(random.Random(f"{SEED} open").sample(sorted(quality()), STILL_OPEN))


def all_pairs() -> list[Pair]:
    return [(key, a, b) for key in quality() for a, b in itertools.combinations(models(), 2)]


def first_round() -> list[Pair]:
    """One pair of each sample that is still open, and of the others as many as are left, spread evenly."""
    rng = random.Random(f"{SEED} round 1")
    by_sample: dict[str, list[Pair]] = {}
    for pair in rng.sample(all_pairs(), len(all_pairs())):
        by_sample.setdefault(pair[0], []).append(pair)
    chosen = [by_sample.pop(key)[0] for key in open_samples()]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*by_sample.values()))
    chosen += [pair for pair in turns if pair is not None][: FIRST_ROUND - len(chosen)]
    return chosen


def second_round() -> list[Pair]:
    known, still_open = set(first_round()), set(open_samples())
    return [pair for pair in all_pairs() if pair[0] in still_open and pair not in known]


def labels() -> list[Row]:
    """Labels of pairs, scores and rankings, each with its campaign, oldest first."""
    return [
        *_of_pairs(PAIRS, first_round(), PEOPLE, share=1.0, day=9),
        *_of_pairs(MORE_PAIRS, second_round(), PEOPLE[:3], share=0.45, day=17),
        *_of_answers(SCORES, "score", sorted(quality()), PEOPLE[:4], share=1.0),
        *_of_answers(RANKINGS, "batch", open_samples(), PEOPLE[1:3], share=0.6),
    ]


def judgments() -> Iterator[Row]:
    """Every judge on every pair, in both orders."""
    for judge in JUDGES:
        rng = random.Random(f"{SEED} {judge.name}")
        for key, *pair in all_pairs():
            for shown in (pair, pair[::-1]):
                apart = _apart(rng, judge, key, shown[0], shown[1])
                choice = (
                    "tie" if abs(apart) <= judge.tie_limit else "first" if (apart > 0) == (shown == pair) else "second"
                )
                row: Row = {"kind": "pair", "protocol": "pair", "sample": key, "responses": pair, "order": shown}
                row |= {"judge": judge.name, "simulated": True, "settings": SETTINGS, "choice": choice}
                words = (lengths()[key, shown[0]] + lengths()[key, shown[1]]) / (2 * mean_length())
                row["cost"] = round(judge.per_thousand / 1000 * words, 6)
                yield row | ({"analysis": _analysis(apart, judge)} if judge is STEADY else {})


def review(rng: random.Random, row: Row) -> Row:
    """A person's review of a verdict of the steady judge, ``sample, first, second, choice``: whether they agree,
    a grade from 1 to 5 for the analysis, and whether it says what is not there.
    """
    marks = quality()[row["sample"]]
    apart = marks[row["first"]] - marks[row["second"]]
    right = {"first": apart > 0, "second": apart < 0}.get(row["choice"], abs(apart) <= ALIKE + 1)
    agree = rng.random() < (0.93 if right else 0.25)
    return {
        "agree": agree,
        "grade": rng.choice((3, 4, 4, 5) if agree else (1, 2, 2, 3)),
        "hallucination": rng.random() < 0.1,
    }


def _apart(rng: random.Random, mind: Mind, key: str, first: str, second: str) -> float:
    """How much better the answer shown first looks to this mind."""
    words = lengths()
    longer = math.log2((words[key, first] + 5) / (words[key, second] + 5))
    leaning = mind.per_doubling * longer + mind.for_first
    return quality()[key][first] - quality()[key][second] + leaning + rng.gauss(0, mind.noise)


def _analysis(apart: float, judge: Mind) -> str:
    if abs(apart) <= judge.tie_limit:
        return EVEN
    better, worse = (1, 2) if apart > 0 else (2, 1)
    return (CLEAR if abs(apart) > 3 else CLOSE).format(better=better, worse=worse)


def _verdict(rng: random.Random, who: Person, key: str, first: str, second: str) -> Row:
    """This person's verdict on a pair, perhaps that it cannot be decided."""
    marks = quality()[key][first], quality()[key][second]
    apart = _apart(rng, who, key, first, second)
    alike = abs(marks[0] - marks[1]) <= ALIKE and abs(apart) <= who.tie_limit + 1
    if key in closed_questions() and alike and (min(marks) >= 8 or max(marks) <= 4) and rng.random() < 0.5:
        return {"choice": "undecided", "situation": 1}
    if max(marks) <= 3 and abs(apart) <= who.tie_limit + 0.8 and rng.random() < 0.8:
        return {"choice": "undecided", "situation": 2}
    if abs(apart) <= who.tie_limit:
        return {"choice": "tie"}
    return {"choice": "first" if apart > 0 else "second"}


def _of_pairs(campaign: str, pairs: Sequence[Pair], people: Sequence[Person], *, share: float, day: int) -> list[Row]:
    """Each person takes this share of the pairs, a third of it in each of three sittings."""
    rows: list[Row] = []
    unsaid = dict(comments())
    for who in people:
        rng = random.Random(f"{SEED} {campaign} {who.name}")
        mine = rng.sample(pairs, round(share * len(pairs)))
        for number in range(3):
            said = _on_pairs(rng, who, mine[number::3], unsaid)
            rows += _sitting(rng, who, campaign, day + 2 * number, said)
    return sorted(rows, key=lambda row: str(row["at"]))


def _on_pairs(rng: random.Random, who: Person, pairs: Sequence[Pair], unsaid: dict[Any, str]) -> Iterator[Row]:
    """Verdicts on these pairs, one after the other, with the seconds that each takes."""
    for key, first, second in pairs:
        words = lengths()[key, first] + lengths()[key, second]
        row: Row = {"kind": "pair", "protocol": "pairwise-criteria", "sample": key, "responses": [first, second]}
        row["seconds"] = _seconds(rng, 12 + words / who.words_a_second, 15, 140)
        row |= _verdict(rng, who, key, first, second)
        if remark := unsaid.pop((key, first, second, row["choice"]), ""):
            row["comment"] = remark
        yield row


def _of_answers(campaign: str, kind: str, keys: Sequence[str], people: Sequence[Person], *, share: float) -> list[Row]:
    """Scores of single answers, or rankings of all: each person takes this share of the samples, in one sitting."""
    rows: list[Row] = []
    for day, who in enumerate(people, start=12):
        rng = random.Random(f"{SEED} {campaign} {who.name}")
        rows += _sitting(rng, who, campaign, day, _on_answers(rng, who, kind, keys, share))
    return rows


def _on_answers(rng: random.Random, who: Person, kind: str, keys: Sequence[str], share: float) -> Iterator[Row]:
    """Scores or rankings, one after the other, with the seconds that each takes."""
    for key in rng.sample(keys, round(share * len(keys))):
        seen = {model: quality()[key][model] + rng.gauss(0, who.noise) for model in models()}
        best_first = sorted(models(), key=lambda model: -seen[model])
        verdicts: list[Row] = [{"responses": models(), "ranking": [[model] for model in best_first]}]
        if kind == "score":
            scores = {model: min(5, max(1, round(seen[model] / 2))) for model in models()}
            verdicts = [{"responses": [model], "score": score} for model, score in scores.items()]
        for verdict in verdicts:
            seconds = _seconds(rng, 20 if kind == "score" else 60, 8, 200)
            yield {"kind": kind, "protocol": kind, "sample": key, "seconds": seconds} | verdict


def _sitting(rng: random.Random, who: Person, campaign: str, day: int, verdicts: Iterator[Row]) -> Iterator[Row]:
    """This person's labels of one sitting, of verdicts that are made as they are asked for."""
    now = datetime(2026, 11, day, who.hour, rng.randrange(60), rng.randrange(60), tzinfo=ZONE)
    for row in verdicts:
        now += timedelta(seconds=row["seconds"])
        stamp = {"annotator": who.name, "simulated": True, "campaign": campaign}
        yield row | stamp | {"at": now.isoformat(timespec="seconds")}
        now += timedelta(seconds=rng.uniform(1, 12))


def _seconds(rng: random.Random, usual: float, least: float, most: float) -> float:
    return round(min(max(usual * rng.lognormvariate(0, 0.28), least), most), 1)
