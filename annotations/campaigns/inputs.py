"""The settings of a campaign for forms, commands and code: fields and bounds, said once."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from annotations.models import Campaign
from bank.errors import BadInput


class CampaignSettings(serializers.Serializer[Any]):
    """How a campaign assigns its items and checks labels; all of it may be changed later. The passes and the rate are
    shares.
    """

    overlap = serializers.IntegerField(min_value=1, max_value=100)
    lease_minutes = serializers.IntegerField(min_value=1, max_value=7 * 24 * 60)
    order = serializers.ChoiceField(Campaign.Order.choices)
    daily_cap = serializers.IntegerField(min_value=1, max_value=10_000, allow_null=True)
    share = serializers.IntegerField(min_value=1, max_value=100_000, allow_null=True)
    due = serializers.DateField(allow_null=True)
    consent = serializers.CharField(max_length=50_000, allow_blank=True)
    completion_code = serializers.CharField(max_length=100, allow_blank=True)
    return_url = serializers.URLField(max_length=500, allow_blank=True)
    practice_pass = serializers.FloatField(min_value=0, max_value=1, allow_null=True)
    gold_rate = serializers.FloatField(min_value=0, max_value=0.5)
    gold_pass = serializers.FloatField(min_value=0, max_value=1)
    gold_least = serializers.IntegerField(min_value=1, max_value=1000)
    gold_stops = serializers.BooleanField()

    def validate_return_url(self, url: str) -> str:
        if url and not url.startswith("https://"):
            raise serializers.ValidationError("Give an address that begins with https://.")
        return url

    def validate_due(self, due: date | None) -> date | None:
        """A due date that is stored already may have passed."""
        if due is not None and is_past(due) and not (self.instance and self.instance.due == due):
            raise serializers.ValidationError(f"The due date {due} is in the past. Choose today, a later day or none.")
        return due


SETTINGS: dict[str, Any] = dict(CampaignSettings().fields)


def bounds_of(name: str) -> dict[str, Any]:
    """The bounds of a setting, for the control of a form."""
    return {"min_value": SETTINGS[name].min_value, "max_value": SETTINGS[name].max_value}


def checked_settings(values: Mapping[str, Any], campaign: Campaign | None = None) -> dict[str, Any]:
    """These settings after validation, for a new campaign or to change one. Raises BadInput that names the field.

    Names that are no settings stay, and the model refuses them.
    """
    settings = CampaignSettings(campaign, data=values, partial=True)
    if not settings.is_valid():
        name, (words, *_) = next(iter(settings.errors.items()))
        raise BadInput(f"{words}" if name == "due" else f"{name}: {words}", name)
    return {**values, **settings.validated_data}


def is_past(day: date) -> bool:
    """Whether the day is over everywhere on Earth. The server's clock is UTC, where it may already be tomorrow."""
    return day < (timezone.now() - timedelta(hours=12)).date()
