"""What people or a judge say of one model's answers, as Inspect's ``precomputed_scores`` reads it.

JSON Lines of ``{id, value, explanation, metadata}``: the sample's key; the mean of the scores, or the majority of yes
or no, or of the categories; people's comments; how many verdicts there are.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from statistics import fmean
from typing import Any

from bank.errors import BadInput
from bank.intake import exports
from bank.intake.exports import ExportRequest, Records
from bank.models import Benchmark

VALUES = ("score", "answer", "option")  # the columns that can be a value; a verdict has one of them
MOST_NAMED = 20


def file_pieces(what: str, benchmark: Benchmark, asked: ExportRequest) -> Iterator[bytes]:
    """The scores of ``asked.model``, of all models if there is one, sample by sample. Raises BadInput where verdicts
    have no such value or a sample could have two.
    """
    asked = replace(asked, by_sample=True, criteria=False, analyses=False)
    model = _only_model(exports.records(what, benchmark=benchmark, asked=asked), asked.model)
    return _lines(exports.records(what, benchmark=benchmark, asked=asked), model)


def _only_model(records: Records, wanted: str) -> str:
    """The model whose scores these are. Raises BadInput if nothing or too much would be in the file."""
    sources: dict[str, set[str]] = {}  # of each model: the columns, protocols and runs of its verdicts
    kinds = set()
    for record in records:
        kinds.add(record["kind"])
        if column := _column(record):
            source = " ".join(filter(None, [record["protocol"], column, _run(record)]))
            sources.setdefault(_model(record), set()).add(source)
    if not sources:
        comparing = " Pairs and rankings compare answers: none of them has a value." if kinds - {"score"} else ""
        raise BadInput(f"There is no score, yes or no, or category of a single answer.{comparing}", "shape")
    if wanted not in sources and (wanted or len(sources) > 1):
        named = ", ".join(sorted(sources)[:MOST_NAMED])
        raise BadInput(f"Name the model whose scores these are (--model NAME), one of: {named}.", "model")
    model = wanted or next(iter(sources))
    if len(sources[model]) > 1:
        several = "; ".join(sorted(sources[model])[:MOST_NAMED])
        raise BadInput(f"A sample has one value here, and these differ: {several}. Name one campaign or run.", "run")
    return model


def _lines(records: Records, model: str) -> Iterator[bytes]:
    of_model = (record for record in records if _column(record) and _model(record) == model)
    for sample, group in groupby(of_model, key=lambda record: record["sample"]):
        verdicts = list(group)
        value = _value([record[_column(record)] for record in verdicts])
        if value is not None:
            line: dict[str, Any] = {"id": sample, "value": value}
            if comments := [record["comment"] for record in verdicts if record.get("comment")]:
                line["explanation"] = "\n".join(comments)
            line["metadata"] = {"verdicts": len(verdicts)}
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _value(values: list[Any]) -> Any:
    """The mean of numbers, the majority of anything else; None where none is more frequent than every other."""
    if isinstance(values[0], float):
        return fmean(values)
    (first, most), *others = Counter(values).most_common(2)
    return None if others and others[0][1] == most else first


def _column(record: dict[str, Any]) -> str:
    """The column that holds the value of a verdict on at most one answer; empty if it has none."""
    if len(record.get("responses", ())) > 1:
        return ""
    return next((name for name in VALUES if record.get(name) is not None), "")


def _model(record: dict[str, Any]) -> str:
    """The model, with the variant of its answer; empty where the sample itself is labelled."""
    named = next(iter(record.get("responses", ())), "")
    return f"{named['model']} ({named['variant']})" if isinstance(named, dict) else named


def _run(record: dict[str, Any]) -> str:
    return f"run {record['run']} by {record['judge']}" if "run" in record else ""
