"""Webhooks: adding, testing, switching and removing them. ``judging.work.deliveries`` sends what they are told."""

import base64
import secrets
from collections.abc import Collection

from django.db import transaction
from django.utils import timezone
from rest_framework import serializers

from accounts import audit
from accounts.jobs import defer
from accounts.models import Delivery, User, Webhook
from accounts.webhooks import EVENTS, TEST, queue
from bank.errors import BadInput
from judging.endpoints.judges import QUERY, check_address

MOST = 20


class WebhookIn(serializers.Serializer[object]):
    """An address and the events that it is told of."""

    url = serializers.CharField(max_length=500, help_text="Its host must be in WEBHOOK_HOSTS.")
    events = serializers.MultipleChoiceField(choices=list(EVENTS.items()), allow_empty=False)


@transaction.atomic
def add_webhook(*, url: str, events: Collection[str], by: User) -> tuple[Webhook, str]:
    """Add a webhook. Returns it and its secret, which is shown this once. Raises BadInput."""
    url = url.strip()
    address, _, query = url.partition("?")
    check_address(address, field="url", setting="WEBHOOK_HOSTS")
    if query and not QUERY.fullmatch(query):
        raise BadInput("A query is written as name=value, several joined by &.", "url")
    if Webhook.objects.count() >= MOST:
        raise BadInput(f"There are {MOST} webhooks, which is the most: remove one first.", "url")
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    listens = [event for event in EVENTS if event in events]
    webhook = Webhook.objects.create(url=url, events=listens, secret=secret, by=by)
    audit.record("webhook-made", by=by, about=address, webhook=webhook.pk, events=listens)
    return webhook, secret


@transaction.atomic
def remove_webhook(*, webhook: Webhook, by: User) -> None:
    """Remove a webhook with its log; what waits is not sent."""
    audit.record("webhook-ended", by=by, about=_without_query(webhook), webhook=webhook.pk)
    webhook.delete()


@transaction.atomic
def switch_webhook(*, webhook: Webhook, active: bool, by: User | None = None) -> None:
    """Switch a webhook on or off. What waits is not sent while it is off."""
    webhook.active, webhook.failing_since = active, None
    webhook.save(update_fields=["active", "failing_since"])
    command = "" if by else "worker"
    now = "on" if active else "off"
    audit.record("webhook-switched", by=by, command=command, about=_without_query(webhook), webhook=webhook.pk, now=now)


def _without_query(webhook: Webhook) -> str:
    """Its address for the audit log, which is never changed: a query often holds a key."""
    return webhook.url.partition("?")[0]


def send_test(*, webhook: Webhook) -> Delivery:
    """Have a delivery sent that tells nothing."""
    return queue(webhook, TEST, key=f"{TEST}:{secrets.token_hex(8)}", data={})


def send_again(*, delivery: Delivery) -> None:
    """Have a delivery sent once more, with its id of before, by which the other side knows it."""
    Delivery.objects.filter(pk=delivery.pk).update(not_before=timezone.now(), tries=0)
    defer("deliver")
