"""Writes about submissions: one transaction each."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path

from django.db import transaction
from django.urls import reverse
from pydantic import TypeAdapter, ValidationError

import bank.criteria
from accounts import audit, notices
from accounts.jobs import defer
from accounts.models import User
from bank import guard
from bank.criteria import answer_keys
from bank.database import batched
from bank.database.unfinished import ImportInProgress
from bank.errors import BadInput
from bank.intake.formats.reading import Problem, Row, text_fault
from bank.intake.formats.records import Name, ResponseRecord
from bank.models import Benchmark, EvaluatedModel, Response, Submission, SubmissionRules
from bank.picked import picked
from bank.submissions import Closed, NameTaken, Refused, ladder, quota, scoring, totals
from bank.submissions.announcements import announce_submission
from bank.submissions.check import Checked, check, most_rows, read_responses, wanted_samples
from bank.submissions.scoring import even_seed
from stats.disclosure import MIN_SAMPLES

HIGHEST_LIMIT = 1_000_000
COLUMNS = ("variant", "text", "reason", "option_order", "tokens")


def rules_of(benchmark: Benchmark) -> SubmissionRules:
    """The benchmark's rules; by default the closed ones that a curator starts from."""
    return SubmissionRules.objects.filter(benchmark=benchmark).first() or SubmissionRules(benchmark=benchmark)


@transaction.atomic
def set_rules(
    *,
    by: User,
    benchmark: Benchmark,
    open: bool,
    per_day: int | None,
    in_all: int | None,
    count_failed: bool,
    hidden_splits: Collection[str],
    required_splits: Collection[str],
    private_half: bool,
    notes: str = "",
) -> SubmissionRules:
    """Change what a benchmark accepts from researchers. Stored scores stay. Raises BadInput."""
    splits = set(benchmark.samples.values_list("split", flat=True).order_by().distinct())
    for split in sorted({*hidden_splits, *required_splits} - splits):
        raise BadInput(f"{benchmark.title} has no split {split!r}. There are: {', '.join(sorted(splits)) or 'none'}.")
    for words, limit in (("A day", per_day), ("In all", in_all)):
        if limit is not None and not 1 <= limit <= HIGHEST_LIMIT:
            raise BadInput(f"{words}: a whole number from 1, or nothing for no limit.")
    rules = rules_of(benchmark)
    rules.open, rules.per_day, rules.in_all, rules.count_failed = open, per_day, in_all, count_failed
    rules.required_splits, rules.private_half = sorted(required_splits), private_half
    rules.notes, rules.changed_by = notes.strip(), by
    benchmark.hidden_splits = sorted(hidden_splits)
    benchmark.save(update_fields=["hidden_splits"])
    bank.criteria.note_closed(benchmark.samples.filter(split__in=hidden_splits))
    if not benchmark.submissions.exists():  # after the first submission, no sample may change halves
        open_ = answer_keys.with_open_keys(benchmark.samples.order_by()).values("pk")
        closed = benchmark.samples.exclude(pk__in=open_).only("key", "group")
        rules.seed = even_seed(Counter(sample.cluster for sample in closed.iterator(chunk_size=2000)))
    rules.save()
    return rules


def check_only(*, person: User, benchmark: Benchmark, name: str, path: Path, now: datetime) -> Checked:
    """The report on a file. Uses no submission, but is limited per hour. Raises Refused."""
    rules = _open_rules(benchmark)
    with quota.one_at_a_time(person=person, now=now):
        quota.spend_check(benchmark=benchmark, person=person, now=now)
        return check(path, benchmark=benchmark, rules=rules, name=name)


