"""What the API of campaigns takes and answers."""

from typing import Any

from rest_framework import serializers

from accounts.rules import allowed
from annotations import ballots
from annotations.labels.provenance import ballot_seen_by
from annotations.models import Campaign, Label
from bank.api.strict import StrictSerializer


class CampaignSerializer(serializers.ModelSerializer[Campaign]):
    benchmark = serializers.CharField(source="benchmark.__str__")
    ballot = serializers.SerializerMethodField()

    def get_ballot(self, campaign: Campaign) -> dict[str, Any]:
        return ballot_seen_by(self.context["request"].user, campaign) if campaign.imported else campaign.ballot

    class Meta:
        model = Campaign
        fields = (
            *("id", "name", "benchmark", "protocol", "ballot", "guidelines", "overlap", "blind"),
            *("lease_minutes", "state", "daily_cap", "due"),
        )


class ConsentOut(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="Markdown; empty: nothing is asked")
    digest = serializers.CharField()
    asked = serializers.BooleanField()


class ConsentIn(StrictSerializer):
    digest = serializers.CharField(max_length=64)


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


class AnalysisOut(serializers.Serializer[Any]):
    """One of the two that are compared: the judge's verdict in words and what it wrote."""

    verdict = serializers.CharField()
    analysis = serializers.CharField()


class RoundOut(serializers.Serializer[Any]):
    """A practice round that is over."""

    right = serializers.IntegerField()
    of = serializers.IntegerField()
    needed = serializers.IntegerField()
    passed = serializers.BooleanField()


class PracticeOut(serializers.Serializer[Any]):
    """How a label of a practice item stands to the right verdict, which is given in presented terms."""

    right = serializers.BooleanField()
    verdict = serializers.DictField()
    note = serializers.CharField(help_text="why that is right, Markdown")
    round = RoundOut(required=False, help_text="with the last item of the round")


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
    analyses = AnalysisOut(many=True, required=False, help_text="left and right, where two are compared")
    warning = serializers.CharField(
        required=False, help_text="told once: labels of items with a known verdict went wrong"
    )
    returned = serializers.IntegerField(required=False, help_text="so many labels came back: see returned/")


class NextIn(serializers.Serializer[Any]):
    prefetch = serializers.BooleanField(required=False, default=False)


class VerdictIn(StrictSerializer):
    """A verdict in presented terms. Which fields a protocol takes is said by ``verdicts`` of its assignment."""

    choice = serializers.ChoiceField(list(ballots.LEFT_RIGHT), required=False, allow_null=True)
    preference = serializers.FloatField(required=False, allow_null=True)
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


class LabelIn(VerdictIn):
    """A verdict on an assignment."""

    assignment = serializers.IntegerField()
    idempotency_key = serializers.CharField(max_length=64, required=False, allow_blank=True, default="")


class OwnLabel(VerdictIn):
    """A label as its annotator gave it, in presented terms."""

    id = serializers.IntegerField()
    assignment = serializers.IntegerField()
    campaign = serializers.CharField()
    item = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    practice = PracticeOut(required=False, help_text="of a practice item: how it went")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """All of them in every answer, but for the practice."""
        fields = super().get_fields()
        for name, field in fields.items():
            field.required = name != "practice"
        return fields


class Returned(AssignmentOut):
    """A label that came back to its annotator, with the note and what there was to label."""

    note = serializers.CharField()
    given = OwnLabel()


class LabelSerializer(serializers.ModelSerializer[Label]):
    """A label in canonical order, with its annotator's pseudonym; the name is for staff."""

    benchmark = serializers.CharField(source="campaign.benchmark.__str__")
    campaign = serializers.CharField(source="campaign.name")
    sample = serializers.CharField(source="item.sample.key")
    annotator = serializers.CharField(source="annotator.pseudonym")
    annotator_name = serializers.SerializerMethodField()
    simulated = serializers.BooleanField(source="annotator.simulated")
    judgments = serializers.ListField(
        source="assignment.campaign_item.judgments",
        child=serializers.IntegerField(),
        help_text="what is reviewed, or the two that are compared; first is the first of them",
    )

    class Meta:
        model = Label
        fields = (
            *("id", "benchmark", "campaign", "sample", "item", "judgments", "annotator", "annotator_name"),
            "simulated",
            *("choice", "preference", "situation", "score", "ranking", "parts", "option", "answer", "agree", "grade"),
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

    def to_representation(self, instance: Label) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return shown if instance.in_words else shown | {"comment": "", "flags": []}

    def get_annotator_name(self, label: Label) -> str | None:
        return label.annotator.name if allowed(self.context["request"].user, "read-names") else None
