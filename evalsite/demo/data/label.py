"""Make what three demo annotators said of pairs (``labels.jsonl``), single answers (``scores.jsonl``), all four answers
(``rankings.jsonl``).

Usage (maintainers only; the labels are committed, the same files give the same labels):

    python evalsite/demo/data/label.py

``quality.json`` says for every sample how good each model's answer really is, 0 to 10, written by hand with the
answers. Each annotator sees those numbers through noise, has a limit below which two answers are a tie, and works in
sittings. An item takes at most two labels, from different people; the campaign of pairs stops before it is complete.
Scores go from 1 to 5, half the quality and rounded.
"""

import heapq
import itertools
import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SEED = 20261110
CAMPAIGN = "Everyday scenes, round 1"
ZONE = timezone(timedelta(hours=1))
OVERLAP = 2
SHARE = 0.6  # of items x overlap


class Annotator(NamedTuple):
    """How a person labels: noise and tie limit on the scale of the quality, liking for length, pace, sittings."""

    name: str
    noise: float
    tie_limit: float
    per_100_words: float
    words_a_second: float
    sittings: tuple[tuple[int, int, int], ...]  # day of November, hour, number of labels


ANNOTATORS = (
    Annotator("Ada (demo)", 1.4, 0.6, 0.0, 4.2, ((10, 19, 14), (11, 20, 12), (13, 19, 17), (16, 20, 20), (18, 19, 24))),
    Annotator("Ben (demo)", 2.3, 1.0, 0.8, 5.0, ((10, 8, 10), (12, 8, 15), (13, 8, 13), (17, 9, 22), (19, 8, 23))),
    Annotator("Chen (demo)", 1.9, 1.5, 0.0, 3.6, ((11, 14, 9), (14, 15, 17), (15, 11, 15), (19, 16, 24))),
)
# Said once by the first person whose choice it fits: (sample, first model, second model, choice).
COMMENTS = {
    ("travel-mug-advert", "Halcyon-V 2", "Wren 3B", "second"): "Well written, but far over 60 words.",
    ("travel-mug-advert", "Halcyon-V 2", "Orrery 1.5 Pro", "second"): "Leak-proof and recycled steel are made up.",
    ("cafe-bill", "Halcyon-V 2", "Orrery 1.5 Pro", "first"): "The tip is on the total in the other one.",
    ("desk-differences", "Halcyon-V 2", "Kestrel-VL 7B", "second"): "The lamp is the same in both pictures.",
    ("last-train-saturday", "Orrery 1.5 Pro", "Kestrel-VL 7B", "second"): "Der RE 7 fährt samstags nicht.",
    ("team-call", "Halcyon-V 2", "Orrery 1.5 Pro", "first"): "One of them refuses, although the faces are drawn.",
    ("miles-ahead", "Halcyon-V 2", "Kestrel-VL 7B", "first"): "Saw that 91.5 % cannot come from 24 people.",
    ("lighthouse-story", "Halcyon-V 2", "Orrery 1.5 Pro", "second"): "Lovely, but a few words over the limit.",
    ("aquarium-orange", "Orrery 1.5 Pro", "Kestrel-VL 7B", "second"): "Counted three times, it is seven.",
    ("street-crossing", "Orrery 1.5 Pro", "Kestrel-VL 7B", "first"): "Only one of them sees the cyclist.",
    ("redraw-the-ring", "Halcyon-V 2", "Orrery 1.5 Pro", "first"): "barh starts at the bottom, so the order is wrong.",
    ("kitchen-counter", "Orrery 1.5 Pro", "Kestrel-VL 7B", "second"): "There are three tomatoes.",
    ("signup-card", "Orrery 1.5 Pro", "Kestrel-VL 7B", "first"): "Red notes ignored in the shorter one.",
    ("umbrella-comic", "Kestrel-VL 7B", "Wren 3B", "first"): "Describes more than it explains, but is right.",
    ("harbour-to-zoo", "Halcyon-V 2", "Orrery 1.5 Pro", "second"): "The yellow box says that line 2 is cut there.",
    ("harbour-to-zoo", "Halcyon-V 2", "Kestrel-VL 7B", "second"): "Two changes, but it gets there.",
    ("flat-to-the-balcony", "Halcyon-V 2", "Kestrel-VL 7B", "second"): "The study has a window to the east.",
    ("road-signs", "Halcyon-V 2", "Orrery 1.5 Pro", "second"): "First bend is to the left.",
    ("cafe-bill", "Kestrel-VL 7B", "Wren 3B", "second"): "Right number, but no way shown.",
}


