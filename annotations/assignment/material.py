"""Material of an assignment besides the answers: components, options, a judge's verdict and its released analysis."""

import hashlib
from dataclasses import dataclass, replace
from string import ascii_uppercase

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

import bank.criteria
import bank.text.masking
from annotations import ballots
from annotations.ballots import COMPONENTS, OPTIONS, Ballot, Component, Material
from annotations.ballots.pairs import SITUATIONS
from annotations.labels.verdicts import describe, names_as_shown
from annotations.models import Assignment, CampaignItem
from bank import guard
from bank.models import EvaluatedModel, Response
from judging.judgments import analyses
from judging.models import Judgment
from judging.runs.plan import options_of


@dataclass(frozen=True, slots=True)
class ReviewedVerdict:
    """A judge's verdict in words, in the order in which it saw the answers, and its analysis as displayed.

    ``released`` is False if the campaign shows analyses but two people have not released this one.
    """

    verdict: str
    analysis: str
    gaps: int = 0
    withheld: bool = False
    released: bool = True


@dataclass(frozen=True, slots=True)
class ShownMaterial:
    """Everything the annotator sees. ``criteria`` are those the campaign shows, without the components."""

    material: Material
    criteria: list[bank.criteria.Text]
    reviews: tuple[ReviewedVerdict, ...] = ()  # one, or two in presented order


@guard.working()
def material_for(assignment: Assignment, ballot: Ballot) -> Material:
    """Everything the ballot needs to validate a verdict on this assignment. Contains no hidden text."""
    campaign_item = assignment.campaign_item
    length = assignment.displayed_length if ballot.shows_analyses else None
    material = Material(assignment.order, answers=len(assignment.order), length=length)
    if ballot.shows == COMPONENTS:
        weights = bank.criteria.shown_weights(
            sample_ids=[campaign_item.item.sample_id],
            by_campaign=campaign_item.campaign.shows_criteria,
            default_weight=ballot.default_weight,
        )
        parts = weights.get(campaign_item.item.sample_id, [])
        return replace(material, components=tuple(Component(key, "", weight) for key, weight in parts))
    if ballot.shows == OPTIONS:
        responses = list(Response.objects.filter(places__item=campaign_item.item_id).order_by("places__position"))
        return replace(material, options=options_of(campaign_item.item.sample, responses))
    return material


def unshuffled(campaign_item: CampaignItem) -> Assignment:
    """An assignment, not stored, that shows the answers in canonical order."""
    answers = max(1, campaign_item.item.places.count())
    return Assignment(campaign_item=campaign_item, order="".join(map(str, range(answers))))


def shown_material(assignment: Assignment, ballot: Ballot) -> ShownMaterial:
    """Everything the page shows. Logs that the annotator read criteria, and stores which analysis was displayed."""
    campaign, sample = assignment.campaign_item.campaign, assignment.sample
    criteria = bank.criteria.for_assignment(assignment)
    reviews = _reviewed_verdicts(assignment, ballot)
    material = material_for(assignment, ballot)
    if ballot.shows == COMPONENTS:
        if not campaign.shows_criteria:
            reader = assignment.annotator.person or AnonymousUser()
            criteria = bank.criteria.for_public(samples=[sample], viewer=reader).get(sample.pk, [])
        component = bank.criteria.Criterion.Kind.COMPONENT
        texts = {criterion.key: criterion.text for criterion in criteria if criterion.kind == component}
        parts = tuple(replace(part, text=texts.get(part.key, part.key)) for part in material.components)
        material = replace(material, components=parts)
        others = [criterion for criterion in criteria if criterion.key not in texts]
        criteria = others if campaign.shows_criteria else []
    return ShownMaterial(material, criteria, reviews)


def _reviewed_verdicts(assignment: Assignment, ballot: Ballot) -> tuple[ReviewedVerdict, ...]:
    """The verdict under review; the two that are compared, in presented order, both without analyses if one of them
    cannot be shown. Stores on the assignment what is displayed.
    """
    place = assignment.campaign_item
    reviews = [_reviewed_verdict(assignment, ballot, each) for each in (place.reviewed, place.against) if each]
    if not (reviews and ballot.shows_analyses):
        return tuple(reviews)
    if ballot.of_two:
        reviews = _both_or_neither(reviews)
    _store_displayed(assignment, ballot, "".join(review.analysis for review in reviews))
    return tuple(reviews[at] for at in ballots.places(assignment.order)) if ballot.of_two else tuple(reviews)


def _both_or_neither(reviews: list[ReviewedVerdict]) -> list[ReviewedVerdict]:
    """The reviews, without analyses if one has none."""
    if all(review.analysis for review in reviews):
        return reviews
    return [replace(review, analysis="", gaps=0) for review in reviews]


def _store_displayed(assignment: Assignment, ballot: Ballot, text: str) -> None:
    """Store on the assignment that these analyses are displayed."""
    digest = hashlib.sha256(text.encode()).hexdigest() if text else ""
    length = len(text) if text or ballot.of_two else None
    if (digest, length) != (assignment.displayed_sha256, assignment.displayed_length):
        assignment.displayed_sha256, assignment.displayed_length = digest, length
        assignment.save(update_fields=["displayed_sha256", "displayed_length"])


def _reviewed_verdict(assignment: Assignment, ballot: Ballot, judgment: Judgment) -> ReviewedVerdict:
    words = verdict_in_words(judgment)
    if not ballot.shows_analyses:
        return ReviewedVerdict(words, "")
    analysis = analyses.for_review(judgment, reader=assignment.reader)
    if analysis is None:
        return ReviewedVerdict(words, "", released=False)
    text = analysis.text.strip()
    if assignment.campaign_item.campaign.blind:
        text = bank.text.masking.mask(text, names_to_mask())
    return ReviewedVerdict(words, text, analysis.gaps, analysis.withheld)


def verdict_in_words(judgment: Judgment) -> str:
    """A judge's verdict with answers named as reviewers see them, and points of public components only."""
    columns = judgment.verdict()
    if judgment.parts:
        keys = bank.criteria.public_keys([judgment.item.sample_id])[judgment.item.sample_id]
        columns["parts"] = bank.criteria.open_parts(judgment.parts, keys)
    order, names = judgment.order, names_as_shown(judgment.order)
    if len(order) > 2:
        names = [ascii_uppercase[order.index(str(place))] for place in range(len(order))]
    words = describe(columns, judgment.run.protocol, letters=names)
    if columns.get("choice") == "undecided" and judgment.situation:
        undecided = _("Unable to decide")
        words = f"{undecided}: {SITUATIONS[judgment.situation]}"
    return words or "–"


def names_to_mask() -> bank.text.masking.Names:
    """The names of every model in the bank."""
    models = EvaluatedModel.objects.order_by("pk").values_list("name", "family", "organisation")
    return bank.text.masking.names_of(tuple(models))
