"""Releasing analyses to researchers: one person proposes, another confirms. Both steps go into the audit log.

An analysis that is held back (see ``bank.text.similarity``) cannot be confirmed together with its page. One person can
keep it back for good, or two people can release this one analysis anyway.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

import accounts.audit
import bank.criteria
from accounts.models import Role, User
from accounts.rules import allowed
from bank.announcements import announce
from bank.database import chunks
from bank.errors import BadInput
from bank.models import Item
from bank.text.similarity import Examination, Initials, examine
from judging.models import AnalysisRelease, Judgment, Run

PAGE = 20
MOST = 10_000  # analyses proposed at once: two people have to read them
CHUNK = 500
Decision = AnalysisRelease.Decision
KEPT = Q(decision=Decision.KEEP)
STANDS = {  # how a release stands
    "waiting": Q(confirmed_at=None) & ~KEPT,
    "confirmed": Q(confirmed_at__isnull=False) & ~KEPT,
    "kept": KEPT,
}


@dataclass(frozen=True, slots=True)
class Row:
    """An analysis beside the criteria of its sample, for the people who decide about it."""

    release: AnalysisRelease
    criteria: list[bank.criteria.Text]
    examination: Examination

    @property
    def initials(self) -> Initials:
        return Initials.of(self.judgment.analysis or "")

    @property
    def judgment(self) -> Judgment:
        return self.release.judgment

    @property
    def why(self) -> str:
        """Why it is held back; "" if it is not."""
        if self.examination.redacted.withheld:
            return "A criterion is so short that any gap would reveal it."
        return self.examination.why

    @property
    def is_waiting(self) -> bool:
        return self.release.confirmed_at is None and self.release.decision != Decision.KEEP

    @property
    def is_ready(self) -> bool:
        """Whether it waits, and nothing holds it back."""
        return self.is_waiting and not self.why

    @property
    def can_be_put_forward(self) -> bool:
        """Whether somebody can still ask to release it: it is held back, or it was kept back."""
        released_anyway = self.release.decision == Decision.DESPITE and self.release.confirmed_at is not None
        return (bool(self.why) and not released_anyway) or self.release.decision == Decision.KEEP


def release_counts(run: Run) -> dict[str, int]:
    """How many of a run's analyses are ``proposed``, and how many of them stand in which way (``STANDS``)."""
    counts = {name: Count("pk", filter=those) for name, those in STANDS.items()}
    return run.releases.aggregate(proposed=Count("pk"), **counts)


def check_open(run: Run) -> None:
    """Raises BadInput for a run whose analyses must never be released."""
    submitted = Item.objects.filter(judgments__run=run, responses__submission__isnull=False)
    if number := submitted.distinct().count():
        raise BadInput(
            f"{number:,} of its items contain submitted answers. A submitted answer can tell the judge to write down "
            "the criteria, so the analyses of this run stay with staff."
        )


def may_confirm(release: AnalysisRelease, by: User) -> bool:
    """Whether this person may be the second person: any other curator, an administrator only if there is none."""
    if by.pk == release.proposed_by_id:
        return False
    if by.role == Role.CURATOR:
        return True
    other_curators = User.objects.filter(role=Role.CURATOR, is_active=True).exclude(pk=release.proposed_by_id)
    return by.role == Role.ADMINISTRATOR and not other_curators.exists()


def _check_staff(by: User) -> None:
    if not allowed(by, "write-judging"):
        raise BadInput("Only curators release analyses.")


@transaction.atomic
def propose(*, run: Run, by: User) -> int:
    """Propose the analyses of a run that are not proposed yet, oldest first; returns how many. Raises BadInput."""
    _check_staff(by)
    check_open(run)
    # Two proposals at the same time wait for each other.
    Run.objects.select_for_update().get(pk=run.pk)
    rows = Judgment.objects.filter(run=run, analysis__isnull=False, release=None).order_by("pk")
    with_samples = list(rows.values_list("pk", "item__sample_id"))
    guarded: set[int] = set()
    for samples in chunks(sample for _, sample in with_samples):
        guarded |= bank.criteria.guarded(samples)
    judgment_ids = [pk for pk, sample in with_samples if sample in guarded][:MOST]
    if not judgment_ids:
        raise BadInput("Nothing to propose: no analysis needs a release, or all are proposed already.")
    now = timezone.now()
    AnalysisRelease.objects.bulk_create(
        [AnalysisRelease(judgment_id=pk, run=run, proposed_by=by, proposed_at=now) for pk in judgment_ids],
        batch_size=CHUNK,
    )
    accounts.audit.record("release-proposed", by=by, about=f"run {run.pk}", analyses=len(judgment_ids))
    return len(judgment_ids)


def listed(run: Run, show: str) -> QuerySet[AnalysisRelease]:
    """A run's releases that stand in one way, or all."""
    return run.releases.filter(STANDS.get(show, Q())).order_by("judgment")


