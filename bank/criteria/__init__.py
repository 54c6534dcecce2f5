"""The only readers of the hidden tables.

Every reader checks that it may, and writes one record to the access log. ``related_name="+"`` keeps templates,
serializers and filters from wandering here; an import contract lists who may import this module
(write ``import bank.criteria``, never ``from bank.criteria import ...`` for the readers).
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.db.models import Q

from accounts.rules import allowed
from bank.criteria.tables import AccessedSample, CriteriaAccess, Criterion, CriterionRevision, opened
from bank.database import bulk

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from accounts.models import User
    from bank.models import Sample

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from accounts.models import User
    from bank.models import Sample


def record(*, sample_ids: Iterable[int], **values: Any) -> None:
    """Write one record to the access log."""
    ids = list(dict.fromkeys(sample_ids))
    with transaction.atomic():
        access = CriteriaAccess.objects.create(sample_count=len(ids), **values)
        bulk.insert(AccessedSample, ("access_id", "sample_id"), [(access.pk, pk) for pk in ids])


@dataclass(frozen=True, slots=True)
class Text:
    """A criterion as its readers get it."""

    key: str
    kind: str
    category: str
    weight: float | None
    shown_to: str
    version: int
    text: str


def for_staff(*, user: "User", samples: Iterable["Sample"], how: str, reason: str = "") -> dict[int, list[Text]]:
    """Criteria by sample id for a curator or administrator. Raises PermissionDenied for anybody else."""

    if not allowed(user, "read-criteria"):
        raise PermissionDenied("Criteria are for curators and administrators.")
    ids = [sample.pk for sample in samples]
    record(who=user, how=how, sample_ids=ids, reason=reason)
    return _read(Q(sample_id__in=ids))


def for_command(*, command: str, sample_ids: Sequence[int], reason: str) -> dict[int, list[Text]]:
    """Criteria by sample id for whoever has the machine's command line and says why."""
    if not reason.strip():
        raise PermissionDenied("Say why criteria are read: --reason TEXT.")
    record(by_command=command, how="command", sample_ids=sample_ids, reason=reason)
    return _read(Q(sample_id__in=sample_ids))


def note_quoted(
    *, sample_ids: Iterable[int], how: str, reason: str, user: "User | None" = None, command: str = ""
) -> None:
    """Log that texts which can quote these samples' criteria leave, to a person or by a command.

    Raises PermissionDenied below staff, and without a reason.
    """

    if user is not None and not allowed(user, "read-analyses"):
        raise PermissionDenied("What judges wrote is for curators and administrators.")
    if not reason.strip():
        raise PermissionDenied("Say why texts that can quote criteria leave.")
    record(who=user, by_command=command, how=how, sample_ids=sample_ids, reason=reason)


def for_judging(*, run: "JudgingRun", sample_ids: Sequence[int]) -> dict[int, list[Text]]:
    """Criteria by sample id for the prompts of a run whose settings use them."""
    if not run.reads_criteria:
        raise PermissionDenied(f"Run {run.pk} judges without criteria.")
    record(how="judging", about=f"run {run.pk}", sample_ids=sample_ids)
    return _read(Q(sample_id__in=sample_ids))


def for_assignment(assignment: "AssignmentOfCampaign") -> list[Text]:
    """The criteria that a campaign shows to the annotator of this assignment: none unless it was set to."""
    if not assignment.shows_criteria:
        return []
    sample = assignment.sample
    if sample.split in sample.benchmark.hidden_splits:
        return []
    record(who=assignment.reader, how="labelling", about=f"assignment {assignment.pk}", sample_ids=[sample.pk])
    shown = [Criterion.ShownTo.CAMPAIGN, Criterion.ShownTo.PUBLIC]
    return _read(Q(sample_id=sample.pk, shown_to__in=shown)).get(sample.pk, [])


def for_public(*, samples: Iterable["Sample"]) -> dict[int, list[Text]]:
    """Criteria by sample id that their benchmark publishes to everybody: of approved samples of public benchmarks.

    Not those of hidden splits. Not logged: there is nothing to guard.
    """
    from bank.models.catalogue import in_hidden_splits

    return _read(
        Q(
            sample_id__in=[sample.pk for sample in samples],
            shown_to=Criterion.ShownTo.PUBLIC,
            sample__status="approved",
            sample__benchmark__visibility="public",
        )
        & ~in_hidden_splits("sample__")
    )


