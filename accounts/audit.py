"""The audit log: who signed in, and who published, released or changed what.

Each entry is chained to the one before it by a keyed hash, so nobody can change or remove one without the
installation's key. Truncation at the end shows when compared with a number and digest noted elsewhere.

What tells who a person is can be erased from entries. Their digests stay as they are, so the chain and what was noted
elsewhere hold, and a second keyed hash vouches for what such an entry still says.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.installation_key import keyed
from accounts.models import AuditEntry, AuditHead

ONLY = 1
# The recorded actions, with their texts for the page. Any other action is an error.
ACTIONS = {
    "sign-in": "signed in",
    "sign-in-failed": "failed to sign in",
    "sign-out": "signed out",
    "account-made": "made an account",
    "role-changed": "changed a role",
    "password-changed": "changed a password",
    "second-factor-made": "set up two-factor authentication",
    "second-factor-ended": "ended two-factor authentication",
    "second-factor-failed": "typed a wrong code",
    "sign-on-connected": "connected an account with single sign-on",
    "address-changed": "changed an e-mail address",
    "account-switched": "switched an account on or off",
    "account-erased": "erased who a person is",
    "token-made": "made a token for the API",
    "token-ended": "ended a token for the API",
    "webhook-made": "added a webhook",
    "webhook-ended": "removed a webhook",
    "webhook-switched": "switched a webhook on or off",
    "right-granted": "granted a right for a benchmark",
    "right-ended": "ended a right for a benchmark",
    "team-made": "made a team",
    "team-ended": "ended a team",
    "team-changed": "changed who is in a team",
    "benchmark-published": "published a benchmark",
    "benchmark-withdrawn": "made a benchmark private",
    "campaign-opened-again": "opened a closed campaign again",
    "finished-opened": "opened the finished items of a blind campaign",
    "keys-opened": "opened the keys of a benchmark to everybody",
    "saw-nothing-said": "said of labels or judgments that nothing hidden was seen",
    "half-held-out": "held out a half of what people labelled",
    "held-out-shown": "asked for a judge's figures on what is held out",
    "edition-published": "published an edition of a board",
    "release-proposed": "proposed analyses for release",
    "release-confirmed": "released analyses",
    "release-ended": "took a release back",
    "submission-released": "released a submission's result",
    "criteria-exported": "exported criteria or analyses",
    "keys-rotated": "encrypted everything with a new key",
}
OF_ACCOUNTS = (
    "account-made",
    "role-changed",
    "password-changed",
    "address-changed",
    "account-switched",
    "token-made",
    "second-factor-ended",
    "sign-on-connected",
    "right-granted",
    "right-ended",
    "team-changed",
)
EMPTY = "0" * 64


@dataclass(frozen=True, slots=True)
class Broken:
    """An entry that does not match the one before it."""

    number: int
    why: str


def record(
    action: str,
    *,
    by: AbstractBaseUser | None = None,
    name: str = "",
    command: str = "",
    about: str = "",
    address: str = "",
    **details: Any,
) -> AuditEntry:
    """Add an entry, in the caller's transaction. ``details`` are plain values without hidden text."""
    if action not in ACTIONS:
        raise KeyError(f"{action!r} is not in accounts.audit.ACTIONS")
    with transaction.atomic():
        AuditHead.objects.get_or_create(pk=ONLY, defaults={"digest": EMPTY})
        head = AuditHead.objects.select_for_update().get(pk=ONLY)
        entry = AuditEntry(
            number=head.number + 1,
            at=timezone.now(),
            action=action,
            who_id=by.pk if by else None,
            name=(name or (by.get_username() if by else ""))[:150],
            command=command[:100],
            about=about[:200],
            address=address[:45],
            details=details,
        )
        entry.digest = digest_of(entry, head.digest)
        entry.save()
        head.number, head.digest = entry.number, entry.digest
        head.save()
    return entry


def digest_of(entry: AuditEntry, before: str) -> str:
    """The keyed hash of an entry and the digest before it."""
    return keyed("audit", _as_json(entry, before=before))


def _as_json(entry: AuditEntry, **besides: str) -> str:
    names = ("number", "action", "who_id", "name", "command", "about", "address", "details")
    values = {name: getattr(entry, name) for name in names} | {"at": entry.at.isoformat()} | besides
    return json.dumps(values, sort_keys=True, ensure_ascii=False)


def erase(person: AbstractBaseUser, names: Collection[str], *, now_called: str) -> None:
    """Take a person's names and addresses out of all entries, in the caller's transaction."""
    by_name, about = (reduce(or_, (Q(**{f"{field}__iexact": name}) for name in names)) for field in ("name", "about"))
    theirs = Q(who=person.pk) | by_name
    for entry in AuditEntry.objects.filter(theirs | (about & Q(action__in=OF_ACCOUNTS))).order_by("number").iterator():
        if entry.who_id == person.pk or _is_one_of(names, entry.name):
            entry.name, entry.address = now_called, ""
        if entry.action in OF_ACCOUNTS and _is_one_of(names, entry.about):
            entry.about = now_called
        AuditEntry.objects.erase(entry, erased=_erased(entry))


def _is_one_of(names: Collection[str], text: str) -> bool:
    return text.casefold() in {name.casefold() for name in names}


def _erased(entry: AuditEntry) -> str:
    """The keyed hash of an entry from which something was erased: of what it says now, and its digest."""
    return keyed("audit-erased", _as_json(entry, digest=entry.digest))


def broken() -> Iterator[Broken]:
    """Every place where the chain is broken, oldest first."""
    before, expected = EMPTY, 1
    for entry in AuditEntry.objects.order_by("number").iterator():
        if entry.number != expected:
            yield Broken(expected, f"entries {expected} to {entry.number - 1} are missing")
        elif entry.erased != _erased(entry) if entry.erased else entry.digest != digest_of(entry, before):
            yield Broken(entry.number, "was changed, or an entry before it was replaced")
        before, expected = entry.digest, entry.number + 1
    head = AuditHead.objects.filter(pk=ONLY).first()
    if head is None and expected == 1:
        return
    if head is None or (head.number, head.digest) != (expected - 1, before):
        yield Broken(expected, "the log was truncated here, or its end was replaced")
