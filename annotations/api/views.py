"""Campaigns and labels for scripts: the labelling API."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, cast

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, mixins, status, views, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

import bank.text.masking
from accounts.installation_key import keyed
from accounts.models import User
from accounts.rules import ANYWHERE, IN_BODY, allowed, where
from annotations import ballots
from annotations.api.running import BY_CAMPAIGN, RULE, WritesCampaigns
from annotations.api.serializers import (
    AssignmentOut,
    CampaignSerializer,
    ConsentIn,
    ConsentOut,
    LabelIn,
    LabelSerializer,
    NextIn,
    OwnLabel,
    Returned,
    VerdictIn,
)
from annotations.assignment import material, notices
from annotations.assignment.errors import Refused
from annotations.assignment.leases import next_assignment
from annotations.assignment.notices import mark_warning_read
from annotations.assignment.queries import (
    annotator_of,
    assignment_of,
    campaigns_of,
    presented_responses,
    submitted_values,
)
from annotations.ballots import BadVerdict
from annotations.campaigns.auto_enqueue import enqueue_new_items
from annotations.campaigns.members import agree, digest_of, enter
from annotations.labels.actions import change_label, submit_label
from annotations.labels.monitor import visible_campaigns
from annotations.labels.verdicts import is_right
from annotations.models import Assignment, Campaign, Label
from annotations.views.data import PREFERENCES, download
from bank import database, guard
from bank.api.base import FILES, Conflict, sent
from bank.api.exports import WAITS, answer_of
from bank.errors import BadInput
from bank.images import image_response
from bank.intake.registry import SHAPES
from bank.models import SampleImage
from bank.models.verdict import COLUMNS


class Campaigns(WritesCampaigns, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Campaign]):
    """Campaigns: all that the caller may read, or those an annotator belongs to."""

    access_rule, access_of = "be-signed-in", BY_CAMPAIGN
    access_rules = dict.fromkeys(("create", "partial_update"), RULE)
    access_ofs = {"create": IN_BODY}
    serializer_class = CampaignSerializer
    queryset = Campaign.objects.select_related("benchmark")
    filters = {"name": "name", "benchmark": "benchmark__slug", "state": "state", "protocol": "protocol"}
    lookup_field = "name"

    def get_queryset(self) -> Any:
        viewer = cast(User, self.request.user)
        if allowed(viewer, "read-judging"):
            return visible_campaigns(viewer)
        return self.queryset.filter(pk__in=campaigns_of(annotator_of(viewer)).values("pk"))


class CampaignLabels(views.APIView):
    """The labels of a campaign as a file: ``?as=jsonl``, ``csv``, ``parquet``, ``huggingface``, ``inspect`` (of one
    ``model``), ``label-studio`` or ``preferences``; for staff also what it asks, to be labelled elsewhere:
    ``label-studio-tasks`` (``label-studio-labelled`` with the labels) or ``argilla``.

    Annotators by pseudonym; staff may ask for ``names=1``. Below staff nothing about hidden splits. A large file is
    written by a worker for staff: the answer is 202 with where it will be.
    """

    access_rule = "read-labels"

    @extend_schema(
        responses=FILES | WAITS,
        parameters=[
            OpenApiParameter("as", OpenApiTypes.STR, enum=[*SHAPES, PREFERENCES]),
            OpenApiParameter("names", OpenApiTypes.STR, enum=["1"]),
            OpenApiParameter("model", OpenApiTypes.STR),
        ],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        unknown = sorted(set(request.query_params) - {"as", "names", "model"})
        if unknown:
            raise exceptions.ValidationError(dict.fromkeys(unknown, "Unknown parameter."))
        viewer = cast(User, request.user)
        campaign = get_object_or_404(visible_campaigns(viewer), name=name)
        try:
            return answer_of(download(campaign, viewer, request.query_params))
        except BadInput as error:
            raise exceptions.ValidationError({"model" if error.field == "model" else "as": str(error)}) from None


class Next(views.APIView):
    """The caller's open assignment in a campaign, or a new one. 204 when nothing is left."""

    access_rule, access_of = "label", ANYWHERE

    @extend_schema(request=NextIn, responses={200: AssignmentOut, 204: None})
    def post(self, request: Request, name: str) -> Response:
        prefetch = sent(request, NextIn)["prefetch"]
        campaign, annotator = enter(person=cast(User, request.user), name=name)
        enqueue_new_items(campaign)
        now = database.now()
        with _refusals_as_responses():
            assignment = next_assignment(campaign=campaign, annotator=annotator, now=now, prefetch=prefetch)
        if assignment is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        answer = _describe_assignment(assignment)
        if notices.has_unread_warning(campaign=campaign, annotator=annotator):
            answer["warning"] = str(notices.WARNING)
            mark_warning_read(campaign=campaign, annotator=annotator)
        if returned := notices.open_returns(annotator, campaigns=[campaign]).count():
            answer["returned"] = returned
        return Response(answer)


