"""Campaigns and labels for scripts: the contract of the labelling API."""

from typing import Any, cast

from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions, mixins, serializers, status, views, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

import bank.criteria
import bank.text
from annotations import actions, ballots, exports, material
from annotations.ballots import BadVerdict
from annotations.inflow import flow_in
from annotations.models import Assignment, Campaign, Label
from annotations.monitor import visible_campaigns
from annotations.queries import annotator_of, assignments_of, campaigns_of, responses_of
from annotations.views.data import download
from bank.access import allowed
from bank.media import image_response
from bank.models import Benchmark, SampleImage, User
from bank.models.catalogue import in_hidden_splits, is_staff


class Conflict(exceptions.APIException):
    """409, in words."""

    status_code = status.HTTP_409_CONFLICT


def _refused(refusal: actions.Refused) -> Conflict:
    return Conflict({"detail": str(refusal), "code": refusal.code})


class CampaignSerializer(serializers.ModelSerializer[Campaign]):
    benchmark = serializers.CharField(source="benchmark.__str__")

    class Meta:
        model = Campaign
        fields = (
            *("id", "name", "benchmark", "protocol", "ballot", "guidelines", "overlap", "blind"),
            *("lease_minutes", "state", "daily_cap", "due"),
        )


class Campaigns(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Campaign]):
    """Campaigns: all that the caller may read, or those that an annotator belongs to."""

    access_rule = "be-signed-in"
    serializer_class = CampaignSerializer
    queryset = Campaign.objects.select_related("benchmark")
    filters = {"name": "name", "benchmark": "benchmark__slug", "state": "state", "protocol": "protocol"}
    lookup_field = "name"

    def get_queryset(self) -> Any:
        viewer = cast(User, self.request.user)
        if not allowed(viewer, "read-judging"):
            mine = campaigns_of(annotator_of(viewer)).values("pk")
            return self.queryset.filter(pk__in=mine)
        if is_staff(viewer):
            return self.queryset
        return self.queryset.filter(benchmark__visibility=Benchmark.Visibility.PUBLIC)


class CampaignLabels(views.APIView):
    """The labels of a campaign as a file: ``?as=jsonl``, ``csv``, ``parquet``, ``label-studio`` or ``preferences``.

    Annotators by pseudonym; staff may ask for ``names=1``. Below staff nothing about hidden splits.
    """

    access_rule = "read-labels"

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter("as", OpenApiTypes.STR, enum=list(exports.SHAPES)),
            OpenApiParameter("names", OpenApiTypes.STR, enum=["1"]),
        ],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        unknown = sorted(set(request.query_params) - {"as", "names"})
        if unknown:
            raise exceptions.ValidationError(dict.fromkeys(unknown, "Not a parameter of this address."))
        viewer = cast(User, request.user)
        return download(get_object_or_404(visible_campaigns(viewer), name=name), viewer, request.query_params)


class ImageOut(serializers.Serializer[Any]):
    url = serializers.CharField()
    width = serializers.IntegerField()
    height = serializers.IntegerField()
    description = serializers.CharField()


class SampleOut(serializers.Serializer[Any]):
    instruction = serializers.CharField()
    images = ImageOut(many=True)


class ResponseOut(serializers.Serializer[Any]):
    text = serializers.CharField()


class ReviewOut(serializers.Serializer[Any]):
    """What a judge said, in words; spans count characters of ``analysis``, whose hash is kept with the label."""

    verdict = serializers.CharField()
    analysis = serializers.CharField()
    analysis_sha256 = serializers.CharField()


class AssignmentOut(serializers.Serializer[Any]):
    """What there is to label, responses in this annotator's presented order and without names."""

    assignment = serializers.IntegerField()
    item = serializers.IntegerField()
    protocol = serializers.CharField()
    sample = SampleOut()
    responses = ResponseOut(many=True)
    verdicts = serializers.DictField(help_text="what may be answered, field by field")
    lease_until = serializers.DateTimeField()
    review = ReviewOut(required=False, help_text="the judge's verdict, in review campaigns")


class NextIn(serializers.Serializer[Any]):
    prefetch = serializers.BooleanField(required=False, default=False)


