"""Announcements of campaigns to webhooks."""

from django.urls import reverse

from annotations.models import Campaign
from bank.announcements import announce


def announce_campaign(event: str, campaign: Campaign, *, key: str) -> None:
    announce(
        event,
        key=key,
        number=campaign.pk,
        state=campaign.state,
        page=reverse("annotations:campaign-detail", args=[campaign.pk]),
        benchmark=campaign.benchmark,
        campaign=campaign.name,
        protocol=campaign.protocol,
    )
