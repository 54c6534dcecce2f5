"""The verdict columns, the same for judges, annotators and adjudicators, in canonical item order."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import models
from django.db.models import Q


class Choice(models.TextChoices):
    FIRST = "first"
    SECOND = "second"
    TIE = "tie"
    UNDECIDED = "undecided"


TURNED = {Choice.FIRST: Choice.SECOND, Choice.SECOND: Choice.FIRST}
GRADED = "pair-graded"  # the protocol of preferences
LABEL = "label"  # the protocol of categories: ``option`` is one of them, not an option of the sample
ANALYSES = "compare-analyses"  # ``choice`` is between two judges' analyses of an item of any kind, not between answers
MAX_OPTION, MAX_CATEGORY = 8, 500  # characters
EVEN = 0.5  # the preference of a tie


def is_of_categories(protocol: object) -> bool:
    """Whether ``option`` is a category in verdicts of this protocol."""
    return protocol == LABEL


def choice_of(preference: float) -> Choice:
    """The choice that follows from a preference."""
    return Choice.TIE if preference == EVEN else Choice.FIRST if preference > EVEN else Choice.SECOND


class Verdict(models.Model):
    """A decision about an item. Missing is null with a reason, never 0.

    ``preference`` is how far the first of two answers is preferred, from 0, the second much better, to 1, the first
    much better; ``choice`` follows from it. ``ranking`` holds groups of canonical positions, best first:
    ``[[1], [0, 2]]``. ``parts`` holds points by component key. ``spans`` are [start, end) offsets in the displayed
    text, stored with the hash of that text.
    """

    score = models.FloatField(null=True, blank=True)
    choice = models.CharField(max_length=9, choices=Choice.choices, null=True, blank=True)
    preference = models.FloatField(null=True, blank=True)
    situation = models.PositiveSmallIntegerField(null=True, blank=True)
    ranking = models.JSONField(null=True, blank=True)
    parts = models.JSONField(null=True, blank=True)
    option = models.CharField(max_length=MAX_CATEGORY, null=True, blank=True)
    extraction = models.CharField(max_length=6, null=True, blank=True)
    answer = models.BooleanField(null=True, blank=True)
    agree = models.BooleanField(null=True, blank=True)
    grade = models.PositiveSmallIntegerField(null=True, blank=True)
    hallucination = models.BooleanField(null=True, blank=True)
    spans = models.JSONField(null=True, blank=True)
    confidence = models.FloatField(null=True, blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(choice__isnull=True) | Q(choice__in=Choice.values), name="%(class)s_choice_known"
            ),
            models.CheckConstraint(
                condition=Q(preference__isnull=True) | Q(preference__gte=0, preference__lte=1, choice__isnull=False),
                name="%(class)s_preference_from_0_to_1",
            ),
            models.CheckConstraint(
                condition=Q(situation__isnull=True) | Q(situation__in=(1, 2), choice=Choice.UNDECIDED),
                name="%(class)s_situation_only_undecided",
            ),
            models.CheckConstraint(
                condition=Q(extraction__isnull=True) | Q(extraction__in=("label", "judge", "random")),
                name="%(class)s_extraction_known",
            ),
        ]

    def verdict(self) -> dict[str, Any]:
        """The columns that are not empty."""
        return {name: value for name in COLUMNS if (value := getattr(self, name)) not in (None, "")}


COLUMNS = tuple(field.name for field in Verdict._meta.local_fields)


def as_row(verdict: Mapping[str, Any], names: Sequence[object]) -> dict[str, Any]:
    """Verdict columns as the ``generic`` format writes them: rankings by the names of the responses, which are in
    canonical order; parts as a list.
    """
    row = dict(verdict)
    if "ranking" in row:
        row["ranking"] = [[names[position] for position in group] for group in row["ranking"]]
    if "parts" in row:
        row["parts"] = [{"component": name, "points": points} for name, points in row["parts"].items()]
    return row


def turned(verdict: dict[str, Any], *, order: list[int]) -> dict[str, Any]:
    """A verdict given in a presented or file order, in canonical order.

    ``order[k]`` is the canonical position of what stood at place k. Scores, parts and the like name no position.
    """
    result = dict(verdict)
    choice = result.get("choice")
    if choice in TURNED and order[:2] == [1, 0]:
        result["choice"] = TURNED[Choice(choice)]
    if result.get("preference") is not None and order[:2] == [1, 0]:
        result["preference"] = 1 - result["preference"]
    if result.get("ranking") is not None:
        result["ranking"] = [sorted(order[place] for place in group) for group in result["ranking"]]
    return result