class Next(views.APIView):
    """The caller's open assignment of a campaign, or a new one; 204 when nothing is left for them."""

    access_rule = "label"

    @extend_schema(request=NextIn, responses={200: AssignmentOut, 204: None, 409: OpenApiResponse(OpenApiTypes.OBJECT)})
    def post(self, request: Request, name: str) -> Response:
        asked = NextIn(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            campaign, annotator = actions.enter(person=cast(User, request.user), name=name)
        except actions.NotInvited:
            raise Http404("no such campaign") from None
        if campaign.protocol not in ballots.BALLOTS:
            raise Http404("not labelled here")
        prefetch = asked.validated_data["prefetch"]
        flow_in(campaign)
        now = timezone.now()
        try:
            assignment = actions.next_assignment(campaign=campaign, annotator=annotator, now=now, prefetch=prefetch)
        except actions.Refused as refusal:
            raise _refused(refusal) from None
        if assignment is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(_described(assignment))


class AssignmentImage(views.APIView):
    """A picture of one of the caller's assignments."""

    access_rule = "label"

    @extend_schema(
        responses={(200, "image/*"): OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter("pk", OpenApiTypes.INT, OpenApiParameter.PATH),
            OpenApiParameter("position", OpenApiTypes.INT, OpenApiParameter.PATH),
        ],
    )
    def get(self, request: Request, pk: int, position: int) -> HttpResponseBase:
        assignment = get_object_or_404(assignments_of(cast(User, request.user)), pk=pk)
        sample = assignment.campaign_item.item.sample_id
        # The underlying request: the answer is a file, not something to render.
        return image_response(get_object_or_404(SampleImage, sample=sample, position=position), request._request)


class LabelIn(serializers.Serializer[Any]):
    """A verdict in presented terms. Which fields a protocol takes is said by ``verdicts`` of its assignment."""

    assignment = serializers.IntegerField()
    idempotency_key = serializers.CharField(max_length=64, required=False, allow_blank=True, default="")
    choice = serializers.ChoiceField(list(ballots.LEFT_RIGHT), required=False, allow_null=True)
    situation = serializers.IntegerField(required=False, allow_null=True)
    score = serializers.FloatField(required=False, allow_null=True)
    ranking = serializers.JSONField(required=False, allow_null=True)
    parts = serializers.JSONField(required=False, allow_null=True)
    option = serializers.CharField(required=False, allow_null=True)
    answer = serializers.BooleanField(required=False, allow_null=True)
    agree = serializers.BooleanField(required=False, allow_null=True)
    grade = serializers.IntegerField(required=False, allow_null=True)
    hallucination = serializers.BooleanField(required=False, allow_null=True)
    spans = serializers.JSONField(required=False, allow_null=True)
    seconds = serializers.FloatField(required=False, allow_null=True)
    comment = serializers.CharField(required=False, allow_blank=True, default="", trim_whitespace=False)
    confidence = serializers.FloatField(required=False, allow_null=True)
    flags = serializers.ListField(child=serializers.CharField(), required=False, default=list)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(self.initial_data) - set(self.fields)) if isinstance(self.initial_data, dict) else []
        if unknown:
            raise serializers.ValidationError(dict.fromkeys(unknown, "Not a field of a label."))
        return attrs


class OwnLabel(serializers.Serializer[Any]):
    """A label as its annotator gave it, in presented terms."""

    id = serializers.IntegerField()
    assignment = serializers.IntegerField()
    campaign = serializers.CharField()
    item = serializers.IntegerField()
    choice = serializers.CharField(allow_null=True)
    situation = serializers.IntegerField(allow_null=True)
    score = serializers.FloatField(allow_null=True)
    ranking = serializers.JSONField(allow_null=True)
    parts = serializers.JSONField(allow_null=True)
    option = serializers.CharField(allow_null=True)
    answer = serializers.BooleanField(allow_null=True)
    agree = serializers.BooleanField(allow_null=True)
    grade = serializers.IntegerField(allow_null=True)
    hallucination = serializers.BooleanField(allow_null=True)
    spans = serializers.JSONField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    comment = serializers.CharField()
    confidence = serializers.FloatField(allow_null=True)
    flags = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class LabelSerializer(serializers.ModelSerializer[Label]):
    """A label in canonical order, with its annotator's pseudonym; the name is for staff."""

    benchmark = serializers.CharField(source="campaign.benchmark.__str__")
    campaign = serializers.CharField(source="campaign.name")
    sample = serializers.CharField(source="item.sample.key")
    annotator = serializers.CharField(source="annotator.pseudonym")
    annotator_name = serializers.SerializerMethodField()

    class Meta:
        model = Label
        fields = (
            *("id", "benchmark", "campaign", "sample", "item", "annotator", "annotator_name"),
            *("choice", "situation", "score", "ranking", "parts", "option", "answer", "agree", "grade"),
            *(
                "hallucination",
                "spans",
                "displayed_sha256",
                "seconds",
                "comment",
                "confidence",
                "flags",
                "created_at",
                "changed_at",
            ),
        )

    def to_representation(self, label: Label) -> dict[str, Any]:
        data = super().to_representation(label)
        if label.parts and not is_staff(self.context["request"].user):
            keys = bank.criteria.public_keys([label.item.sample_id])[label.item.sample_id]
            data["parts"] = bank.criteria.open_parts(label.parts, keys)
        return data

    def get_annotator_name(self, label: Label) -> str | None:
        return label.annotator.name if is_staff(self.context["request"].user) else None