class ConsentTo(views.APIView):
    """What a campaign asks the caller to agree to before the first item, and again when it changes."""

    access_rule, access_of = "label", ANYWHERE

    @extend_schema(responses=ConsentOut)
    def get(self, request: Request, name: str) -> Response:
        """The text, its digest, and whether the caller has still to agree to it."""
        campaign, annotator = enter(person=cast(User, request.user), name=name)
        asked = campaign.asks_consent_of(annotator)
        return Response({"text": campaign.consent, "digest": digest_of(campaign.consent), "asked": asked})

    @extend_schema(request=ConsentIn, responses={204: None})
    def post(self, request: Request, name: str) -> Response:
        """Agree to the text with this digest."""
        payload = ConsentIn(data=request.data)
        payload.is_valid(raise_exception=True)
        campaign, annotator = enter(person=cast(User, request.user), name=name)
        agree(campaign=campaign, annotator=annotator, now=database.now(), **payload.validated_data)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReturnedLabels(views.APIView):
    """The caller's labels that staff returned, each with the note. ``labels/<id>/`` changes or confirms one."""

    access_rule, access_of = "label", ANYWHERE

    @extend_schema(responses={200: Returned(many=True)})
    def get(self, request: Request, name: str) -> Response:
        campaign, annotator = enter(person=cast(User, request.user), name=name)
        answer = []
        for returned in notices.open_returns(annotator, campaigns=[campaign]).select_related("label"):
            assignment = _assignment(request, returned.label.assignment_id)
            answer.append(
                _describe_assignment(assignment)
                | {"note": returned.note, "given": _label_as_given(returned.label, assignment)}
            )
        return Response(answer)


class AssignmentImage(views.APIView):
    """A picture of one of the caller's assignments."""

    access_rule, access_of = "label", ANYWHERE

    @extend_schema(
        responses={(200, "image/*"): OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter("id", OpenApiTypes.INT, OpenApiParameter.PATH),
            OpenApiParameter("position", OpenApiTypes.INT, OpenApiParameter.PATH),
        ],
    )
    def get(self, request: Request, pk: int, position: int) -> HttpResponseBase:
        assignment = _assignment(request, pk)
        sample = assignment.campaign_item.item.sample_id
        # The underlying request: the answer is a file, not something to render.
        return image_response(get_object_or_404(SampleImage, sample=sample, position=position), request._request)


class Labels(mixins.ListModelMixin, viewsets.GenericViewSet[Label]):
    """All labels, for those who may read them. POST stores one's own."""

    access_rule = "read-labels"
    access_rules, access_of = {"create": "label"}, ANYWHERE
    serializer_class = LabelSerializer
    filters = {
        "benchmark": "campaign__benchmark__slug",
        "version": "campaign__benchmark__version",
        "campaign": "campaign__name",
        "annotator": "annotator__pseudonym",
        "item": "item",
    }

    def get_queryset(self) -> Any:
        viewer = self.request.user
        labels = Label.objects.seen_by(viewer).filter(where(viewer, "read-labels", "campaign__benchmark__"))
        labels = labels.with_words(viewer)
        return labels.select_related("campaign__benchmark", "item__sample", "annotator", "assignment__campaign_item")

    @extend_schema(request=LabelIn, responses={201: OwnLabel, 200: OwnLabel})
    def create(self, request: Request) -> Response:
        """Store a verdict: 201 the first time, 200 with the same label for the same key."""
        data = sent(request, LabelIn)
        assignment = _assignment(request, data["assignment"])
        with _refusals_as_responses():
            given = submitted_values(data) | {"idempotency_key": data["idempotency_key"]}
            submitted = submit_label(assignment=assignment, now=database.now(), **given)
        answer = _label_as_given(submitted.label, assignment)
        if assignment.campaign_item.practice:
            answer["practice"] = _practice_result(submitted.label, assignment)
        return Response(answer, status=status.HTTP_201_CREATED if submitted.created else status.HTTP_200_OK)