def submit(
    *,
    person: User,
    benchmark: Benchmark,
    name: str,
    path: Path,
    file_name: str = "",
    organisation: str = "",
    is_open: bool | None = None,
    now: datetime,
) -> Submission:
    """Check, count, store and score one file completely, or record a failed submission with its problems only.

    Raises Refused (Closed, NameTaken, Exceeded) if nothing is recorded at all.
    """
    rules = _open_rules(benchmark)
    name = clean_name(name)
    with quota.one_at_a_time(person=person, now=now):
        quota.refuse(rules=rules, have=quota.left(rules=rules, person=person, now=now), now=now)
        refuse_taken(name=name, person=person, benchmark=benchmark)
        checked = check(path, benchmark=benchmark, rules=rules, name=name)
        submission = Submission(
            by=person, benchmark=benchmark, name=name, file_name=file_name[:200], file_sha256=_sha256(path)
        )
        submission.counts = checked.counts()
        if not checked.ok:
            return _failed(submission, checked, rules=rules, now=now)
        with transaction.atomic():
            quota.spend(rules=rules, person=person, now=now)
            submission.model = _claim(
                name=name, person=person, benchmark=benchmark, organisation=organisation, is_open=is_open
            )
            submission.save()
            _store(submission, path)
            rescore(submission=submission)
            if submission.state == Submission.State.SCORED:
                announce_submission("submission.scored", submission, key=str(submission.pk))
    return submission


@transaction.atomic
def rescore(*, submission: Submission) -> None:
    """Compare the stored responses with the current keys. What its sender was told before stays told."""
    Submission.objects.select_for_update().get(pk=submission.pk)
    if submission.state in (Submission.State.FAILED, Submission.State.WITHDRAWN):
        raise Refused(f"A submission that is {submission.state} is not scored.")
    scored = scoring.score(submission, rules_of(submission.benchmark))
    submission.state = Submission.State.SCORED if scored else Submission.State.CHECKED
    submission.save(update_fields=["state", "counts"])
    defer("follow_runs")  # of which one may judge it


@transaction.atomic
def withdraw(*, submission: Submission, by: User, reason: str = "", now: datetime) -> None:
    """Take a submission out of everything that counts. It stays listed as withdrawn. Raises Refused."""
    taken = Submission.objects.filter(pk=submission.pk, state__in=[Submission.State.CHECKED, Submission.State.SCORED])
    if not taken.update(state=Submission.State.WITHDRAWN, reason=reason, changed_by=by, changed_at=now):
        raise Refused("Only a submission that passed, and is not withdrawn yet, can be withdrawn.")
    defer("follow_runs")
    submission.refresh_from_db()


@transaction.atomic
def restore(*, submission: Submission, by: User, reason: str, now: datetime) -> None:
    """Undo a withdrawal, and score it with the current keys. Raises Refused."""
    if not reason:
        raise Refused("Say why the submission is restored.")
    withdrawn = Submission.objects.filter(pk=submission.pk, state=Submission.State.WITHDRAWN)
    if not withdrawn.update(state=Submission.State.CHECKED, reason=reason, changed_by=by, changed_at=now):
        raise Refused("Only a withdrawn submission can be restored.")
    submission.refresh_from_db()
    rescore(submission=submission)


@transaction.atomic
def release(*, submission: Submission, now: datetime, by: User | None = None, more: bool = False) -> None:
    """Let the exact figures of a submission be told: of answers that are marked its sender reads the kept half's, as it
    is now, and the next editions have it without steps. Raises Refused.

    Refused where as many totals about its sender's answers are out as may be, unless ``more`` are wanted. Refused, too,
    where another released model's answers to the kept half are nearly the same: the difference of the two figures would
    tell the few keys.
    """
    stored = [Submission.State.CHECKED, Submission.State.SCORED]
    if not Submission.objects.filter(pk=submission.pk, state__in=stored, released_at=None).update(released_at=now):
        raise Refused("Only a submission that passed has figures to release, and each only once.")
    if not more:
        totals.refuse_more(submission)
    if alike := scoring.nearly_the_same(submission, rules_of(submission.benchmark)):
        raise Refused(
            f"In fewer than {MIN_SAMPLES} samples of the kept half its answers differ from those of {alike.name}, "
            "which is released: the two figures together would tell about these keys."
        )
    ladder.release(submission)
    submission.refresh_from_db()
    about = f"{submission.name} on {submission.benchmark}"
    audit.record("submission-released", by=by, about=about, submission=submission.pk)
    notices.tell(
        submission.by,
        key=f"released-{submission.pk}",
        text=f"The score of {submission.name} on {submission.benchmark.title} that ranks is released.",
        link=reverse("leaderboard:submission-detail", args=[submission.pk]),
    )


