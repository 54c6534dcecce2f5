"""Sending what webhooks are told, signed by the scheme of Standard Webhooks.

Only hosts in WEBHOOK_HOSTS are called, as those in JUDGE_HOSTS are: no private address, no redirect, few bytes.
"""

import asyncio
from datetime import timedelta
from urllib.parse import urlsplit

import standardwebhooks
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from accounts import notices
from accounts.jobs import defer
from accounts.loop import db
from accounts.models import Delivery, Webhook
from judging.endpoints.answers import Failed
from judging.endpoints.client import Endpoints
from judging.endpoints.judges import host_allowed
from judging.models.judges import Route
from judging.webhooks import switch_webhook

# Before the next try; after the last the delivery is given up, a day after the first.
WAITS = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 820)]
FAILS_FOR = timedelta(days=5)  # until a webhook is switched off
TIMEOUT, REPLY_LIMIT = 10.0, 64_000  # seconds, bytes
AT_ONCE = 20


async def deliver() -> None:
    """Send what is due, all at once. To be called in ``accounts.loop.run``."""
    endpoints = Endpoints()
    sent = await asyncio.gather(*(_send(one, endpoints) for one in await db(_take_due)), return_exceptions=True)
    await endpoints.close()
    for error in filter(None, sent):
        raise error  # of the database: those that were not noted are sent again


def _take_due() -> list[Delivery]:
    now = timezone.now()
    due = Delivery.objects.filter(not_before__lte=now, webhook__active=True).select_related("webhook", "webhook__by")
    taken = list(due.order_by("not_before")[:AT_ONCE])
    Delivery.objects.filter(pk__in=[delivery.pk for delivery in taken]).update(tries=F("tries") + 1, tried_at=now)
    if len(taken) == AT_ONCE:
        defer("deliver")
    return taken


async def _send(delivery: Delivery, endpoints: Endpoints) -> None:
    webhook, now = delivery.webhook, timezone.now()
    if not host_allowed(webhook.url, settings.WEBHOOK_HOSTS):
        await db(_note, delivery, words="its host is not in WEBHOOK_HOSTS any more")
        return
    name = f"msg_{delivery.pk.hex}"
    signature = {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": standardwebhooks.Webhook(webhook.secret).sign(name, now, delivery.body),
    }
    parts = urlsplit(webhook.url)
    endpoint = endpoints.at(Route(f"{parts.scheme}://{parts.netloc}", tuple(settings.WEBHOOK_HOSTS), parts.query))
    try:
        answer = await endpoint.send(
            "POST",
            parts.path or "/",
            delivery.body.encode(),
            key="",
            timeout=TIMEOUT,
            limit=REPLY_LIMIT,
            signature=signature,
        )
    except Failed as failed:
        await db(_note, delivery, words=failed.words)
    else:
        await db(_note, delivery, status=answer.status)


@transaction.atomic
def _note(delivery: Delivery, *, status: int | None = None, words: str = "") -> None:
    """Write down how a try ended. After five days of nothing else the webhook is switched off."""
    now, tries = timezone.now(), delivery.tries + 1
    delivery.status, webhook = status, delivery.webhook
    again = now + WAITS[tries - 1] if not delivery.is_taken and tries <= len(WAITS) else None
    own = Delivery.objects.filter(pk=delivery.pk)
    if not own.update(status=status, words=words[:200], not_before=again):
        return  # it was removed meanwhile
    if delivery.is_taken:
        Webhook.objects.filter(pk=webhook.pk, failing_since__isnull=False).update(failing_since=None)
        return
    Webhook.objects.filter(pk=webhook.pk, failing_since=None).update(failing_since=now)
    webhook.refresh_from_db()
    if webhook.active and webhook.failing_since and now - webhook.failing_since >= FAILS_FOR:
        switch_webhook(webhook=webhook, active=False)
        text = f"The webhook to {urlsplit(webhook.url).hostname} has failed for five days and is switched off."
        key = f"webhook-{webhook.pk}-{now:%Y-%m-%d}"
        notices.tell(webhook.by, key=key, text=text, link=reverse("judging:webhooks"))