class OneLabel(views.APIView):
    """One of the caller's own labels."""

    access_rule, access_of = "label", ANYWHERE

    @extend_schema(request=VerdictIn, responses={200: OwnLabel})
    @guard.working()
    def put(self, request: Request, pk: int) -> Response:
        """Replace it. Sending the same verdict confirms a returned label."""
        label = get_object_or_404(Label, pk=pk, assignment__state=Assignment.State.SUBMITTED)
        assignment = _assignment(request, label.assignment_id)
        verdict = sent(request, VerdictIn)
        with _refusals_as_responses():
            change_label(assignment=assignment, now=database.now(), **submitted_values(verdict))
        return Response(_label_as_given(Label.objects.get(pk=pk), assignment))


def _assignment(request: Request, pk: int) -> Assignment:
    return assignment_of(cast(User, request.user), pk)


@contextmanager
def _refusals_as_responses() -> Iterator[None]:
    """Turn refusals into API responses."""
    try:
        yield
    except BadVerdict as error:
        raise exceptions.ValidationError({error.field: [str(error)]}) from None
    except Refused as refusal:
        raise Conflict({"detail": str(refusal), "code": refusal.code}) from None


def _practice_result(label: Label, assignment: Assignment) -> dict[str, Any]:
    """The result of a practice item. The page does not show it again."""
    campaign_item = assignment.campaign_item
    ballot, gold = ballots.of(campaign_item.campaign), campaign_item.gold or {}
    Assignment.objects.filter(pk=assignment.pk).update(feedback_seen=True)
    result: dict[str, Any] = {
        "right": is_right(label.verdict(), gold),
        "verdict": ballot.present(
            {name: gold.get(name) for name in COLUMNS}, material.material_for(assignment, ballot)
        ),
        "note": campaign_item.note,
    }
    practice_round = notices.practice_round(campaign_item.campaign, assignment.annotator)
    if practice_round is not None:
        result["round"] = asdict(practice_round)
    return result


def opaque_item(assignment: Assignment) -> int:
    """The item as its annotator knows it: by a number that means nothing anywhere else."""
    return int(keyed("item", f"{assignment.pk}")[:12], 16)


def _describe_assignment(assignment: Assignment) -> dict[str, Any]:
    campaign_item = assignment.campaign_item
    sample = campaign_item.item.sample
    ballot = ballots.of(campaign_item.campaign)
    shown = material.shown_material(assignment, ballot)
    mark, placeholder = bank.text.masking.MARK, bank.text.masking.PLACEHOLDER
    content: dict[str, Any] = {
        "instruction": sample.instruction,
        "images": [
            image.as_dict() | {"url": reverse("api-assignment-image", args=[assignment.pk, image.position])}
            for image in SampleImage.objects.filter(sample=sample)
        ],
    }
    if shown.material.options:
        content["options"] = {option.shown: option.text for option in shown.material.options}
    described = {
        "assignment": assignment.pk,
        "item": opaque_item(assignment),
        "protocol": campaign_item.campaign.protocol,
        "sample": content,
        "responses": [{"text": text.replace(mark, placeholder)} for text, _ in presented_responses(assignment)],
        "verdicts": ballot.allowed_answers(shown.material),
        "lease_until": assignment.lease_until,
    }
    if assignment.shows_criteria:
        described["criteria"] = [{"text": criterion.text} for criterion in shown.criteria]
    reviews = [{"verdict": review.verdict, "analysis": review.analysis} for review in shown.reviews]
    if ballot.of_two:
        described["analyses"] = reviews
    elif reviews:
        described["review"] = reviews[0] | {"analysis_sha256": assignment.displayed_sha256}
    return described


def _label_as_given(label: Label, assignment: Assignment) -> dict[str, Any]:
    ballot = ballots.of(assignment.campaign_item.campaign)
    shown = ballot.present(label.verdict(), material.material_for(assignment, ballot))
    return {
        "id": label.pk,
        "assignment": assignment.pk,
        "campaign": assignment.campaign_item.campaign.name,
        "item": opaque_item(assignment),
        **{name: shown.get(name) for name in ballots.FIELDS},
        **{name: getattr(label, name) for name in ("seconds", "comment", "confidence", "flags", "created_at")},
    }
