"""What webhooks are told. Deliveries are stored with what they tell, in its transaction; a worker sends them."""

import json
from typing import Any

from django.utils import timezone

from accounts.jobs import defer
from accounts.models import Delivery, Webhook

EVENTS = {
    "run.finished": "a run is finished",
    "run.paused": "a run was paused, or its budget is used up",
    "run.failed": "a run stands still because its calls fail",
    "campaign.finished": "every item of a campaign has its labels",
    "campaign.closed": "a campaign is closed",
    "submission.scored": "a submission has its score",
    "submission.failed": "a submission did not pass, or was not judged",
    "release.published": "judges' analyses are released",
    "edition.published": "an edition of a board is published",
}
TEST = "test"


def tell(event: str, *, key: str, **data: Any) -> None:
    """Have an event delivered to every webhook that listens, once for each ``key``. Other apps say it through
    ``bank.announcements``, which leaves out what is not public.
    """
    if event not in EVENTS:
        raise KeyError(f"{event!r} is not in accounts.webhooks.EVENTS")
    for webhook in Webhook.objects.filter(active=True):
        if event in webhook.events:
            queue(webhook, event, key=f"{event}:{key}", data=data)


def queue(webhook: Webhook, event: str, *, key: str, data: dict[str, Any]) -> Delivery:
    """Store a delivery in the shape that Standard Webhooks recommend."""
    now = timezone.now()
    body = json.dumps({"type": event, "timestamp": now.isoformat(), "data": data}, ensure_ascii=False)
    made, _ = Delivery.objects.get_or_create(
        webhook=webhook, key=key, defaults={"event": event, "body": body, "not_before": now}
    )
    defer("deliver")
    return made
