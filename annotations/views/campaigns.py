"""Campaigns, for staff and researchers."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from accounts.rules import allowed, requires
from annotations import actions, ballots, guidelines
from annotations.forms import AddAnnotators, Invite
from annotations.invitations import open_invitations
from annotations.models import Campaign
from annotations.monitor import monitor_of, recent_labels, visible_campaigns, with_counts
from bank.models import Item

PAGE = 50


@requires("read-judging")
@require_safe
def campaign_list(request: HttpRequest) -> HttpResponse:
    """The campaigns, newest first."""
    viewer = cast(User, request.user)
    page = Paginator(with_counts(visible_campaigns(viewer)), PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "campaigns",
        "page": page,
        "ballots": ballots.BALLOTS,
        "may_write": allowed(viewer, "write-campaigns"),
        "has_items": Item.objects.exists(),
    }
    return render(request, "annotations/campaigns.html", context)


@requires("read-judging")
@require_safe
def campaign_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """How far the campaign is, who labels how fast and how consistently."""
    viewer = cast(User, request.user)
    campaign = get_object_or_404(visible_campaigns(viewer), pk=pk)
    may_write = allowed(viewer, "write-campaigns")
    noted = request.GET.get("show") == "noted"
    context: dict[str, Any] = {
        "section": "campaigns",
        "campaign": campaign,
        "ballot": ballots.BALLOTS.get(campaign.protocol),
        "monitor": monitor_of(campaign, viewer),
        "recent": recent_labels(campaign, viewer, noted=noted),
        "noted": noted,
        "may_write": may_write,
        "board": _board(campaign),
        "tab": "overview",
        "rendered": guidelines.rendered(campaign.guidelines, campaign),
    }
    if may_write and not campaign.imported:
        context |= {"adding": AddAnnotators(campaign=campaign), "inviting": Invite()}
        context["invitations"] = open_invitations(campaign, request)
    return render(request, "annotations/campaign.html", context)


@requires("write-campaigns")
@require_POST
def campaign_open(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, actions.open_campaign)


@requires("write-campaigns")
@require_POST
def campaign_pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, actions.pause_campaign)


@requires("write-campaigns")
@require_POST
def campaign_close(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, actions.close_campaign, now=timezone.now())


def _act(request: HttpRequest, pk: int, action: Callable[..., None], **given: Any) -> HttpResponse:
    try:
        action(campaign=get_object_or_404(Campaign, pk=pk), **given)
    except actions.Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("annotations:campaign-detail", pk)


def _board(campaign: Campaign) -> str:
    """The address of the leaderboard that these labels feed, where there is one."""
    try:
        return reverse("leaderboard:models", args=[campaign.benchmark])
    except NoReverseMatch:
        return ""