def open_parts(parts: dict[str, Any] | None, keys: set[str]) -> dict[str, Any] | None:
    """Points by component as those may see them who know only the public ones, whose ``keys`` these are."""
    return None if parts is None else {key: points for key, points in parts.items() if key in keys} or None


@opened()
def public_keys(sample_ids: Iterable[int]) -> dict[int, set[str]]:
    """The keys of public criteria by sample id. What others are called, and how many there are, is hidden."""
    found: dict[int, set[str]] = defaultdict(set)
    shown = Criterion.objects.filter(sample_id__in=set(sample_ids), shown_to=Criterion.ShownTo.PUBLIC)
    for sample, key in shown.order_by().values_list("sample_id", "key"):
        found[sample].add(key)
    return found


@opened()
def shown_weights(
    *, sample_ids: Iterable[int], by_campaign: bool, lacking: "Callable[[str], float | None] | None" = None
) -> dict[int, list[tuple[str, float]]]:
    """Key and weight of the components of each sample, in order, where annotators see every one of them.

    ``by_campaign``: those that campaigns may show, too. ``lacking`` tells by its key what a component is worth that
    has no weight. A sample with a hidden component, with one of no weight at all, or of a hidden split is left out.
    Holds no text, so it is not logged.
    """
    from bank.models.catalogue import in_hidden_splits

    found: dict[int, list[Any]] = defaultdict(list)
    rows = Criterion.objects.filter(sample_id__in=list(sample_ids), kind=Criterion.Kind.COMPONENT)
    rows = rows.exclude(in_hidden_splits("sample__")).order_by("sample_id", "position", "pk")
    columns = ("sample_id", "key", "weight", "shown_to", "sample__benchmark__visibility")
    for sample, key, weight, shown_to, visibility in rows.values_list(*columns):
        public = shown_to == Criterion.ShownTo.PUBLIC and (by_campaign or visibility == "public")
        seen = public or (by_campaign and shown_to == Criterion.ShownTo.CAMPAIGN)
        worth = weight or (lacking(key) if lacking else None)
        found[sample].append((key, worth) if seen and worth else None)
    return {sample: parts for sample, parts in found.items() if None not in parts}


@opened()
def for_redaction(*, reader: "User", sample: "Sample", about: str) -> list[str]:
    """The texts that a redactor takes out of what ``reader`` is shown: every criterion that is not public."""
    record(who=reader, how="redaction", about=about, sample_ids=[sample.pk])
    hidden = Criterion.objects.filter(sample=sample).exclude(shown_to=Criterion.ShownTo.PUBLIC)
    return [row.text for row in hidden.order_by("pk")]


@opened()
def guarded(sample_ids: Iterable[int]) -> set[int]:
    """Which of these samples have, or had, a criterion that is not public. Holds no text, so it is not logged."""
    ids = set(sample_ids)
    hidden = Criterion.objects.filter(sample_id__in=ids).exclude(shown_to=Criterion.ShownTo.PUBLIC)
    edited = CriterionRevision.objects.filter(sample_id__in=ids)
    return {pk for rows in (hidden, edited) for pk in rows.order_by().values_list("sample_id", flat=True)}


@opened()
def for_scoring(*, submission: "KeyedSubmission", sample_ids: Sequence[int]) -> dict[int, str]:
    """Answer keys by sample id, for the scores of a submission; samples without a key are left out."""
    if submission.state in ("failed", "withdrawn"):
        raise PermissionDenied(f"Submission {submission.pk} is {submission.state}: it is not scored.")
    record(how="scoring", about=f"submission {submission.pk}", sample_ids=sample_ids)
    keys = Criterion.objects.filter(sample_id__in=sample_ids, kind=Criterion.Kind.ANSWER_KEY)
    return {row.sample_id: row.text for row in keys.order_by("-position", "-pk")}


EDITED = ("kind", "category", "weight", "shown_to", "text")


