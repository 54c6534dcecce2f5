"""MT-Bench, Arena-Hard and WildVision-Bench: a folder of questions, answers and what judges said of them.

``question.jsonl``, ``model_answer/*.jsonl`` and ``model_judgment/**/*.jsonl``. What a file holds follows from the names
in it, not from its place. Each turn of a question is a sample, with the turns before it above.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bank.intake.formats import wide
from bank.intake.formats.battles import joined, text_of, turn_key
from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    Where,
    converted,
    first_names,
    is_whole,
    json_lines,
    odd,
)
from bank.intake.formats.records import JudgmentRecord, ResponseRecord, SampleRecord
from bank.intake.formats.seen import SeenAnswers
from bank.intake.formats.wide import model_in, text_in

NAME = "mt-bench"
TITLE = "MT-Bench, Arena-Hard, WildVision"
KEYS = ("question_id", "uid")
QUESTION = {*KEYS, *"category cluster subcategory prompt instruction turns reference image images language".split()}
REFERENCES = "reference_answer"  # a folder of answers that judges may see, which are none of a model on trial
MOST_FILES = 2_000
BASELINE = re.compile(r"judge_.+_reference_(.+)")  # the name of a folder of WildVision-Bench
# Arena-Hard's words for a result; how far the better one is ahead stays in the judge's own words alone.
BETTER = dict.fromkeys(("A>>B", "A>B", "B<A", "B<<A"), "A")
BETTER |= dict.fromkeys(("B>>A", "B>A", "A<B", "A<<B"), "B") | dict.fromkeys(("A=B", "B=A"), "tie")
ANSWER_A = ("Start of Assistant A's Answer|>\n", "\n<|The End of Assistant A's")  # what stands around it in a prompt
NO_ANSWER = "$ERROR$"  # what FastChat writes where an endpoint failed


def recognises(path: Path) -> bool:
    if path.is_dir():
        kinds = {kind for _, kind in _files(path)}
        return "verdicts" in kinds or kinds >= {"questions", "answers"}
    return _kind(path) in ("questions", "answers", "verdicts")


def samples(path: Path) -> Iterator[Row | Problem]:
    """The questions; WildVision-Bench has them in its files of answers."""
    files = _files(path)
    asked = [file for file, kind in files if kind == "questions"] or [
        file for file, kind in files if kind == "answers with questions"
    ]
    if not asked:
        raise BadFile(path, f"holds no questions; {_missing(files)}")
    unread = sorted({file.name for file in path.rglob("*.jsonl")} - {file.name for file, _ in files})
    if unread:
        reason = f"these files are none of questions, answers and verdicts, and are not read: {', '.join(unread[:20])}"
        yield Problem(Where(path.name), "", reason, warning=True)
    done: set[str] = set()
    for file in asked:
        yield from converted(json_lines(file), partial(_questions, done=done), SampleRecord)


def responses(path: Path) -> Iterator[Row | Problem]:
    files = [file for file, kind in _files(path) if kind.startswith("answers")]
    if not files:
        raise BadFile(path, f"holds no answers; {_missing(_files(path))}")
    seen = SeenAnswers()
    for file in files:
        yield from converted(json_lines(file), partial(_answers, seen=seen, told=set()), ResponseRecord)


def judgments(path: Path) -> Iterator[Row | Problem]:
    """What judges said: a score, or who won in each of the games."""
    files = _files(path)
    if all(kind != "verdicts" for _, kind in files):
        raise BadFile(path, "holds no verdicts")
    if missing := _missing(files):
        yield Problem(Where(path.name), "", f"verdicts are read, but {missing}", warning=True)
    answers = [file for file, kind in files if kind.startswith("answers")]
    baselines: dict[Path, str] = {}
    for file in (file for file, kind in files if kind == "verdicts"):
        if not baselines.get(file.parent) and "baseline" not in first_names(file):
            baselines[file.parent] = _baseline(file, answers)
        read = partial(_verdicts, told=set(), baseline=baselines.get(file.parent, ""))
        yield from converted(json_lines(file), read, JudgmentRecord)


def _files(path: Path) -> list[tuple[Path, str]]:
    """The files with what they hold."""
    found = [path]
    if path.is_dir():
        found = [file for file in sorted(path.rglob("*.jsonl"))[:MOST_FILES] if file.parent.name != REFERENCES]
    return [(file, kind) for file in found if (kind := _kind(file))]


def _kind(file: Path) -> str:
    names = first_names(file)
    if not names.intersection(KEYS):
        return ""
    if names & {"games", "g1_winner"} or names >= {"score", "judgment", "model"}:
        return "verdicts"
    if names & {"model", "model_id"} and names & {"choices", "messages"}:
        return "answers"
    if names >= {"instruction", "output", "model"}:
        return "answers with questions"
    asks = "turns" in names or (names & {"prompt", "instruction"} and names <= QUESTION)
    return "questions" if asks else ""


def _missing(files: list[tuple[Path, str]]) -> str:
    """What verdicts need beside them and the files lack, in words."""
    kinds = {word for _, kind in files for word in kind.split()}
    names = {"questions": "question.jsonl", "answers": "the models' answers (model_answer/*.jsonl)"}
    lacking = [words for kind, words in names.items() if kind not in kinds]
    if not lacking:
        return ""
    return f"put {' and '.join(lacking)} beside them, in one folder or zip, unless the benchmark has these already"


def _key(data: dict[str, Any]) -> str:
    return str(wide.key_at(data, "question_id" if "question_id" in data else "uid"))


def _text(content: Any, column: str) -> str:
    """The text of a turn; Arena-Hard has it in an object."""
    if isinstance(content, dict):
        content = content.get("answer", content.get("content"))
    return text_of(content, column)


def _list(value: Any, column: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise BadRow(column, "is no list of turns")
    return value


def _questions(row: Row, done: set[str]) -> Iterator[dict[str, Any]]:
    data, key = row.data, _key(row.data)
    column = next((name for name in ("turns", "prompt", "instruction") if name in data), "turns")
    turns = [_text(turn, column) for turn in _list(data.get(column) if column == "turns" else [data[column]], column)]
    pictures = wide.pictures_in(data)
    references = data.get("reference")
    for number, asked in enumerate(turns, start=1):
        if (name := turn_key(key, number)) in done:
            continue
        done.add(name)
        if not asked.strip():
            raise BadRow(column, f"turn {number} is empty")
        reference = references[number - 1] if isinstance(references, list) and len(references) >= number else ""
        language = text_in(data, "language")
        yield {
            "key": name,
            "instruction": joined(turns[:number]),
            "images": pictures,
            "level": text_in(data, "category"),
            "language": language if len(language) <= wide.MOST_LANGUAGE else "",
            "criteria": [{"kind": "soft_reference", "text": reference}] if reference else [],
        }


def _answers(row: Row, seen: SeenAnswers, told: set[str]) -> Iterator[Problem | dict[str, Any]]:
    data, key = row.data, _key(row.data)
    if data.get("model", "") is None and data.get("output", "") is None:  # as in WildVision-Bench's example
        if not told:
            yield odd(
                row, "model", "is empty like the output: a form to fill in; left out, as are further rows like this"
            )
        told.add("form")
        return
    model = model_in(data, "model_id" if "model_id" in data else "model")
    column, turns = _answered(data)
    if column == "choices" and len(data[column]) > 1:
        reason = f"holds {len(data[column])}; the first is read, which is the one that is judged"
        yield odd(row, column, reason)
    for number, text in enumerate(turns, start=1):
        text = joined(turns[:number]) if text.strip() and text != NO_ANSWER else ""
        sample = turn_key(key, number)
        variant, repeated = seen.place(sample, model, text)
        if repeated:
            continue
        ref = {"model": model, "variant": variant}
        yield from wide.odd_answer(row, column, text, ref)
        yield {"sample": sample, "text": text} | ref


def _answered(data: dict[str, Any]) -> tuple[str, list[str]]:
    """The column with a model's answers, and their texts, one a turn. Raises BadRow."""
    if "choices" in data:
        column, given = "choices", wide.value_at(_list(data["choices"], "choices"), "0.turns")
    elif "messages" in data:
        messages = [message for message in _list(data["messages"], "messages") if isinstance(message, dict)]
        column, given = "messages", [one.get("content") for one in messages if one.get("role") == "assistant"]
    else:
        column, given = "output", [data.get("output")]
    return column, [_text(turn, column) for turn in _list(given, column)]


