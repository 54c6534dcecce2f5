"""What the pages of campaigns share: their frame, the way back when something is refused, numbers that forms send."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accounts.rules import allowed, through
from annotations.assignment.errors import Refused
from annotations.campaigns.blinding import why_not_opened
from annotations.models import Campaign
from bank.errors import BadInput
from bank.forms.fields import whole_number

OF_CAMPAIGN = through(Campaign, "benchmark__slug")


def render_campaign(
    request: HttpRequest, template: str, campaign: Campaign, tab: str, *, status: int = 200, **context: Any
) -> HttpResponse:
    """One of the tabs of a campaign."""
    context |= {"section": "campaigns", "campaign": campaign, "tab": tab}
    context["may_write"] = allowed(request.user, "write-campaigns", of=campaign.benchmark)
    if context["may_write"] and campaign.blind and campaign.state in Campaign.GOING:
        context["why_not_opened"] = why_not_opened(campaign)
    return render(request, f"annotations/{template}.html", context, status=status)


def back_on_refusal(page: str) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """For a view that changes what ``pk`` names: says what was refused on this page of it."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, pk: int, **options: Any) -> HttpResponse:
            try:
                return view(request, pk, **options)
            except (BadInput, Refused) as refusal:
                messages.error(request, str(refusal))
                return redirect(page, pk)

        return guarded

    return decorate


def row_number(text: str) -> int:
    """The number of a row in a form or an address; 0, which no row has, for anything else."""
    return whole_number(text, below=10**9) or 0