@opened()
def edit(*, user: "User", sample: "Sample", rows: Sequence[dict[str, Any]]) -> list[str]:
    """Make these rows ({key, kind, category, weight, shown_to, text}, in order) the sample's criteria.

    A changed criterion gets the next version, and every change is kept with its old and new text, encrypted. Returns
    what changed in words that hold no hidden text. Call it inside a transaction. Raises PermissionDenied.
    """

    if not allowed(user, "write-bank"):
        raise PermissionDenied("Criteria are for curators and administrators.")
    stored = {row.key: row for row in Criterion.objects.select_for_update().filter(sample=sample)}
    said: list[str] = []
    kept: list[CriterionRevision] = []

    def keep(key: str, version: int, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        texts = [None if side is None else json.dumps(side, ensure_ascii=False) for side in (old, new)]
        kept.append(CriterionRevision(sample=sample, key=key, version=version, by=user, old=texts[0], new=texts[1]))

    wanted = {row["key"] for row in rows}
    past = list(CriterionRevision.objects.filter(sample=sample).only("key", "version"))
    for key, row in stored.items():
        if key not in wanted:
            keep(key, row.version, {name: getattr(row, name) for name in EDITED}, None)
            said.append(f"{key} removed")
            row.delete()
    for position, given in enumerate(rows):
        new = {name: given[name] for name in EDITED}
        found = stored.get(given["key"])
        if found is None:
            # Past what was removed under the same key: a fingerprint never comes back.
            version = 1 + max((one.version for one in past if one.key == given["key"]), default=0)
            Criterion.objects.create(sample=sample, key=given["key"], position=position, version=version, **new)
            keep(given["key"], version, None, new)
            said.append(f"{given['key']} added")
            continue
        old = {name: getattr(found, name) for name in EDITED}
        moved = found.position != position
        if old != new or moved:
            for name in EDITED:
                setattr(found, name, new[name])
            found.position = position
            if old != new:
                found.version += 1
                keep(found.key, found.version, old, new)
                said.append(f"{found.key} changed")
            else:
                said.append(f"{found.key} moved")
            found.save()
    CriterionRevision.objects.bulk_create(kept)
    return said


@dataclass(frozen=True, slots=True)
class Change:
    """A kept change of a criterion as its reader gets it."""

    key: str
    version: int
    by: str
    at: "datetime"
    old: dict[str, Any] | None
    new: dict[str, Any] | None


@opened()
def changes_for_staff(*, user: "User", sample: "Sample") -> list[Change]:
    """Every kept change of a sample's criteria, newest first. Logged. Raises PermissionDenied."""

    if not allowed(user, "read-criteria"):
        raise PermissionDenied("Criteria are for curators and administrators.")
    record(who=user, how="history", sample_ids=[sample.pk])
    rows = CriterionRevision.objects.filter(sample=sample).select_related("by")
    return [Change(row.key, row.version, str(row.by or ""), row.at, _side(row.old), _side(row.new)) for row in rows]


def _side(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)


@opened()
def count_of(sample_ids: Iterable[int]) -> dict[int, int]:
    """How many criteria each of these samples has. Tells nothing of what they say, so it is not logged."""
    rows = Criterion.objects.filter(sample_id__in=list(sample_ids)).order_by()
    return dict(rows.values_list("sample_id").annotate(n=models.Count("pk")))


@opened()
def fingerprint(samples: "models.QuerySet[Sample]") -> str:
    """Tells whether the criteria of these samples are the same versions as before. Holds nothing of their text."""
    digest = hashlib.sha256()
    rows = Criterion.objects.filter(sample__in=samples.order_by()).order_by("pk").values_list("pk", "version")
    for pk, version in rows.iterator():
        digest.update(f"{pk}:{version};".encode())
    return digest.hexdigest()


@opened()
def _read(condition: Q) -> dict[int, list[Text]]:
    found: dict[int, list[Text]] = defaultdict(list)
    for row in Criterion.objects.filter(condition).order_by("sample_id", "position", "pk"):
        found[row.sample_id].append(
            Text(row.key, row.kind, row.category, row.weight, row.shown_to, row.version, row.text)
        )
    return dict(found)


class JudgingRun(Protocol):
    """What a run must tell about itself to read criteria."""

    pk: Any

    @property
    def reads_criteria(self) -> bool: ...


class AssignmentOfCampaign(Protocol):
    """What an assignment must tell about itself to read criteria."""

    pk: Any

    @property
    def shows_criteria(self) -> bool: ...

    @property
    def sample(self) -> "Sample": ...

    @property
    def reader(self) -> "User": ...


class KeyedSubmission(Protocol):
    """What a submission must tell about itself to be held against the keys."""

    pk: Any
    state: str
