"""The only readers of the hidden tables.

Every reader checks its permission and writes one record to the access log. ``related_name="+"`` keeps templates,
serializers and filters away from these tables; an import contract lists who may import this module (write ``import
bank.criteria``, never ``from bank.criteria import ...``, for the readers).
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Protocol

from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.db.models import F, Q

from accounts.rules import Viewer, allowed, where
from bank import exposure
from bank.criteria.tables import AccessedSample, CriteriaAccess, Criterion, CriterionRevision, opened
from bank.database import bulk, chunks
from bank.models.catalogue import Sample, in_hidden_splits, known_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from accounts.models import User


def record(*, sample_ids: Iterable[int], **values: Any) -> None:
    """Write one record to the access log."""
    ids = list(dict.fromkeys(sample_ids))
    with transaction.atomic():
        access = CriteriaAccess.objects.create(sample_count=len(ids), **values)
        bulk.insert(AccessedSample, ("access_id", "sample_id"), [(access.pk, pk) for pk in ids])


@dataclass(frozen=True, slots=True)
class Text:
    """A criterion as its readers receive it."""

    key: str
    kind: str
    category: str
    weight: float | None
    shown_to: str
    version: int
    text: str


def _demand(user: "User", rule: str, sample_ids: Collection[int], words: str) -> None:
    """Raises PermissionDenied unless this person has the rule for the benchmarks of all of these samples."""
    if allowed(user, rule):
        return
    theirs = Sample.objects.filter(where(user, rule, "benchmark__"))
    found = sum(theirs.filter(pk__in=some).count() for some in chunks(sorted(set(sample_ids))))
    if not found or found < len(set(sample_ids)):
        raise PermissionDenied(words)


def for_staff(*, user: "User", samples: Iterable[Sample], how: str, reason: str = "") -> dict[int, list[Text]]:
    """Criteria by sample id for a curator or administrator. Raises PermissionDenied for anyone else."""

    ids = [sample.pk for sample in samples]
    _demand(user, "read-criteria", ids, "Criteria are for curators and administrators.")
    record(who=user, how=how, sample_ids=ids, reason=reason)
    return _read(Q(sample_id__in=ids))


def for_command(*, command: str, sample_ids: Sequence[int], reason: str) -> dict[int, list[Text]]:
    """Criteria by sample id for a command-line user who gives a reason."""
    if not reason.strip():
        raise PermissionDenied("Say why criteria are read: --reason TEXT.")
    record(by_command=command, how="command", sample_ids=sample_ids, reason=reason)
    return _read(Q(sample_id__in=sample_ids))


def log_quoted(
    *, sample_ids: Iterable[int], how: str, reason: str, user: "User | None" = None, command: str = ""
) -> None:
    """Log that texts which may quote these samples' criteria are handed out, to a person or by a command.

    Raises PermissionDenied below staff, and without a reason.
    """

    sample_ids = list(sample_ids)
    if user is not None:
        _demand(user, "read-analyses", sample_ids, "What judges wrote is for curators and administrators.")
    if not reason.strip():
        raise PermissionDenied("Say why texts that can quote criteria leave.")
    record(who=user, by_command=command, how=how, sample_ids=sample_ids, reason=reason)


def for_judging(*, run: "JudgingRun", sample_ids: Sequence[int], may_hold: int) -> dict[int, list[Text]]:
    """Criteria by sample id for the prompts of a run whose settings use them: what is open, and of what is closed the
    inputs in ``may_hold`` (``exposure.Inputs``). What closed ones the run thereby holds is noted on it.
    """
    if not run.reads_criteria:
        raise PermissionDenied(f"Run {run.pk} judges without criteria.")
    record(how="judging", about=f"run {run.pk}", sample_ids=sample_ids)
    texts = may_be_held(_read(Q(sample_id__in=sample_ids)), may_hold=may_hold)
    run.note_held(_closed_among(texts) & may_hold)
    return texts


def may_be_held(texts: dict[int, list[Text]], *, may_hold: int) -> dict[int, list[Text]]:
    """Of these criteria by sample id, those that a judge who may hold these inputs is shown."""
    closed = _closed_of(texts)
    return {
        pk: [text for text in of_sample if exposure.inputs_of(text.kind) & closed[pk] & exposure.KEYS & ~may_hold == 0]
        for pk, of_sample in texts.items()
    }


def _closed_of(sample_ids: Iterable[int]) -> dict[int, int]:
    return dict(Sample.objects.filter(pk__in=list(sample_ids)).order_by().values_list("pk", "closed"))


def _closed_among(texts: dict[int, list[Text]]) -> int:
    """The closed inputs in these criteria by sample id."""
    closed = _closed_of(texts)
    return reduce(or_, (closed[pk] & exposure.inputs_of_all(text.kind for text in texts[pk]) for pk in texts), 0)


def for_assignment(assignment: "AssignmentOfCampaign") -> list[Text]:
    """The criteria that a campaign shows to this assignment's annotator; none unless the campaign shows criteria.

    What closed inputs the campaign has shown thereby is noted on it.
    """
    if not assignment.shows_criteria:
        return []
    sample = assignment.sample
    if sample.split in sample.benchmark.hidden_splits:
        return []
    record(who=assignment.reader, how="labelling", about=f"assignment {assignment.pk}", sample_ids=[sample.pk])
    shown = [Criterion.ShownTo.CAMPAIGN, Criterion.ShownTo.PUBLIC]
    texts = _read(Q(sample_id=sample.pk, shown_to__in=shown))
    assignment.note_held(_closed_among(texts))
    return texts.get(sample.pk, [])


def for_public(*, samples: Iterable[Sample], viewer: Viewer) -> dict[int, list[Text]]:
    """Public criteria by sample id, for approved samples of benchmarks that the viewer may know of.

    Hidden splits are excluded. Not logged: there is nothing to guard.
    """
    return _read(
        Q(
            sample_id__in=[sample.pk for sample in samples],
            shown_to=Criterion.ShownTo.PUBLIC,
            sample__status="approved",
        )
        & known_to(viewer, "sample__benchmark__")
        & ~in_hidden_splits("sample__")
    )


def open_parts(parts: dict[str, Any] | None, keys: set[str]) -> dict[str, Any] | None:
    """Points by component, reduced to the public components, whose keys are ``keys``."""
    return None if parts is None else {key: points for key, points in parts.items() if key in keys} or None


@opened()
def public_keys(sample_ids: Iterable[int]) -> dict[int, set[str]]:
    """The keys of public criteria by sample id. The names and the number of the others are hidden."""
    keys: dict[int, set[str]] = defaultdict(set)
    shown = Criterion.objects.filter(sample_id__in=set(sample_ids), shown_to=Criterion.ShownTo.PUBLIC)
    for row in shown.order_by().only("sample_id", "key"):
        keys[row.sample_id].add(row.key)
    return keys


@opened()
def shown_weights(
    *, sample_ids: Iterable[int], by_campaign: bool, default_weight: "Callable[[str], float | None] | None" = None
) -> dict[int, list[tuple[str, float]]]:
    """Key and weight of each sample's components, in order, if annotators see all of them.

    ``by_campaign`` includes criteria that campaigns may show. ``default_weight`` gives the weight of a component that
    has none, by its key. Samples with a hidden component, with a component without any weight, or in a hidden split are
    left out. Contains no text, so it is not logged.
    """
    parts_by_sample: dict[int, list[Any]] = defaultdict(list)
    rows = Criterion.objects.filter(sample_id__in=list(sample_ids), kind=Criterion.Kind.COMPONENT)
    rows = rows.exclude(in_hidden_splits("sample__")).order_by("sample_id", "position", "pk")
    columns = ("sample_id", "key", "weight", "shown_to")
    for row in rows.only(*columns).annotate(visibility=models.F("sample__benchmark__visibility")):
        public = row.shown_to == Criterion.ShownTo.PUBLIC and (by_campaign or row.visibility == "public")
        visible = public or (by_campaign and row.shown_to == Criterion.ShownTo.CAMPAIGN)
        worth = row.weight or (default_weight(row.key) if default_weight else None)
        parts_by_sample[row.sample_id].append((row.key, worth) if visible and worth else None)
    return {sample: parts for sample, parts in parts_by_sample.items() if None not in parts}


@opened()
def for_redaction(*, reader: "User", sample: Sample, about: str) -> list[str]:
    """The texts that the redactor removes from what ``reader`` sees: all criteria that are not public."""
    record(who=reader, how="redaction", about=about, sample_ids=[sample.pk])
    hidden = Criterion.objects.filter(sample=sample).exclude(shown_to=Criterion.ShownTo.PUBLIC)
    return [row.text for row in hidden.order_by("pk")]


@opened()
def guarded(sample_ids: Iterable[int]) -> set[int]:
    """Which of these samples have, or had, a criterion that is not public. Contains no text, so it is not logged."""
    ids = set(sample_ids)
    hidden = Criterion.objects.filter(sample_id__in=ids).exclude(shown_to=Criterion.ShownTo.PUBLIC)
    edited = CriterionRevision.objects.filter(sample_id__in=ids)
    return {pk for rows in (hidden, edited) for pk in rows.order_by().values_list("sample_id", flat=True)}


@opened()
def for_scoring(*, submission: "KeyedSubmission", sample_ids: Sequence[int]) -> dict[int, str]:
    """Answer keys by sample id, to score a submission; samples without a key are left out."""
    if submission.state in ("failed", "withdrawn"):
        raise PermissionDenied(f"Submission {submission.pk} is {submission.state}: it is not scored.")
    record(how="scoring", about=f"submission {submission.pk}", sample_ids=sample_ids)
    keys = Criterion.objects.filter(sample_id__in=sample_ids, kind=Criterion.Kind.ANSWER_KEY)
    return {row.sample_id: row.text for row in keys.order_by("-position", "-pk")}


def note_closed(samples: models.QuerySet[Sample]) -> None:
    """Close what is not public of these samples' criteria, or no longer: all that they have in hidden splits.

    Only ``open_keys`` opens it again. Call it whenever criteria are written or samples come into a hidden split.
    """
    hidden = in_hidden_splits("sample__")
    for kind in _kinds_of(samples):
        bits = exposure.inputs_of(kind)
        rows = _of_kind(kind).filter(~Q(shown_to=Criterion.ShownTo.PUBLIC) | hidden)
        lacking = samples.order_by().exclude(closed=F("closed").bitor(bits))
        lacking.filter(models.Exists(rows)).update(closed=F("closed").bitor(bits))


@opened()
def _kinds_of(samples: models.QuerySet[Sample]) -> list[str]:
    rows = Criterion.objects.filter(sample__in=samples.order_by().values("pk"))
    return list(rows.order_by().values_list("kind", flat=True).distinct())


@opened()
def _of_kind(kind: str) -> models.QuerySet[Criterion]:
    return Criterion.objects.filter(sample=models.OuterRef("pk"), kind=kind).order_by()


# What ``open_keys`` opens: what answers are marked by.
OPENED_AS_KEYS = ("answer_key", "exact_reference", "range", "soft_reference", "component")


@opened()
def open_keys(*, samples: models.QuerySet[Sample]) -> int:
    """Show everybody the answer keys, references and weighted components of these samples, for good; returns of how
    many samples. Call it in a transaction, and write it to the audit log.
    """
    ids = list(samples.order_by().values_list("pk", flat=True))
    opened_of: set[int] = set()
    for some in chunks(ids):
        rows = Criterion.objects.filter(sample_id__in=some, kind__in=OPENED_AS_KEYS)
        opened_of.update(rows.order_by().values_list("sample_id", flat=True))
        closed = rows.exclude(shown_to=Criterion.ShownTo.PUBLIC)
        closed.update(shown_to=Criterion.ShownTo.PUBLIC, version=F("version") + 1)
        keeps = exposure.UNKNOWN & ~exposure.inputs_of_all(OPENED_AS_KEYS)
        Sample.objects.filter(pk__in=some).update(closed=F("closed").bitand(keeps))
    return len(opened_of)


EDITED = ("kind", "category", "weight", "shown_to", "text")


@opened()
def edit(*, user: "User", sample: Sample, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Make these rows ({key, kind, category, weight, shown_to, text}, in order) the sample's criteria.

    A changed criterion gets the next version, and each change is stored with its old and new text, encrypted. Returns a
    description of the changes without hidden text. Call it in a transaction, and ``note_closed`` when the sample is
    saved. Raises PermissionDenied.
    """

    _demand(user, "write-bank", [sample.pk], "Criteria are for curators and administrators.")
    stored = {row.key: row for row in Criterion.objects.select_for_update().filter(sample=sample)}
    changes: list[str] = []
    revisions: list[CriterionRevision] = []

    def keep(key: str, version: int, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        texts = [None if side is None else json.dumps(side, ensure_ascii=False) for side in (old, new)]
        revisions.append(
            CriterionRevision(sample=sample, key=key, version=version, by=user, old=texts[0], new=texts[1])
        )

    new_keys = {row["key"] for row in rows}
    past = list(CriterionRevision.objects.filter(sample=sample).only("sample_id", "key", "version"))
    for key, row in stored.items():
        if key not in new_keys:
            keep(key, row.version, {name: getattr(row, name) for name in EDITED}, None)
            changes.append(f"{key} removed")
            row.delete()
    for position, row_values in enumerate(rows):
        new = {name: row_values[name] for name in EDITED}
        criterion = stored.get(row_values["key"])
        if criterion is None:
            # Higher than any version removed under the same key, so that an old fingerprint never recurs.
            version = 1 + max((revision.version for revision in past if revision.key == row_values["key"]), default=0)
            Criterion.objects.create(sample=sample, key=row_values["key"], position=position, version=version, **new)
            keep(row_values["key"], version, None, new)
            changes.append(f"{row_values['key']} added")
            continue
        old = {name: getattr(criterion, name) for name in EDITED}
        moved = criterion.position != position
        if old != new or moved:
            for name in EDITED:
                setattr(criterion, name, new[name])
            criterion.position = position
            if old != new:
                criterion.version += 1
                keep(criterion.key, criterion.version, old, new)
                changes.append(f"{criterion.key} changed")
            else:
                changes.append(f"{criterion.key} moved")
            criterion.save()
    CriterionRevision.objects.bulk_create(revisions)
    return changes


@dataclass(frozen=True, slots=True)
class Change:
    """A stored change of a criterion as its readers receive it."""

    key: str
    version: int
    by: str
    at: "datetime"
    old: dict[str, Any] | None
    new: dict[str, Any] | None


@opened()
def changes_for_staff(*, user: "User", sample: Sample) -> list[Change]:
    """All stored changes of a sample's criteria, newest first. Logged. Raises PermissionDenied."""

    _demand(user, "read-criteria", [sample.pk], "Criteria are for curators and administrators.")
    record(who=user, how="history", sample_ids=[sample.pk])
    rows = CriterionRevision.objects.filter(sample=sample).select_related("by")
    return [Change(row.key, row.version, str(row.by or ""), row.at, _side(row.old), _side(row.new)) for row in rows]


def _side(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)


@opened()
def has_kind(sample: str, kinds: Sequence[str]) -> models.Exists:
    """For filters: whether the sample in this field has criteria of one of these kinds. Reveals no text."""
    return models.Exists(Criterion.objects.filter(sample=models.OuterRef(sample), kind__in=kinds).order_by())


@opened()
def fingerprint(samples: models.QuerySet[Sample]) -> str:
    """Tells whether these samples' criteria are still the same versions. Contains no text."""
    digest = hashlib.sha256()
    rows = Criterion.objects.filter(sample__in=samples.order_by()).order_by("pk").values_list("pk", "version")
    for pk, version in rows.iterator():
        digest.update(f"{pk}:{version};".encode())
    return digest.hexdigest()


@opened()
def _read(condition: Q) -> dict[int, list[Text]]:
    texts: dict[int, list[Text]] = defaultdict(list)
    for row in Criterion.objects.filter(condition).order_by("sample_id", "position", "pk"):
        texts[row.sample_id].append(
            Text(row.key, row.kind, row.category, row.weight, row.shown_to, row.version, row.text)
        )
    return dict(texts)


class JudgingRun(Protocol):
    """What a run must provide to read criteria."""

    pk: Any

    @property
    def reads_criteria(self) -> bool: ...

    def note_held(self, inputs: int) -> None: ...


class AssignmentOfCampaign(Protocol):
    """What an assignment must provide to read criteria."""

    pk: Any

    @property
    def shows_criteria(self) -> bool: ...

    @property
    def sample(self) -> Sample: ...

    @property
    def reader(self) -> "User": ...

    def note_held(self, inputs: int) -> None: ...


class KeyedSubmission(Protocol):
    """What a submission must provide to be compared with the keys."""

    pk: Any
    state: str