def rows_with_criteria(releases: Iterable[AnalysisRelease], *, reader: User) -> list[Row]:
    """Analyses beside the hidden criteria of their samples. The access log gets one record."""
    releases = list(releases)
    samples = {release.judgment.item.sample_id: release.judgment.item.sample for release in releases}
    about = f"release of run {releases[0].run_id}" if releases else ""
    criteria = bank.criteria.for_staff(user=reader, samples=samples.values(), how="release", reason=about)
    result = []
    for release in releases:
        texts = criteria.get(release.judgment.item.sample_id, [])
        hidden = [text.text for text in texts if text.shown_to != "public"]
        result.append(Row(release, texts, examine(release.judgment.analysis or "", hidden)))
    return result


def _locked(run: Run, judgments: Sequence[int]) -> list[AnalysisRelease]:
    locked = AnalysisRelease.objects.select_for_update(of=("self",)).filter(run=run, judgment__in=judgments)
    releases = list(locked.select_related("judgment__item__sample", "proposed_by", "run").order_by("judgment"))
    if len(releases) != len(set(judgments)):
        raise BadInput("Some of these analyses are no longer proposed. Reload the page.")
    return releases


@transaction.atomic
def confirm(*, run: Run, judgments: Sequence[int], by: User) -> int:
    """Confirm a page: what waits, was proposed by somebody else and is not held back; returns how many.

    Raises BadInput.
    """
    _check_staff(by)
    check_open(run)
    if not 0 < len(judgments) <= PAGE:
        raise BadInput(f"Analyses are confirmed page by page, at most {PAGE} at once.")
    rows = rows_with_criteria(_locked(run, judgments), reader=by)
    ready = [row.release for row in rows if row.is_ready and may_confirm(row.release, by)]
    if not ready:
        raise BadInput(_why_none_is_ready(rows, by))
    _confirm(run, ready, by)
    return len(ready)


def _why_none_is_ready(rows: Sequence[Row], by: User) -> str:
    if any(row.is_waiting and row.release.proposed_by_id == by.pk for row in rows):
        return "You proposed these. Another person confirms them."
    if any(row.is_waiting and not may_confirm(row.release, by) for row in rows):
        return "Another curator confirms these; an administrator only if there is no other curator."
    return "Nothing to confirm on this page: analyses that are held back are decided one by one."


def _confirm(run: Run, ready: Sequence[AnalysisRelease], by: User) -> None:
    now = timezone.now()
    AnalysisRelease.objects.filter(pk__in=[release.pk for release in ready]).update(confirmed_by=by, confirmed_at=now)
    judgments = [release.judgment_id for release in ready]
    accounts.audit.record("release-confirmed", by=by, about=f"run {run.pk}", judgments=judgments)
    announce(
        "release.published",
        key=f"{run.pk}:{now:%Y%m%d%H%M%S%f}",
        number=run.pk,
        state="released",
        page=reverse("judging:run-analyses", args=[run.pk]),
        benchmark=run.benchmark,
        judge=str(run.judge),
    )


@transaction.atomic
def release_despite(*, run: Run, judgment: int, by: User) -> bool:
    """Ask to release one analysis although it is held back; True if a second person just completed the release.

    An analysis that was kept back although nothing holds it becomes a proposal again. Raises BadInput.
    """
    _check_staff(by)
    check_open(run)
    (row,) = rows_with_criteria(_locked(run, [judgment]), reader=by)
    release = row.release
    if not row.why and release.decision != Decision.KEEP:
        raise BadInput("Nothing holds this analysis back: confirm it together with its page.")
    if release.confirmed_at is not None and release.decision == Decision.DESPITE:
        raise BadInput("Two people have released this analysis already.")
    if release.decision == Decision.DESPITE:
        if release.proposed_by_id == by.pk:
            raise BadInput("You have already asked for it. Another person has to agree.")
        if not may_confirm(release, by):
            raise BadInput("Another curator confirms this; an administrator only if there is no other curator.")
        _confirm(run, [release], by)
        return True
    _decide(row, Decision.DESPITE if row.why else Decision.RELEASE, by)
    accounts.audit.record("release-proposed", by=by, about=f"run {run.pk}", judgments=[judgment], despite=bool(row.why))
    return False


def _decide(row: Row, decision: str, by: User) -> None:
    """Put this one person's decision in the place of whatever was decided before."""
    AnalysisRelease.objects.filter(pk=row.release.pk).update(
        decision=decision,
        held=row.why[:200],
        proposed_by=by,
        proposed_at=timezone.now(),
        confirmed_by=None,
        confirmed_at=None,
    )


@transaction.atomic
def keep_back(*, run: Run, judgment: int, by: User) -> None:
    """Keep one analysis from researchers, whatever was decided before. Raises BadInput."""
    _check_staff(by)
    (row,) = rows_with_criteria(_locked(run, [judgment]), reader=by)
    was_open = row.release.is_open
    _decide(row, Decision.KEEP, by)
    accounts.audit.record(
        "release-ended", by=by, about=f"run {run.pk}", judgments=[judgment], was_open=was_open, kept_back=True
    )


@transaction.atomic
def withdraw(*, run: Run, by: User) -> int:
    """Close all analyses of a run again and drop what was proposed; returns how many. Raises BadInput."""
    _check_staff(by)
    number, _ = run.releases.all().delete()
    if not number:
        raise BadInput("No analysis of this run is released or proposed.")
    accounts.audit.record("release-ended", by=by, about=f"run {run.pk}", analyses=number)
    return number
