"""What an assignment holds beside the answers: components, options, a judge's verdict and its released analysis."""

import hashlib
from dataclasses import dataclass, replace
from string import ascii_uppercase

from django.utils.translation import gettext as _

import bank.criteria
import bank.text.masking
from annotations.ballots import Ballot, Component, Material
from annotations.ballots.answers import ChoiceExtraction
from annotations.ballots.pairs import SITUATIONS
from annotations.ballots.reviews import Review
from annotations.ballots.scores import Components
from annotations.labels.verdicts import in_words
from annotations.models import Assignment
from bank.models import EvaluatedModel, Item, Response
from judging.judgments import analyses
from judging.models import Judgment
from judging.runs.plan import options_of


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A judge's verdict in words, in the order in which it saw the answers, and its analysis as shown.

    ``released`` is False where the campaign shows analyses and two people have not released this one.
    """

    verdict: str
    analysis: str
    gaps: int = 0
    withheld: bool = False
    released: bool = True


@dataclass(frozen=True, slots=True)
class Shown:
    """What the annotator sees. ``criteria`` are those that the campaign shows, components apart."""

    material: Material
    criteria: list[bank.criteria.Text]
    review: Reviewed | None = None


def of(assignment: Assignment, ballot: Ballot) -> Material:
    """What a verdict on this assignment is read against. Holds no hidden text."""
    place = assignment.campaign_item
    material = Material(assignment.order, answers=len(assignment.order))
    if isinstance(ballot, Components):
        weights = bank.criteria.shown_weights(
            sample_ids=[place.item.sample_id], by_campaign=place.campaign.shows_criteria, lacking=ballot.lacking
        )
        parts = weights.get(place.item.sample_id, [])
        return replace(material, components=tuple(Component(key, "", weight) for key, weight in parts))
    if isinstance(ballot, ChoiceExtraction):
        responses = list(Response.objects.filter(places__item=place.item_id).order_by("places__position"))
        return replace(material, options=options_of(place.item.sample, responses))
    if isinstance(ballot, Review):
        return replace(material, length=assignment.displayed_length if ballot.shows_analyses else None)
    return material


def shown(assignment: Assignment, ballot: Ballot) -> Shown:
    """All of it, read in the annotator's name and logged. Keeps what analysis was displayed."""
    campaign, sample = assignment.campaign_item.campaign, assignment.sample
    criteria = bank.criteria.for_assignment(assignment)
    review = _reviewed(assignment, ballot) if isinstance(ballot, Review) else None
    material = of(assignment, ballot)
    if isinstance(ballot, Components):
        if not campaign.shows_criteria:
            criteria = bank.criteria.for_public(samples=[sample]).get(sample.pk, [])
        texts = {one.key: one.text for one in criteria if one.kind == bank.criteria.Criterion.Kind.COMPONENT}
        parts = tuple(replace(part, text=texts.get(part.key, part.key)) for part in material.components)
        material = replace(material, components=parts)
        criteria = [one for one in criteria if one.key not in texts] if campaign.shows_criteria else []
    return Shown(material, criteria, review)


def _reviewed(assignment: Assignment, ballot: Review) -> Reviewed:
    judgment = assignment.campaign_item.reviewed
    if judgment is None:
        raise ValueError("There is nothing to review here.")
    words = verdict_in_words(judgment)
    if not ballot.shows_analyses:
        return Reviewed(words, "")
    found = analyses.for_review(judgment, reader=assignment.reader)
    text = found.text.strip() if found else ""
    if assignment.campaign_item.campaign.blind:
        text = bank.text.masking.mask(text, hidden_names())
    digest = hashlib.sha256(text.encode()).hexdigest() if text else ""
    if digest != assignment.displayed_sha256:
        assignment.displayed_sha256, assignment.displayed_length = digest, len(text) or None
        assignment.save(update_fields=["displayed_sha256", "displayed_length"])
    if found is None:
        return Reviewed(words, text, released=False)
    return Reviewed(words, text, found.gaps, found.withheld)


def verdict_in_words(judgment: Judgment) -> str:
    """A judge's verdict, answers named as their reviewers see them; points of public components only."""
    columns = judgment.verdict()
    if judgment.parts:
        keys = bank.criteria.public_keys([judgment.item.sample_id])[judgment.item.sample_id]
        columns["parts"] = bank.criteria.open_parts(judgment.parts, keys)
    shown = {int(canonical): answer for answer, canonical in enumerate(judgment.order)}
    batch = judgment.item.kind == Item.Kind.BATCH
    names = [
        ascii_uppercase[shown[position]] if batch else _("Answer {number}").format(number=shown[position] + 1)
        for position in sorted(shown)
    ]
    words = in_words(columns, letters=names)
    if columns.get("parts") and judgment.score is not None:
        points = _("{score} of 10").format(score=f"{judgment.score:g}")
        words = f"{points} ({words})"
    if columns.get("choice") == "undecided" and judgment.situation:
        undecided = _("Unable to decide")
        words = f"{undecided}: {SITUATIONS[judgment.situation]}"
    return words or "–"


def hidden_names() -> bank.text.masking.Names:
    """The names of every model in the bank."""
    models = EvaluatedModel.objects.order_by("pk").values_list("name", "family", "organisation")
    return bank.text.masking.names_of(tuple(models))


def open_parts(sample_id: int, parts: dict[str, float]) -> dict[str, float]:
    """The points of those components that everybody may see."""
    return bank.criteria.open_parts(parts, bank.criteria.public_keys([sample_id])[sample_id]) or {}
