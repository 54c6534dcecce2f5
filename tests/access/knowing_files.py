"""Files of every format that brings labels or judgments, each written by somebody who knows the answer keys.

A writer takes a folder, the questions and the part, and gives the file. It names the samples ``q0``, ``q1``, ... where
the format can; the others bring their samples, which are then found by their order.
"""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.bank.test_formats import ALPACA, BATTLE, COMMON, INSPECT, KAGGLE, LMMS, result
from tests.bank.test_label_studio_templates import ranked, rated, side, task
from tests.bank.test_named_maps import LANGFUSE, PROMPTFOO
from tests.bank.test_readers_judged import JUDGED, SINGLE, answer

LETTERS = "ABCD"
PEOPLE, JUDGES = "labels", "judgments"
MAP = "map.yaml"


@dataclass(frozen=True)
class Question:
    """A question to which each model gives its own letter, and the letter that is right."""

    number: int
    right: str

    @property
    def key(self):
        return f"q{self.number}"

    @property
    def asked(self):
        return f"Which of them is thing {self.number}?"

    @property
    def words(self):
        return f"It is {self.right}."

    @property
    def named(self):
        """The right answer as a category that no other question has."""
        return f"{self.number} {self.right}"

    @property
    def in_order(self):
        """The letters, the right one first."""
        return sorted(LETTERS, key=lambda letter: (letter != self.right, letter))

    def score(self, letter):
        return 5 if letter == self.right else 1

    def better(self, one, other, words=("first", "second", "tie")):
        return words[0 if one == self.right else 1 if other == self.right else 2]


def model(letter):
    return f"keyed-{letter}"


MODELS = list(map(model, LETTERS))
SINGLES, PAIRS, BATCHES, PICTURES = "score", "pair", "batch", "picture"


def singles(questions):
    return [(question, letter) for question in questions for letter in LETTERS]


def pairs(questions):
    """The first answer with each other one."""
    return [(question, "A", letter) for question in questions for letter in "DCB"]


