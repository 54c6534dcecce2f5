"""The statements by which slots are taken, in plain SQL that SQLite and PostgreSQL both run.

They are part of every step of every annotator's work, and the ORM takes ten times as long to put one of them together
as the database takes to run it. All but ``run_out`` belong inside a transaction: on SQLite that is the lock as well
(IMMEDIATE), on PostgreSQL the row that ``FOR UPDATE`` names stays locked to its end.
"""

from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

from django.db import connection

from annotations.models import Annotator, Campaign, CampaignItem

# How items are handed out. Least labelled first spreads the labels; the others finish one item after the other.
ORDERS = {
    Campaign.Order.LEAST: "taken, priority DESC, position",
    Campaign.Order.SHUFFLED: "position",  # which are dealt by the campaign's seed
    Campaign.Order.FIXED: "position",
    Campaign.Order.DISPUTED: "priority DESC, taken, position",
}

RUN_OUT = """
SELECT id, campaign_item_id FROM annotations_assignment WHERE state = 'leased' AND lease_until < %s LIMIT 500
"""

# Nobody gets an item of a sample that staff have withdrawn, see CampaignItemQuerySet.given_out.
GIVEN_OUT = """EXISTS (
    SELECT 1 FROM bank_item AS item JOIN bank_sample AS sample ON sample.id = item.sample_id
    WHERE item.id = place.item_id AND sample.status = 'approved'
)"""

# What is held comes in the order it was leased, the others by when they were lost or given back.
BEGUN = """
SELECT mine.id, mine.state, place.id, place.taken, place.practice, place.practice OR place.gold IS NOT NULL
FROM annotations_assignment AS mine JOIN annotations_campaignitem AS place ON place.id = mine.campaign_item_id
WHERE mine.annotator_id = %s AND mine.state IN ('leased', 'expired', 'skipped') AND place.campaign_id = %s
    AND (mine.state = 'leased' OR {given_out})
ORDER BY CASE mine.state WHEN 'leased' THEN mine.leased_at ELSE mine.lease_until END, mine.id
"""

# The overlap is read as it is now: it may have shrunk since the campaign was read.
TAKE_FIRST = """
UPDATE annotations_campaignitem SET taken = taken + 1
WHERE taken < (SELECT overlap FROM annotations_campaign WHERE id = %(campaign)s) AND id = (
    SELECT id FROM annotations_campaignitem AS place
    WHERE campaign_id = %(campaign)s AND NOT practice AND gold IS NULL
    AND taken < (SELECT overlap FROM annotations_campaign WHERE id = %(campaign)s) AND NOT EXISTS (
        SELECT 1 FROM annotations_assignment WHERE campaign_item_id = place.id AND annotator_id = %(annotator)s
    ) AND {given_out}
    ORDER BY {order} LIMIT 1 {lock}
)
RETURNING *
"""

HELD_SLOTS = "SELECT slot FROM annotations_assignment WHERE campaign_item_id = %s AND slot IS NOT NULL"

RESTART = """
UPDATE annotations_assignment SET leased_at = %s, lease_until = %s
WHERE annotator_id = %s AND state = 'leased' AND EXISTS (
    SELECT 1 FROM annotations_campaignitem AS place WHERE place.id = campaign_item_id AND place.campaign_id = %s
)
"""


class Begun(NamedTuple):
    """An assignment that was begun and not submitted."""

    pk: int
    state: str
    item_id: int  # of the campaign
    taken: int
    practice: bool
    endless: bool  # its slots are without limit


def run_out(now: datetime) -> list[tuple[int, int]]:
    """Leases that are over, of all campaigns: assignment and campaign item. Some hundreds at most."""
    return _rows(RUN_OUT, _moment(now))


def begun(campaign: Campaign, annotator: Annotator) -> list[Begun]:
    """What this annotator holds, or had before and gave back or lost to the clock; the oldest first."""
    return [Begun(*row) for row in _rows(BEGUN.format(given_out=GIVEN_OUT), annotator.pk, campaign.pk)]


def take_first(campaign: Campaign, annotator: Annotator) -> CampaignItem | None:
    """Take a slot of the first item that has one free and is new to this annotator; the item, None without one."""
    locks = [""]
    if connection.features.has_select_for_update:
        # Step over those that others are taking; the second look waits for them instead.
        locks = ["FOR UPDATE SKIP LOCKED", "FOR UPDATE"]
    given = {"campaign": campaign.pk, "annotator": annotator.pk}
    order = ORDERS[Campaign.Order(campaign.order)]
    for lock in locks:
        for place in CampaignItem.objects.raw(TAKE_FIRST.format(given_out=GIVEN_OUT, order=order, lock=lock), given):
            return place
    return None


def free_slot(item_id: int) -> int:
    """The lowest slot that nobody holds. Whoever raised the item's ``taken`` has it to the end of the transaction."""
    held = {slot for (slot,) in _rows(HELD_SLOTS, item_id)}
    return next(slot for slot in count() if slot not in held)


def restart(campaign: Campaign, annotator: Annotator, *, now: datetime, until: datetime) -> int:
    """Begin the time of what this annotator holds anew; how many."""
    with connection.cursor() as cursor:
        cursor.execute(RESTART, [_moment(now), _moment(until), annotator.pk, campaign.pk])
        return int(cursor.rowcount)


def _rows(statement: str, *given: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return cursor.fetchall()


def _moment(moment: datetime) -> Any:
    """As the database stores it."""
    return connection.ops.adapt_datetimefield_value(moment)