def read_lines(name: str) -> list[dict]:
    """The rows of a JSON Lines file of the demo."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def verdict(rng: random.Random, who: Annotator, closed: bool, marks: tuple[int, int], words: tuple[int, int]) -> dict:
    """What this annotator says about two answers of this quality and length."""
    lean = who.per_100_words * (words[0] - words[1]) / 100
    seen = marks[0] - marks[1] + lean + rng.gauss(0, who.noise)
    alike = abs(marks[0] - marks[1]) <= 1 and abs(seen) <= who.tie_limit + 1
    if closed and alike and (min(marks) >= 8 or max(marks) <= 4) and rng.random() < 0.75:
        return {"choice": "undecided", "situation": 1}
    if max(marks) <= 3 and abs(seen) <= who.tie_limit + 0.8 and rng.random() < 0.8:
        return {"choice": "undecided", "situation": 2}
    if abs(seen) <= who.tie_limit:
        return {"choice": "tie"}
    return {"choice": "first" if seen > 0 else "second"}


def main() -> None:
    """Play the campaign in the order of time and write its labels."""
    rng = random.Random(SEED)
    models = [model["name"] for model in json.loads((HERE / "models.json").read_text(encoding="utf-8"))]
    quality = json.loads((HERE / "quality.json").read_text(encoding="utf-8"))
    closed = {sample["key"]: sample["question_type"] == "closed-ended" for sample in read_lines("samples.jsonl")}
    words = {(row["sample"], row["model"]): len(row["text"].split()) for row in read_lines("responses.jsonl")}
    items = [(key, *pair) for key in closed for pair in itertools.combinations(models, 2)]
    wanted = round(len(items) * OVERLAP * SHARE)

    queues = [rng.sample(items, len(items)) for _ in ANNOTATORS]
    taken = dict.fromkeys(items, 0)
    said: set[tuple[str, str, str, str]] = set()
    labels: list[dict] = []
    clock: list[tuple[datetime, int, int, int]] = []
    for number, who in enumerate(ANNOTATORS):
        for day, hour, count in who.sittings:
            start = datetime(2026, 11, day, hour, rng.randrange(60), rng.randrange(60), tzinfo=ZONE)
            heapq.heappush(clock, (start, number, day, count))
    while clock and len(labels) < wanted:
        now, number, day, left = heapq.heappop(clock)
        who, queue = ANNOTATORS[number], queues[number]
        item = next((item for item in queue if taken[item] < OVERLAP), None)
        if item is None:
            continue
        queue.remove(item)
        taken[item] += 1
        key, *pair = item
        length = (words[key, pair[0]], words[key, pair[1]])
        marks = (quality[key][pair[0]], quality[key][pair[1]])
        fields = verdict(rng, who, closed[key], marks, length)
        pace = (12 + sum(length) / who.words_a_second) * rng.lognormvariate(0, 0.28)
        seconds = round(min(max(pace, 15), 140), 1)
        label = {
            "kind": "pair",
            "protocol": "pairwise-criteria",
            "sample": key,
            "responses": pair,
            "annotator": who.name,
            **fields,
            "seconds": seconds,
        }
        remark = (key, pair[0], pair[1], fields["choice"])
        if remark in COMMENTS and remark not in said:
            said.add(remark)
            label["comment"] = COMMENTS[remark]
        done = now + timedelta(seconds=seconds)
        labels.append({**label, "campaign": CAMPAIGN, "at": done.isoformat(timespec="seconds")})
        if left > 1:
            heapq.heappush(clock, (done + timedelta(seconds=rng.uniform(1, 12)), number, day, left - 1))
    labels.sort(key=lambda label: (label["at"], label["annotator"]))
    write("labels.jsonl", labels)
    write("scores.jsonl", graded(models, quality, "score", "Everyday scenes, scores", share=0.5))
    write("rankings.jsonl", graded(models, quality, "batch", "Everyday scenes, rankings", share=0.6))


def graded(models: list[str], quality: dict, kind: str, campaign: str, *, share: float) -> list[dict]:
    """Scores of single answers, or rankings of all: each person takes this share of the samples, in one sitting."""
    labels = []
    for day, who in enumerate(ANNOTATORS, start=12):
        rng = random.Random(f"{SEED} {kind} {who.name}")
        now = datetime(2026, 11, day, 18, rng.randrange(60), rng.randrange(60), tzinfo=ZONE)
        for key in rng.sample(sorted(quality), round(share * len(quality))):
            seen = {model: quality[key][model] + rng.gauss(0, who.noise) for model in models}
            row = {"kind": kind, "protocol": kind, "sample": key, "annotator": who.name}
            best_first = sorted(models, key=lambda model: -seen[model])
            made = (
                [row | {"responses": [model], "score": min(5, max(1, round(seen[model] / 2)))} for model in models]
                if kind == "score"
                else [row | {"responses": models, "ranking": [[model] for model in best_first]}]
            )
            for label in made:
                seconds = round(min(max((20 if kind == "score" else 60) * rng.lognormvariate(0, 0.3), 8), 200), 1)
                now += timedelta(seconds=seconds + rng.uniform(1, 12))
                labels.append(
                    label | {"seconds": seconds, "campaign": campaign, "at": now.isoformat(timespec="seconds")}
                )
    return labels


def write(name: str, rows: list[dict]) -> None:
    """Write rows as JSON Lines."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