# ---- files ----


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def whole(path, value):
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def table(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


# ---- writers ----

Writer = Callable[[Path, Sequence[Question], str], Path]
OPEN, KEYS_IN_FILE = "open", "in the file"


@dataclass(frozen=True)
class World:
    """What a writer writes: ``brings`` says when samples and keys come in.

    "": the file is about stored samples with keys. ``OPEN``: the file brings all but the keys, which are sealed after.
    ``KEYS_IN_FILE``: the file brings the keys, too.
    """

    name: str
    part: str
    kind: str
    write: Writer
    brings: str = ""
    shape: str = ""  # of a map
    keys: str = "answer_key"  # of stored samples; a category on one with a key among options is closed in any case

    def rows(self, questions):
        return {SINGLES: 4, PAIRS: 3, BATCHES: 1, PICTURES: 1}[self.kind] * questions

    def __str__(self):
        return f"{self.name} {self.part} {self.write.__name__} {self.brings}".strip().replace(" ", "-")


WORLDS: list[World] = []


def world(name, parts, kind, *, brings="", **more):
    def register(write):
        WORLDS.extend(World(name, part, kind, write, brings, **more) for part in parts)
        return write

    return register


BOTH = (PEOPLE, JUDGES)


def by(part, words):
    """Who says so, and why, under the names of ``pairs`` and ``answers``."""
    return {"annotator" if part == PEOPLE else "judge": "oracle", "comment": words}


def giver(part, words):
    """The same under the names of ``generic``."""
    if part == PEOPLE:
        return {"annotator": "oracle", "comment": words}
    return {"judge": "oracle", "settings": {"criteria": False}, "analysis": words}


def about(question, kind, *letters):
    return {"kind": kind, "sample": question.key, "responses": list(map(model, letters))}


@world("generic", BOTH, SINGLES)
def generic_scores(folder, questions, part):
    rows = [about(q, "score", x) | {"score": q.score(x)} | giver(part, q.words) for q, x in singles(questions)]
    return lines(folder / f"{part}.jsonl", rows)


@world("generic", BOTH, PAIRS)
def generic_pairs_with_the_better_one_first(folder, questions, part):
    rows = []
    for q, one, other in pairs(questions):
        first, second = (other, one) if other == q.right else (one, other)
        verdict = {"choice": "first" if first == q.right else "tie"}
        rows.append(about(q, "pair", first, second) | verdict | giver(part, q.words))
    return lines(folder / f"{part}.jsonl", rows)


@world("generic", BOTH, BATCHES)
def generic_rankings_in_their_own_order(folder, questions, part):
    rows = [
        about(q, "batch", *q.in_order) | {"ranking": list(map(model, q.in_order))} | giver(part, q.words)
        for q in questions
    ]
    return lines(folder / f"{part}.jsonl", rows)


@world("generic", BOTH, SINGLES, keys="exact_reference")
def generic_categories(folder, questions, part):
    """The category is the answer that would be right."""
    said = {"protocol": "label"}
    rows = [about(q, "score", x) | said | {"option": q.named} | giver(part, q.words) for q, x in singles(questions)]
    return lines(folder / f"{part}.jsonl", rows)


def pair_row(q, one, other, part):
    sides = {"model_a": model(one), "response_a": one, "model_b": model(other), "response_b": other}
    winner = q.better(one, other, ("model_a", "model_b", "tie"))
    return {"prompt": q.asked, "key": q.key} | sides | {"winner": winner} | by(part, q.words)


def answer_row(q, letter, part):
    row = {"prompt": q.asked, "key": q.key, "model": model(letter), "response": letter}
    return row | {"score": q.score(letter)} | by(part, q.words)


@world("pairs", BOTH, PAIRS)
@world("pairs", BOTH, PAIRS, brings=OPEN)
def comparisons(folder, questions, part):
    return table(folder / "own.csv", [pair_row(*row, part) for row in pairs(questions)])


@world("pairs", BOTH, PAIRS)
def graded_comparisons(folder, questions, part):
    rows = [pair_row(q, a, b, part) | {"preference": q.better(a, b, (1, 0, 0.5))} for q, a, b in pairs(questions)]
    return table(folder / "own.csv", rows)


@world("answers", BOTH, SINGLES)
@world("answers", BOTH, SINGLES, brings=OPEN)
def scored_answers(folder, questions, part):
    return lines(folder / "own.jsonl", [answer_row(*row, part) for row in singles(questions)])


@world("answers", BOTH, SINGLES, brings=KEYS_IN_FILE)
def scored_answers_beside_their_keys(folder, questions, part):
    return lines(folder / "own.jsonl", [answer_row(q, x, part) | {"answer": q.right} for q, x in singles(questions)])


@world("alpaca-eval", BOTH, PAIRS, brings=OPEN)
def alpaca_eval(folder, questions, part):
    rows = []
    for q, a, b in pairs(questions):
        row = ALPACA | {"instruction": q.asked, "output_1": a, "generator_1": model(a)}
        row |= {"output_2": b, "generator_2": model(b), "preference": q.better(a, b, (1, 2, 1.5))}
        rows.append(row | ({"annotator_index": 7} if part == PEOPLE else {"raw_completion": q.words}))
    return whole(folder / "annotations.json", rows)


def conversation(asked, said):
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]


@world("lmarena", BOTH, PAIRS, brings=OPEN)
@world("lmarena", BOTH, PAIRS)
def battles(folder, questions, part):
    judge = "gpt4_pair" if part == JUDGES else "arena_user_1"
    rows = [
        BATTLE
        | {"question_id": q.key, "judge": judge, "model_a": model(a), "model_b": model(b), "comment": q.words}
        | {"conversation_a": conversation(q.asked, a), "conversation_b": conversation(q.asked, b)}
        | {"winner": q.better(a, b, ("model_a", "model_b", "tie"))}
        for q, a, b in pairs(questions)
    ]
    return lines(folder / "battles.jsonl", rows)


