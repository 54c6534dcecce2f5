"""The page of the answers that a model's figures by a recipe are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from django.core.paginator import Page
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from accounts.http import page_of
from accounts.rules import allowed
from bank.models import Recipe, Sample
from leaderboard.boards.recipes.board import RecipeBoard
from leaderboard.show.pickers import Segment
from stats.figures import in_brackets, number_of, percent, signed_points, value_or_interval

PAGE = 50
CHOICES = ("model", "scenario", "condition", "letter", "mark", "bin")  # what the address may choose
LABELS = {"scenario": "Scenario", "condition": "Asked", "letter": "Letter", "mark": "Mark"}
MOST_CHOICES = 16  # in one row; conditions may be a hundred, which a table of damage chooses
MARKS = {"right": "Right", "wrong": "Wrong", "unread": "Not read"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that these answers make."""

    scenario: str
    value: str
    interval: str


def figures(board: RecipeBoard, model: str) -> list[Figure]:
    """What a model reaches by the recipe's metric, in each scenario."""
    write = signed_points if board.metric.signed else percent
    return [
        Figure(
            row.scenario,
            value_or_interval(row.value, write),
            in_brackets(row.value, write) if row.value.value is not None else row.value.reason,
        )
        for row in board.rows
        if row.model == model
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, with how it was asked for, what was read in it, and the right one."""

    link: str
    sample: Sample
    asked: str
    text: str
    said: str
    truth: str
    right: bool
    sure: str
    marks: str


@dataclass(frozen=True, slots=True)
class Choices:
    label: str
    parts: list[Segment]


@dataclass(frozen=True, slots=True)
class Answers:
    """The chosen answers; ``sum`` says how many of them are right, as a division."""

    rows: list[Answer]
    page: Page[Any]
    query: str
    sum: str
    choices: list[Choices]
    told: bool  # whether the right answers are
    sure: bool
    marked: bool


def listed(
    request: HttpRequest,
    recipe: Recipe,
    answers: pd.DataFrame,
    chosen: Mapping[str, str],
    marks: Mapping[int, Sequence[float]],
) -> Answers | None:
    """The answers that the address chooses; None if there are none."""
    answers = answers.assign(
        condition=answers["condition"].replace("", "plain"),
        mark=answers["right"].map({1: "right", 0: "wrong"}).where(answers["read"], "unread"),
        bin=answers["bin"].astype(str),
    )
    names = [name for name in CHOICES[1:] if name in chosen]
    rows = _matching(answers, chosen, names)
    if rows.empty:
        return None
    page = page_of(request, rows.index, PAGE)
    shown = rows.loc[list(page.object_list)]
    right = int(rows["right"].sum())
    groups = {
        "scenario": list(answers["scenario"].unique()),
        "condition": list(answers["condition"].unique()),
        "letter": sorted({*answers["letter"]} - {""}),
        "mark": list(MARKS),
    }
    group = f", group {chosen['bin']} of 10" if "bin" in chosen else ""
    return Answers(
        rows=_rows(shown, marks, staff=allowed(request.user, "read-bank")),
        page=page,
        query=urlencode(chosen),
        sum=f"{right:,} right of {number_of(len(rows), 'answer')} = {percent(right / len(rows))}%{group}",
        choices=[_choices(name, values, answers, chosen) for name, values in groups.items() if len(values) > 1],
        told=bool((answers["truth"] != "").any()),
        sure=bool(answers["confidence"].notna().any()),
        marked=bool(marks),
    )


def _matching(answers: pd.DataFrame, chosen: Mapping[str, str], names: Sequence[str]) -> pd.DataFrame:
    for name in names:
        answers = answers[answers[name] == chosen[name]]
    return answers


def _choices(name: str, values: Sequence[str], answers: pd.DataFrame, chosen: Mapping[str, str]) -> Choices:
    """All, and each value with the number of its answers under the other choices; of too many only the chosen one."""
    others = {key: value for key, value in chosen.items() if key != name}
    found = _matching(answers, others, [key for key in others if key != "model"])
    parts = [Segment("All", f"?{urlencode(others)}", name not in chosen, len(found))]
    parts += [
        Segment(
            MARKS.get(value, value),
            f"?{urlencode(others | {name: value})}",
            chosen.get(name) == value,
            int((found[name] == value).sum()),
        )
        for value in values
        if len(values) <= MOST_CHOICES or chosen.get(name) == value
    ]
    return Choices(LABELS[name], parts)


def _rows(shown: pd.DataFrame, marks: Mapping[int, Sequence[float]], *, staff: bool) -> list[Answer]:
    samples = Sample.objects.prefetch_related("images").in_bulk(set(shown["sample"].tolist()))
    repeats = bool((shown["repeat"] > 0).any())
    rows = []
    for row in shown.itertuples():
        sample = samples[row.sample]
        rotated = f", options moved by {row.rotation}" if row.rotation else ""
        repeat = f", time {row.repeat + 1}" if repeats else ""
        rows.append(
            Answer(
                link=reverse("bank:sample-detail", args=[sample.pk]) if staff else "",
                sample=sample,
                asked=f"{row.condition}{rotated}{repeat}",
                text=row.text,
                said=_with_option(sample, row.said),
                truth=_with_option(sample, row.truth),
                right=bool(row.right),
                sure=percent(None if pd.isna(row.confidence) else row.confidence),
                marks=", ".join(f"{mark:g}" for mark in marks.get(row.sample, ())) if row.condition == "plain" else "",
            )
        )
    return rows


def _with_option(sample: Sample, label: str) -> str:
    """The label of an option with what the option says."""
    return f"{label}. {sample.options[label]}" if label in sample.options else label