def clean_name(name: str) -> str:
    """A model's name as it is stored. Raises Refused."""
    if fault := text_fault(name):
        raise Refused(f"The model's name {fault}.")
    try:
        return str(TypeAdapter(Name).validate_python(name))
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise Refused(f"The model's name {reason if reason.startswith(('is', 'holds')) else 'is too long'}.") from None


def refuse_taken(*, name: str, person: User, benchmark: Benchmark) -> None:
    """Raises NameTaken if the name belongs to another model or has already answered this benchmark."""
    why = _taken(name, person, benchmark)
    if why:
        number = 2
        while _taken(proposal := f"{name[:190]}-{number}", person, benchmark):
            number += 1
        raise NameTaken(name, proposal, why)


@guard.working()
def _taken(name: str, person: User, benchmark: Benchmark) -> str:
    model = EvaluatedModel.objects.filter(name=name).first()
    if model is None:
        return ""
    own_submissions = model.submissions.filter(by=person)
    if own_submissions.filter(benchmark=benchmark).exists():
        return f"has been submitted to {benchmark.title} already"
    others = model.submissions.exclude(by=person).exists() or model.responses.filter(submission=None).exists()
    return "belongs to another model" if others or not own_submissions.exists() else ""


@guard.working()
def _claim(*, name: str, person: User, benchmark: Benchmark, organisation: str, is_open: bool | None) -> EvaluatedModel:
    """The submission's model, created now or the person's own. Of two at once, the second waits and then finds it
    taken.
    """
    fresh = [EvaluatedModel(name=name, organisation=organisation.strip()[:200], open=is_open)]
    existing = set(EvaluatedModel.objects.filter(name=name).values_list("pk", flat=True))
    EvaluatedModel.objects.bulk_create(fresh, ignore_conflicts=True)
    model = EvaluatedModel.objects.select_for_update().filter(name=name).first()
    if model is None:
        raise ImportInProgress("An import is creating a model with this name right now.")
    if existing or model.submissions.exists() or model.responses.exists():
        refuse_taken(name=name, person=person, benchmark=benchmark)
    return model


def _open_rules(benchmark: Benchmark) -> SubmissionRules:
    rules = rules_of(benchmark)
    if not rules.open:
        raise Closed(f"{benchmark.title} takes no submissions at present.")
    return rules


def _failed(submission: Submission, checked: Checked, *, rules: SubmissionRules, now: datetime) -> Submission:
    submission.state, submission.problems = Submission.State.FAILED, checked.faults()
    with transaction.atomic():
        if rules.count_failed:
            quota.spend(rules=rules, person=submission.by, now=now)
        else:
            quota.spend_check(benchmark=submission.benchmark, person=submission.by, now=now)
        submission.save()
        announce_submission("submission.failed", submission, key=str(submission.pk))
    return submission


@guard.working()
def _store(submission: Submission, path: Path) -> None:
    """Write the responses of a checked file."""
    samples = dict(submission.benchmark.samples.filter(status="approved").values_list("key", "pk"))
    for batch in batched(_records(submission, path), 1000):
        Response.objects.bulk_create(
            [
                Response(
                    sample_id=samples[record.sample],
                    model=submission.model,
                    submission=submission,
                    origin=Response.Origin.SUBMISSION,
                    status=record.known_status,
                    **picked(record, COLUMNS),
                )
                for record in batch
            ]
        )


def _records(submission: Submission, path: Path) -> Iterator[ResponseRecord]:
    samples = wanted_samples(submission.benchmark)
    for row in read_responses(path, benchmark=submission.benchmark, name=submission.name, most=most_rows(samples)):
        if isinstance(row, Problem) and row.warning:
            continue
        if not isinstance(row, Row) or row.data.sample not in samples:
            raise Refused("The benchmark was changed while your file was read. Send it again.")
        yield row.data


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