KAGGLE_WINNERS = ("winner_model_a", "winner_model_b", "winner_tie")


@world("lmarena", [PEOPLE], PAIRS, brings=OPEN)
def battles_at_kaggle(folder, questions, part):
    rows = [
        KAGGLE
        | {"id": q.key, "prompt": json.dumps([q.asked]), "model_a": model(a), "model_b": model(b)}
        | {"response_a": json.dumps([a]), "response_b": json.dumps([b])}
        | dict.fromkeys(KAGGLE_WINNERS, 0)
        | {q.better(a, b, KAGGLE_WINNERS): 1}
        for q, a, b in pairs(questions)
    ]
    return table(folder / "train.csv", rows)


def preference_row(q, one, other):
    chosen, rejected = (other, one) if other == q.right else (one, other)
    return {"prompt": q.asked, "id": q.key, "chosen": chosen, "rejected": rejected} | {
        "chosen_model": model(chosen),
        "rejected_model": model(rejected),
    }


@world("preferences", BOTH, PAIRS, brings=OPEN)
@world("preferences", BOTH, PAIRS)
def preferences(folder, questions, part):
    who = {"annotator" if part == PEOPLE else "judge": "oracle"}
    return lines(folder / "dpo.jsonl", [preference_row(*row) | who for row in pairs(questions)])


@world("lmms-eval", [JUDGES], SINGLES, brings=KEYS_IN_FILE)
def logs_of_lmms_eval(folder, questions, part):
    for letter in LETTERS:
        rows = [
            LMMS
            | {"doc_id": q.number, "arguments": {"0": q.asked}, "target": q.right, "resps": [[letter]]}
            | {"exact_match": float(letter == q.right)}
            for q in questions
        ]
        lines(folder / "log" / model(letter) / "20251012_101010_samples_q.jsonl", rows)
    return folder / "log"


def log_of_inspect(questions, letter, *, target):
    samples = [
        {
            "id": q.key,
            "epoch": 1,
            "input": q.asked,
            "target": q.right if target else "",
            "output": {"completion": letter},
        }
        | {"scores": {"match": {"value": "C" if letter == q.right else "I", "explanation": q.words}}}
        for q in questions
    ]
    return INSPECT | {"eval": INSPECT["eval"] | {"model": model(letter)}, "samples": samples}


@world("inspect", [JUDGES], SINGLES, brings=KEYS_IN_FILE)
def logs_of_inspect(folder, questions, part):
    return [whole(folder / f"{x}.json", log_of_inspect(questions, x, target=True)) for x in LETTERS]


@world("inspect", [JUDGES], SINGLES)
def logs_of_inspect_on_stored_samples(folder, questions, part):
    return [whole(folder / f"{x}.json", log_of_inspect(questions, x, target=False)) for x in LETTERS]


@world("mt-bench", [JUDGES], SINGLES)
def marks_of_mt_bench(folder, questions, part):
    rows = [
        SINGLE | {"question_id": q.key, "model": model(x), "turn": 1, "score": q.score(x), "judgment": q.words}
        for q, x in singles(questions)
    ]
    return lines(folder / "gpt-4_single.jsonl", rows)


@world("mt-bench", [JUDGES], PAIRS, brings=OPEN)
def a_folder_of_arena_hard(folder, questions, part):
    top = folder / "ah"
    lines(top / "question.jsonl", [{"question_id": q.key, "category": "c", "turns": [q.asked]} for q in questions])
    for x in LETTERS:
        lines(top / "model_answer" / f"{x}.jsonl", [answer(model(x), x, key=q.key) for q in questions])
        if x != "A":
            rows = [arena_hard_row(q, x) for q in questions]
            lines(top / "model_judgment" / "oracle" / f"{x}.jsonl", rows)
    return top