def _verdicts(row: Row, told: set[str], baseline: str) -> Iterator[Problem | dict[str, Any]]:
    data = row.data
    turn = data.get("turn", 1)
    if not is_whole(turn) or turn < 1:
        raise BadRow("turn", "is no number of a turn")
    judge = data.get("judge")
    judge = judge[0] if isinstance(judge, list) and judge else judge  # MT-Bench names the prompt, too
    if not isinstance(judge, str):
        raise BadRow("judge", "is no name")
    about = {"sample": turn_key(_key(data), turn), "judge": judge, "settings": {"criteria": False}}
    if "g1_winner" in data:
        yield from (about | game for game in _mt_bench_games(data))
    elif "games" in data:
        for game in _against_baseline(row, told, baseline):
            yield game if isinstance(game, Problem) else about | game
    else:
        about |= {"kind": "score", "protocol": "score", "responses": [model_in(data, "model")]}
        score, said = data.get("score"), _said(data, "judgment")
        yield about | said | (said if "status" in said else _failed() if score == -1 else {"score": score})


def _against_baseline(row: Row, told: set[str], baseline: str) -> Iterator[Problem | dict[str, Any]]:
    model = model_in(row.data, "model")
    baseline = model_in(row.data, "baseline") if "baseline" in row.data else baseline
    if not baseline:
        raise BadRow("baseline", "is missing, and no single model's answer is A in the prompt of the first game")
    if model != baseline:
        yield from _arena_hard_games(row, model, baseline)
        return
    if not told:
        yield odd(row, "model", "is the baseline itself; left out, as are further rows like this")
    told.add(model)


