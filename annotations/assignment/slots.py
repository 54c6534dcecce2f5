"""SQL for taking and freeing slots, written to run on both SQLite and PostgreSQL.

These statements run at every step of every annotator's work, and the ORM needs ten times as long to build one as the
database needs to run it. All but ``expired_leases`` must run inside a transaction. On SQLite the transaction is also
the lock (IMMEDIATE); on PostgreSQL the row selected ``FOR UPDATE`` stays locked until the transaction ends.
"""

import random
from datetime import datetime
from itertools import count, product
from typing import Any, NamedTuple

from django.db import connection

from accounts.installation_key import keyed
from annotations.models import Annotator, Campaign, CampaignItem
from bank import exposure

# Least labelled first spreads the labels over the items; the other orders finish one item after another.
ORDERS = {
    Campaign.Order.LEAST: "taken, priority DESC, position",
    Campaign.Order.SHUFFLED: "position",  # positions are dealt from the campaign's seed
    Campaign.Order.FIXED: "position",
    Campaign.Order.DISPUTED: "priority DESC, taken, position",
    # A shuffle that needs no list: two lines through a prime field, multiplied, drawn for the person (see `_lines`).
    Campaign.Order.PERSON: "(CAST(position AS bigint) * %(a)s + %(b)s) %% {prime} "
    "* ((CAST(position AS bigint) * %(c)s + %(d)s) %% {prime}) %% {prime}, position",
}
PRIME = 2**31 - 1  # products of two numbers below it fit into 64 bits

EXPIRED = """
SELECT id, campaign_item_id FROM annotations_assignment WHERE state = 'leased' AND lease_until < %s LIMIT 500
"""

# As CampaignItemQuerySet.assignable: no items of withdrawn samples, no verdicts under review that tell a closed key.
ASSIGNABLE = f"""EXISTS (
    SELECT 1 FROM bank_item AS item JOIN bank_sample AS sample ON sample.id = item.sample_id
    WHERE item.id = ci.item_id AND sample.status = 'approved' AND NOT EXISTS (
        SELECT 1 FROM judging_judgment AS verdict JOIN judging_run AS run ON run.id = verdict.run_id
        WHERE verdict.id IN (ci.reviewed_id, ci.against_id) AND (
            ((run.held | item.held) & sample.closed & {exposure.KEYED:d}) > 0
            OR (item.outside AND (run.held & sample.closed) > 0)
        )
    )
)"""  # noqa: S608 (a number of ours)

# Open assignments in the order they were leased, the others by when they expired or were skipped.
UNFINISHED = """
SELECT mine.id, mine.state, ci.id, ci.taken, ci.practice, ci.practice OR ci.gold IS NOT NULL OR ci.decoy
FROM annotations_assignment AS mine JOIN annotations_campaignitem AS ci ON ci.id = mine.campaign_item_id
WHERE mine.annotator_id = %s AND mine.state IN ('leased', 'expired', 'skipped') AND ci.campaign_id = %s
    AND (mine.state = 'leased' OR {assignable})
ORDER BY CASE mine.state WHEN 'leased' THEN mine.leased_at ELSE mine.lease_until END, mine.id
"""

# Reads the overlap afresh: it may have shrunk since the campaign was loaded.
TAKE_NEXT = """
UPDATE annotations_campaignitem SET taken = taken + 1
WHERE taken < (SELECT overlap FROM annotations_campaign WHERE id = %(campaign)s) AND id = (
    SELECT id FROM annotations_campaignitem AS ci
    WHERE campaign_id = %(campaign)s AND NOT practice AND gold IS NULL AND decoy = %(decoy)s
    AND taken < (SELECT overlap FROM annotations_campaign WHERE id = %(campaign)s) AND NOT EXISTS (
        SELECT 1 FROM annotations_assignment WHERE campaign_item_id = ci.id AND annotator_id = %(annotator)s
    ) AND {assignable}
    ORDER BY {order} LIMIT 1 {lock}
)
RETURNING *
"""

HELD_SLOTS = "SELECT slot FROM annotations_assignment WHERE campaign_item_id = %s AND slot IS NOT NULL"

RESTART_LEASES = """
UPDATE annotations_assignment SET leased_at = %s, lease_until = %s
WHERE annotator_id = %s AND state = 'leased' AND EXISTS (
    SELECT 1 FROM annotations_campaignitem AS ci WHERE ci.id = campaign_item_id AND ci.campaign_id = %s
)
"""


class Unfinished(NamedTuple):
    """An assignment without a label: leased, expired or skipped."""

    pk: int
    state: str
    campaign_item_id: int
    taken: int
    practice: bool
    unlimited: bool  # a gold or practice item or a decoy, which everyone gets


def expired_leases(now: datetime) -> list[tuple[int, int]]:
    """Expired leases in all campaigns, at most 500: (assignment, campaign item)."""
    return _rows(EXPIRED, _db_datetime(now))


def unfinished(campaign: Campaign, annotator: Annotator) -> list[Unfinished]:
    """This annotator's assignments without a label in the campaign, oldest first."""
    rows = _rows(UNFINISHED.format(assignable=ASSIGNABLE), annotator.pk, campaign.pk)
    return [Unfinished(*row) for row in rows]


def take_next_item(campaign: Campaign, annotator: Annotator) -> CampaignItem | None:
    """Take a slot of the next item that has a free one and is new to this annotator. None if there is no such item.

    Decoys come when nothing else does and they lack labels: they have places of their own, see ``quality``.
    """
    locks = [""]
    if connection.features.has_select_for_update:
        # First skip items that others are taking right now; if nothing is left, wait for those too.
        locks = ["FOR UPDATE SKIP LOCKED", "FOR UPDATE"]
    order = ORDERS[Campaign.Order(campaign.order)].format(prime=PRIME)
    lines = _lines(campaign, annotator) if campaign.order == Campaign.Order.PERSON else {}
    for decoy, lock in product((False, True), locks):
        statement = TAKE_NEXT.format(assignable=ASSIGNABLE, order=order, lock=lock)
        parameters = {"campaign": campaign.pk, "annotator": annotator.pk, "decoy": decoy} | lines
        for campaign_item in CampaignItem.objects.raw(statement, parameters):
            return campaign_item
    return None


def _lines(campaign: Campaign, annotator: Annotator) -> dict[str, int]:
    """What makes this person's order of the items, the same in every session. Drawn with the installation's key."""
    rng = random.Random(keyed("order of items", f"{campaign.seed}:{campaign.pk}:{annotator.pk}"))
    return {name: rng.randrange(1, PRIME) for name in "abcd"}


def free_slot(campaign_item_id: int) -> int:
    """The lowest free slot number.

    The caller has raised the item's ``taken`` in this transaction, so nobody else can take that slot.
    """
    held = {slot for (slot,) in _rows(HELD_SLOTS, campaign_item_id)}
    return next(slot for slot in count() if slot not in held)


def restart_leases(campaign: Campaign, annotator: Annotator, *, now: datetime, until: datetime) -> int:
    """Restart the time of all leases this annotator holds in the campaign. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(RESTART_LEASES, [_db_datetime(now), _db_datetime(until), annotator.pk, campaign.pk])
        return int(cursor.rowcount)


def _rows(statement: str, *parameters: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def _db_datetime(moment: datetime) -> Any:
    """The value in the form the database stores."""
    return connection.ops.adapt_datetimefield_value(moment)