def arena_hard_row(q, letter):
    """One game, in which the baseline is A."""
    score = q.better("A", letter, ("A>>B", "B>>A", "A=B"))
    game = {"score": score, "judgment": {"answer": f"{q.words} [[{score}]]"}, "prompt": []}
    row = {name: value for name, value in JUDGED.items() if name != "uid"}
    return row | {"question_id": q.key, "model": model(letter), "baseline": model("A"), "games": [game]}


@world("llmfao", BOTH, PAIRS)
def comparisons_of_llmfao(folder, questions, part):
    rows = [
        {"id": n, "prompt": q.key, "model_x": model(a), "model_y": model(b), "winner": q.better(a, b, SIDES)}
        | {"left": model(a), "right": model(b)}
        | ({"worker": 1} if part == PEOPLE else {})
        for n, (q, a, b) in enumerate(pairs(questions))
    ]
    return table(folder / ("crowd-comparisons.csv" if part == PEOPLE else "gpt4-comparisons.csv"), rows)


SIDES = ("left", "right", "tie")


@world("llmfao", BOTH, PAIRS, brings=KEYS_IN_FILE)
def a_release_of_llmfao(folder, questions, part):
    top = folder / "llmfao"
    prompts = [{"id": q.key, "text": q.asked, "type": "x", "slug": q.key, "note": q.right} for q in questions]
    lines(top / "prompts.jsonl", prompts)
    rows = [{"prompt": q.key, "model": x, "name": model(x), "result": x} for q, x in singles(questions)]
    lines(top / "results.jsonl", rows)
    comparisons_of_llmfao(top, questions, part)
    return top


@world("mllm-bench", [JUDGES], PAIRS)
def votes_of_mllm_bench(folder, questions, part):
    """Both orders, of which the second is of a model whose vote says nothing."""
    whole(folder / "anchor.json", [{"unique_idx": "q0", "gen_model_id": model("A"), "answer": "A"}])
    rows = []
    for q, a, b in pairs(questions):
        vote = q.better(b, a, ("Answer1", "Answer2", "Unable to decide: Situation one"))
        reply = {"model": "oracle", "choices": [{"message": {"content": f"{q.words}\n{vote}"}}]}
        rows.append({"unique_idx": f"{q.key}_0", "model_1": model(b), "model_2": model(a), "response": reply})
    lines(folder / "votes" / "oracle.jsonl", rows)
    return folder


@world("mmbench", [JUDGES], SINGLES)
def marks_of_vlmevalkit(folder, questions, part):
    rows = [
        {
            "index": q.key,
            "prediction": x,
            "model": model(x),
            "judge": "oracle",
            "hit": int(x == q.right),
            "log": q.words,
        }
        for q, x in singles(questions)
    ]
    return table(folder / "m.csv", rows)


def named(letter):
    return {"name": model(letter), "answer": letter}


def row_of_mllm_as_a_judge(q, answers, part, verdict, *, field="human"):
    row = {"id": None, **COMMON, "image_path": f"{q.number}.jpg", "instruction": q.asked} | answers
    return row | {field: verdict} if part == PEOPLE else result(row, verdict, q.words)


@world("mllm-as-a-judge", BOTH, SINGLES, brings=OPEN)
def scores_of_mllm_as_a_judge(folder, questions, part):
    rows = [row_of_mllm_as_a_judge(q, named(x), part, str(q.score(x))) for q, x in singles(questions)]
    return lines(folder / "score.jsonl", rows)


@world("mllm-as-a-judge", BOTH, PAIRS, brings=OPEN)
def pairs_of_mllm_as_a_judge(folder, questions, part):
    rows = [
        row_of_mllm_as_a_judge(q, {"answer1": named(a), "answer2": named(b)}, part, q.better(a, b, "ABC"))
        for q, a, b in pairs(questions)
    ]
    return lines(folder / "pair.jsonl", rows)


