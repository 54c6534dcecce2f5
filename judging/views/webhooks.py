"""Webhooks, for administrators."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404

from accounts.http import done, form_page, page_of
from accounts.models import Delivery, User, Webhook
from accounts.rules import requires
from accounts.webhooks import EVENTS
from bank.forms.fields import whole_number
from bank.views.common import faults_in
from judging import webhooks as hooks
from judging.forms import WebhookForm
from judging.views import PAGE, SignedInRequest, page


@requires("administer")
@form_page
def webhooks(request: SignedInRequest) -> HttpResponse:
    """All webhooks, a form for a new one, and what was delivered. A secret is shown once."""
    context: dict[str, Any] = {"section": "webhooks", "hosts": settings.WEBHOOK_HOSTS, "events": EVENTS}
    adds = request.method == "POST" and "do" not in request.POST
    form = WebhookForm(request.POST if adds else None)
    if adds and form.is_valid():
        with faults_in(form):
            context["made"] = hooks.add_webhook(**form.cleaned_data, by=request.user)
            form = WebhookForm()
    elif request.method == "POST" and not adds:
        return done(request, _apply(request.POST, request.user), "judging:webhooks")
    log = Delivery.objects.select_related("webhook")
    context |= {
        "form": form,
        "webhooks": Webhook.objects.select_related("by"),
        "page": page_of(request, log, PAGE),
    }
    return page(request, "judging/webhooks.html", context, refused=bool(form.errors))


def _apply(posted: QueryDict, by: User) -> str:
    """Carry out the action on a webhook or a delivery; returns what was done."""
    do, asked = posted.get("do", ""), posted.get("of", "")
    if do == "again":
        hooks.send_again(delivery=get_object_or_404(Delivery, pk=_uuid(asked)))
        return "It is sent again as soon as the worker is free."
    webhook = get_object_or_404(Webhook, pk=whole_number(asked))
    if do == "test":
        hooks.send_test(webhook=webhook)
        return "A test is on its way; the log below says what became of it."
    if do == "remove":
        hooks.remove_webhook(webhook=webhook, by=by)
        return "The webhook is removed."
    hooks.switch_webhook(webhook=webhook, active=do == "on", by=by)
    return f"The webhook is switched {'on' if do == 'on' else 'off'}."


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