def _said(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """The judge's words, and a status where there are none."""
    said = next((data[name] for name in names if name in data), None)
    text = _text(said, names[0])
    return {"analysis": text, "status": "error"} if text == NO_ANSWER else {"analysis": text}


def _failed() -> dict[str, Any]:
    return {"status": "parse_failed"}


def _mt_bench_games(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Two games: the second with the answers in the other order, its winner by the names of the first."""
    if "m1_score" in data:
        raise BadRow("m1_score", "says that the answers were scored one by one, not compared")
    models = [model_in(data, name) for name in ("model_1", "model_2")]
    won = {"model_1": {"choice": "first"}, "model_2": {"choice": "second"}, "tie": {"choice": "tie"}}
    won["error"] = _failed()
    for game, order in (("g1", models), ("g2", models[::-1])):
        winner = data.get(f"{game}_winner")
        if not isinstance(winner, str) or winner not in won:
            raise BadRow(f"{game}_winner", f"{str(winner)[:50]!r} is none of {', '.join(won)}")
        said = _said(data, f"{game}_judgment")
        about = {"kind": "pair", "protocol": "pair", "responses": models, "order": order}
        yield about | won[winner] | said if "status" not in said else about | said


def _arena_hard_games(row: Row, model: str, baseline: str) -> Iterator[Problem | dict[str, Any]]:
    """One game or two: in the first the baseline is A, in the second B."""
    games = _list(row.data["games"], "games")
    if len(games) > 2:
        raise BadRow("games", f"holds {len(games)}; which of them has which order is not known")
    for game, order in zip(games, ([baseline, model], [model, baseline]), strict=False):
        about = {"kind": "pair", "protocol": "pair", "responses": [model, baseline], "order": order}
        if game is None:  # the endpoint failed
            yield about | {"status": "error"}
            continue
        if not isinstance(game, dict):
            raise BadRow("games", "holds what is no game")
        score = game.get("score")
        about |= _said(game, "judgment", "judgement")
        better = BETTER.get(score.strip("[] \n")) if isinstance(score, str) else None
        if better is None and score is not None:
            reason = f"the score {str(score)[:50]!r} is none of A>>B, A>B, A=B, B>A and B>>A; kept as no verdict"
            yield odd(row, "games", reason)
        if better is None or "status" in about:
            yield _failed() | about
            continue
        first = {"A": order[0] == model, "B": order[1] == model}
        yield about | {"choice": "tie" if better == "tie" else "first" if first[better] else "second"}


def _baseline(file: Path, answers: list[Path]) -> str:
    """Whom the models of a file are compared with, where its rows do not say: by the folder's name, as WildVision-Bench
    has it, or by whose answer stands as A in the prompt of the first game; "" if that is not one model.
    """
    if named := BASELINE.fullmatch(file.parent.name):
        return named[1]
    row = next(iter(json_lines(file)), None)
    prompt = wide.value_at(row.data, "games.0.user_prompt") if isinstance(row, Row) else None
    _, begins, answer = prompt.partition(ANSWER_A[0]) if isinstance(prompt, str) else ("", "", "")
    shown, ends, _ = answer.rpartition(ANSWER_A[1])
    if not begins or not ends or not isinstance(row, Row):
        return ""
    models: set[str] = set()
    for other in (other for answered in answers for other in json_lines(answered)):
        if isinstance(other, Row) and any(other.data.get(name) == row.data.get(name) is not None for name in KEYS):
            made = converted([other], partial(_answers, seen=SeenAnswers(), told=set()), ResponseRecord)
            models.update(
                one.data.model for one in made if isinstance(one, Row) and one.data.text.strip() == shown.strip()
            )
    return models.pop() if len(models) == 1 else ""