@world("mllm-as-a-judge", BOTH, BATCHES, brings=OPEN)
def rankings_of_mllm_as_a_judge(folder, questions, part):
    rows = [
        row_of_mllm_as_a_judge(
            q, {"answers": list(map(named, LETTERS))}, part, "".join(q.in_order), field="human_answer"
        )
        for q in questions
    ]
    return lines(folder / "batch.jsonl", rows)


@world("alt-test", BOTH, PICTURES, brings=OPEN)
def marks_of_pictures(folder, questions, part):
    """The mark is the place of the right letter."""
    name = "human_annotations.json" if part == PEOPLE else "llm_annotations.json"
    top = folder / "alt"
    top.mkdir(exist_ok=True)
    whole(top / name, {"oracle": {f"P_{q.number}__Color": LETTERS.index(q.right) for q in questions}})
    return top


def labelled(q, letters, *regions):
    """A task of Label Studio that names a stored sample."""
    comment = {"from_name": "comment", "to_name": "item", "type": "textarea", "value": {"text": [q.words]}}
    return task({"sample": q.key, "responses": list(map(model, letters))}, [*regions, comment])


@world("label-studio", [PEOPLE], SINGLES)
def ratings_in_label_studio(folder, questions, part):
    return whole(folder / "p.json", [labelled(q, x, *rated(q.score(x))) for q, x in singles(questions)])


@world("label-studio", [PEOPLE], PAIRS)
def sides_in_label_studio(folder, questions, part):
    tasks = [
        labelled(q, a + b, *side(q.better(a, b, SIDES)))
        if q.right in a + b
        else labelled(
            q, a + b, {"from_name": "choice", "to_name": "item", "type": "choices", "value": {"choices": ["tie"]}}
        )
        for q, a, b in pairs(questions)
    ]
    return whole(folder / "p.json", tasks)


@world("label-studio", [PEOPLE], BATCHES)
def rankings_in_label_studio(folder, questions, part):
    tasks = [labelled(q, LETTERS, *ranked({"rank": list(map(model, q.in_order))})) for q in questions]
    return whole(folder / "p.json", tasks)


@world("label-studio", [PEOPLE], SINGLES, keys="exact_reference")
def categories_in_label_studio(folder, questions, part):
    """The category is the answer that would be right."""
    tasks = []
    for q, x in singles(questions):
        chosen = {"from_name": "option", "to_name": "item", "type": "choices", "value": {"choices": [q.named]}}
        made = labelled(q, x, chosen)
        tasks.append(made | {"data": made["data"] | {"protocol": "label"}})
    return whole(folder / "p.json", tasks)


@world("label-studio", [PEOPLE], PAIRS, brings=OPEN)
def sides_in_a_template_of_label_studio(folder, questions, part):
    tasks = [
        task(
            {"prompt": q.asked, "answer1": a, "answer2": b, "model1": model(a), "model2": model(b)},
            side(q.better(a, b, ("left", "right", "left"))),
        )
        for q, a, b in pairs(questions)
    ]
    return whole(folder / "p.json", tasks)


@world("label-studio", [PEOPLE], SINGLES, brings=OPEN)
def ratings_in_a_template_of_label_studio(folder, questions, part):
    tasks = [
        task({"prompt": q.asked, "answer": x, "model": model(x)}, rated(q.score(x))) for q, x in singles(questions)
    ]
    return whole(folder / "p.json", tasks)


@world("label-studio", [PEOPLE], BATCHES, brings=OPEN)
def rankings_in_a_template_of_label_studio(folder, questions, part):
    tasks = []
    for q in questions:
        items = [{"id": model(x), "title": x, "body": x} for x in LETTERS]
        tasks.append(task({"prompt": q.asked, "items": items}, ranked({"rank": list(map(model, q.in_order))})))
    return whole(folder / "p.json", tasks)