class Labels(mixins.ListModelMixin, viewsets.GenericViewSet[Label]):
    """Labels of everybody for those who may read them; POST stores one's own."""

    access_rule = "read-labels"
    access_rules = {"create": "label"}
    serializer_class = LabelSerializer
    queryset = Label.objects.select_related("campaign__benchmark", "item__sample", "annotator")
    filters = {
        "benchmark": "campaign__benchmark__slug",
        "version": "campaign__benchmark__version",
        "campaign": "campaign__name",
        "annotator": "annotator__pseudonym",
        "item": "item",
    }

    def get_queryset(self) -> Any:
        if is_staff(self.request.user):
            return self.queryset
        public = self.queryset.filter(campaign__benchmark__visibility=Benchmark.Visibility.PUBLIC)
        return public.exclude(in_hidden_splits("item__sample__"))

    @extend_schema(request=LabelIn, responses={201: OwnLabel, 200: OwnLabel, 409: OpenApiResponse(OpenApiTypes.OBJECT)})
    def create(self, request: Request) -> Response:
        """Store a verdict: 201 the first time, 200 with the same label for the same key."""
        asked = LabelIn(data=request.data)
        asked.is_valid(raise_exception=True)
        given = asked.validated_data
        mine = assignments_of(cast(User, request.user))
        assignment = get_object_or_404(mine, pk=given["assignment"])
        try:
            submitted = actions.submit_label(
                assignment=assignment,
                verdict={name: given.get(name) for name in ballots.FIELDS},
                seconds=given.get("seconds"),
                comment=given["comment"],
                flags=given["flags"],
                confidence=given.get("confidence"),
                idempotency_key=given["idempotency_key"],
                now=timezone.now(),
            )
        except BadVerdict as error:
            raise exceptions.ValidationError({error.field: [str(error)]}) from None
        except actions.NotInvited:
            raise Http404("no longer a member") from None
        except actions.Refused as refusal:
            raise _refused(refusal) from None
        answer = _own(submitted.label, assignment)
        return Response(answer, status=status.HTTP_201_CREATED if submitted.created else status.HTTP_200_OK)


def _described(assignment: Assignment) -> dict[str, Any]:
    place = assignment.campaign_item
    sample = place.item.sample
    ballot = ballots.of(place.campaign)
    shown = material.shown(assignment, ballot)
    texts = [text.replace(bank.text.MARK, bank.text.PLACEHOLDER) for text, _ in responses_of(assignment)]
    about: dict[str, Any] = {
        "instruction": sample.instruction,
        "images": [
            image.as_dict() | {"url": reverse("api-assignment-image", args=[assignment.pk, image.position])}
            for image in SampleImage.objects.filter(sample=sample)
        ],
    }
    if shown.material.options:
        about["options"] = {option.shown: option.text for option in shown.material.options}
    described = {
        "assignment": assignment.pk,
        "item": place.item_id,
        "protocol": place.campaign.protocol,
        "sample": about,
        "responses": [{"text": text} for text in texts],
        "verdicts": ballot.verdicts(shown.material),
        "lease_until": assignment.lease_until,
    }
    if assignment.shows_criteria:
        described["criteria"] = [{"text": one.text} for one in shown.criteria]
    if shown.review is not None:
        said = {"verdict": shown.review.verdict, "analysis": shown.review.analysis}
        described["review"] = said | {"analysis_sha256": assignment.displayed_sha256}
    return described


def _own(label: Label, assignment: Assignment) -> dict[str, Any]:
    ballot = ballots.of(assignment.campaign_item.campaign)
    given = ballot.shown(label.verdict(), material.of(assignment, ballot))
    return {
        "id": label.pk,
        "assignment": assignment.pk,
        "campaign": assignment.campaign_item.campaign.name,
        "item": label.item_id,
        **{name: given.get(name) for name in ballots.FIELDS},
        "seconds": label.seconds,
        "comment": label.comment,
        "confidence": label.confidence,
        "flags": label.flags,
        "created_at": label.created_at,
    }