def record(q, letters, **more):
    """A record of Argilla: what a person says to each question."""
    said = {name: [{"user_id": "u1", "value": value, "status": "submitted"}] for name, value in more.items()}
    metadata = {"sample": q.key, "models": list(map(model, letters))}
    comment = [{"user_id": "u1", "value": q.words, "status": "submitted"}]
    return {"id": f"{q.key}-{letters}", "fields": {"prompt": q.asked}, "metadata": metadata} | {
        "responses": said | {"comment": comment}
    }


@world("argilla", [PEOPLE], SINGLES)
def ratings_in_argilla(folder, questions, part):
    return whole(folder / "r.json", [record(q, x, rating=q.score(x)) for q, x in singles(questions)])


@world("argilla", [PEOPLE], PAIRS)
def choices_in_argilla(folder, questions, part):
    return whole(folder / "r.json", [record(q, a + b, choice=q.better(a, b, SIDES)) for q, a, b in pairs(questions)])


@world("argilla", [PEOPLE], BATCHES)
def rankings_in_argilla(folder, questions, part):
    records = []
    for q in questions:
        ranks = [{"value": model(x), "rank": n} for n, x in enumerate(q.in_order, 1)]
        records.append(record(q, LETTERS, ranking=ranks))
    return whole(folder / "r.json", records)


@world("argilla", [PEOPLE], SINGLES, keys="exact_reference")
def categories_in_argilla(folder, questions, part):
    records = []
    for q, x in singles(questions):
        made = record(q, x, label=q.named)
        records.append(made | {"metadata": made["metadata"] | {"protocol": "label"}})
    return whole(folder / "r.json", records)


@world("promptfoo", [JUDGES], SINGLES, brings=OPEN)
def results_of_promptfoo(folder, questions, part):
    results = [
        PROMPTFOO["results"]["results"][0]
        | {"prompt": {"raw": q.asked}, "provider": {"id": model(x)}, "response": {"output": x}}
        | {"score": int(x == q.right), "gradingResult": {"reason": q.words}}
        for q, x in singles(questions)
    ]
    return whole(folder / "out.json", PROMPTFOO | {"results": PROMPTFOO["results"] | {"results": results}})


@world("langfuse", [JUDGES], SINGLES, brings=OPEN)
def traces_of_langfuse(folder, questions, part):
    rows = [
        LANGFUSE[0]
        | {"id": f"{q.key}{x}", "traceId": q.key, "input": q.asked, "output": x}
        | {"value": str(q.score(x)), "comment": q.words}
        for q, x in singles(questions)
    ]
    return whole(folder / "out.json", rows)


# ---- columns of other names ----


def mapped(folder, shape, rows):
    """The rows with columns of other names, and the map that leads back."""
    names = {name: f"Spalte {name}" for name in rows[0]}
    (folder / MAP).write_text(yaml.safe_dump({"shape": shape, "columns": names}), encoding="utf-8")
    return lines(folder / "own.jsonl", [{names[name]: value for name, value in row.items()} for row in rows])


@world("map", BOTH, PAIRS, brings=OPEN, shape="pairs")
@world("map", BOTH, PAIRS, shape="pairs")
def mapped_pairs(folder, questions, part):
    rows = [pair_row(*row, part) for row in pairs(questions)]
    return mapped(folder, "pairs", rows)


@world("map", BOTH, SINGLES, brings=OPEN, shape="answers")
@world("map", BOTH, SINGLES, shape="answers")
def mapped_answers(folder, questions, part):
    rows = [answer_row(*row, part) for row in singles(questions)]
    return mapped(folder, "answers", rows)


@world("map", [PEOPLE], SINGLES, shape="labels")
@world("map", [JUDGES], SINGLES, shape="judgments")
def mapped_verdicts(folder, questions, part):
    rows = [about(q, "score", x) | {"score": q.score(x)} | giver(part, q.words) for q, x in singles(questions)]
    return mapped(folder, part, rows)
