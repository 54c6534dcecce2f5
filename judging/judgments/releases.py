"""Letting researchers read what judges wrote: one person proposes, another one confirms. Each is recorded.

An analysis that is withheld (``bank.text.similarity``) is not confirmed with its page: one person may keep it back, or
two people who decide on this one alone may release it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

import accounts.audit
import bank.criteria
from accounts.models import Role, User
from accounts.rules import allowed
from bank.errors import BadInput
from bank.models import Item
from bank.text.similarity import Examination, examine
from judging.models import AnalysisRelease, Judgment, Run

PAGE = 20
MOST = 10_000  # analyses that are proposed at once: two people are to read them
CHUNK = 500
Decision = AnalysisRelease.Decision


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the release of a run's analyses is."""

    proposed: int = 0
    confirmed: int = 0
    kept: int = 0

    @property
    def waiting(self) -> int:
        return self.proposed - self.confirmed - self.kept


@dataclass(frozen=True, slots=True)
class Row:
    """An analysis as the people see it who decide about it, beside the criteria of its sample."""

    release: AnalysisRelease
    criteria: list[bank.criteria.Text]
    found: Examination

    @property
    def judgment(self) -> Judgment:
        return self.release.judgment

    @property
    def why(self) -> str:
        """Why it is held back, in words; "" if it is not."""
        if self.found.redacted.withheld:
            return "A criterion is so short that any gap would tell it."
        return self.found.why

    @property
    def is_waiting(self) -> bool:
        return self.release.confirmed_at is None and self.release.decision != Decision.KEEP

    @property
    def can_be_put_forward(self) -> bool:
        """Whether somebody can still say that it is to be released: what is held back, or was kept back."""
        two_said_so = self.release.decision == Decision.DESPITE and self.release.confirmed_at is not None
        return (bool(self.why) and not two_said_so) or self.release.decision == Decision.KEEP


def standing(run: Run) -> Standing:
    """Counts of one run."""
    kept = Q(decision=Decision.KEEP)
    counts = run.releases.aggregate(
        proposed=Count("pk"),
        confirmed=Count("pk", filter=Q(confirmed_at__isnull=False) & ~kept),
        kept=Count("pk", kept),
    )
    return Standing(**counts)


def submitted(run: Run) -> int:
    """How many items of a run hold answers that came by submission."""
    items = Item.objects.filter(judgments__run=run, responses__submission__isnull=False)
    return items.distinct().count()


def check_open(run: Run) -> None:
    """Raises BadInput for a run whose analyses are never released."""
    if number := submitted(run):
        raise BadInput(
            f"{number:,} of its items hold answers that came by submission. Who sends an answer can ask the judge in "
            "it to write the criteria down, so the analyses of this run stay with staff."
        )


def may_confirm(release: AnalysisRelease, by: User) -> bool:
    """Whether this person may be the second one."""
    return by.pk != release.proposed_by_id and _may_be_second(by, release.proposed_by_id)


def _may_be_second(by: User, first: int) -> bool:
    """A curator other than the first person; an administrator only where there is no other curator."""
    if by.role == Role.CURATOR:
        return True
    others = User.objects.filter(role=Role.CURATOR, is_active=True).exclude(pk=first)
    return by.role == Role.ADMINISTRATOR and not others.exists()


def _check_staff(by: User) -> None:
    if not allowed(by, "write-judging"):
        raise BadInput("Analyses are released by curators.")


@transaction.atomic
def propose(*, run: Run, by: User) -> int:
    """Propose what is not proposed yet of a run's analyses, oldest first; how many. Raises BadInput."""
    _check_staff(by)
    check_open(run)
    # Two at once: one after the other.
    Run.objects.select_for_update().get(pk=run.pk)
    rows = Judgment.objects.filter(run=run, analysis__isnull=False, release=None).order_by("pk")
    pairs = list(rows.values_list("pk", "item__sample_id"))
    guarded: set[int] = set()
    samples = sorted({sample for _, sample in pairs})
    for start in range(0, len(samples), CHUNK):
        guarded |= bank.criteria.guarded(samples[start : start + CHUNK])
    chosen = [pk for pk, sample in pairs if sample in guarded][:MOST]
    if not chosen:
        raise BadInput("There is nothing to propose: no analysis that needs a release, or all are proposed already.")
    now = timezone.now()
    AnalysisRelease.objects.bulk_create(
        [AnalysisRelease(judgment_id=pk, run=run, proposed_by=by, proposed_at=now) for pk in chosen], batch_size=CHUNK
    )
    accounts.audit.record("release-proposed", by=by, about=f"run {run.pk}", analyses=len(chosen))
    return len(chosen)


def listed(run: Run, show: str) -> QuerySet[AnalysisRelease]:
    """The releases of a run: waiting, confirmed, kept or all."""
    rows = run.releases.order_by("judgment")
    kept = Q(decision=Decision.KEEP)
    narrowed = {
        "waiting": rows.filter(confirmed_at=None).exclude(kept),
        "confirmed": rows.filter(confirmed_at__isnull=False).exclude(kept),
        "kept": rows.filter(kept),
    }
    return narrowed.get(show, rows)


def rows(releases: Iterable[AnalysisRelease], *, reader: User) -> list[Row]:
    """These analyses beside their hidden criteria. The access log gets one record."""
    chosen = list(releases)
    samples = {one.judgment.item.sample_id: one.judgment.item.sample for one in chosen}
    about = f"release of run {chosen[0].run_id}" if chosen else ""
    criteria = bank.criteria.for_staff(user=reader, samples=samples.values(), how="release", reason=about)
    result = []
    for one in chosen:
        texts = criteria.get(one.judgment.item.sample_id, [])
        hidden = [text.text for text in texts if text.shown_to != "public"]
        result.append(Row(one, texts, examine(one.judgment.analysis or "", hidden)))
    return result


def _locked(run: Run, judgments: Sequence[int]) -> list[AnalysisRelease]:
    found = AnalysisRelease.objects.select_for_update(of=("self",)).filter(run=run, judgment__in=judgments)
    related = ("judgment__item__sample", "proposed_by", "run")
    chosen = list(found.select_related(*related).order_by("judgment"))
    if len(chosen) != len(set(judgments)):
        raise BadInput("Some of these analyses are not proposed any more. Look at the page again.")
    return chosen


@transaction.atomic
def confirm(*, run: Run, judgments: Sequence[int], by: User) -> int:
    """Confirm a page: those that wait, are another's proposal and are not held back; how many. Raises BadInput."""
    _check_staff(by)
    check_open(run)
    if not 0 < len(judgments) <= PAGE:
        raise BadInput(f"Analyses are confirmed page by page, at most {PAGE} at once.")
    chosen = rows(_locked(run, judgments), reader=by)
    ready = [row.release for row in chosen if row.is_waiting and not row.why and may_confirm(row.release, by)]
    if not ready:
        _say_why(chosen, by)
    _confirmed(run, ready, by)
    return len(ready)


def _say_why(chosen: Sequence[Row], by: User) -> None:
    if any(row.is_waiting and row.release.proposed_by_id == by.pk for row in chosen):
        raise BadInput("You proposed these. Another person confirms them.")
    if any(row.is_waiting and not may_confirm(row.release, by) for row in chosen):
        raise BadInput("Another curator confirms these; an administrator only where there is no other curator.")
    raise BadInput("There is nothing to confirm on this page: what is held back is decided one by one.")


def _confirmed(run: Run, ready: Sequence[AnalysisRelease], by: User) -> None:
    now = timezone.now()
    AnalysisRelease.objects.filter(pk__in=[one.pk for one in ready]).update(confirmed_by=by, confirmed_at=now)
    about = [one.judgment_id for one in ready]
    accounts.audit.record("release-confirmed", by=by, about=f"run {run.pk}", judgments=about)


@transaction.atomic
def release_despite(*, run: Run, judgment: int, by: User) -> bool:
    """Say of one held analysis that it is to be released in spite of it; True when another person had said so before.

    One that was kept back though nothing holds it is a proposal again. Raises BadInput.
    """
    _check_staff(by)
    check_open(run)
    (row,) = rows(_locked(run, [judgment]), reader=by)
    release = row.release
    if not row.why and release.decision != Decision.KEEP:
        raise BadInput("Nothing holds this analysis back: it is confirmed with its page.")
    if release.confirmed_at is not None and release.decision == Decision.DESPITE:
        raise BadInput("Two people have released this analysis already.")
    if release.decision == Decision.DESPITE:
        if release.proposed_by_id == by.pk:
            raise BadInput("You have said so. Another person has to say it, too.")
        if not may_confirm(release, by):
            raise BadInput("Another curator confirms this; an administrator only where there is no other curator.")
        _confirmed(run, [release], by)
        return True
    AnalysisRelease.objects.filter(pk=release.pk).update(
        decision=Decision.DESPITE if row.why else Decision.RELEASE,
        held=row.why[:200],
        proposed_by=by,
        proposed_at=timezone.now(),
        confirmed_by=None,
        confirmed_at=None,
    )
    accounts.audit.record("release-proposed", by=by, about=f"run {run.pk}", judgments=[judgment], despite=bool(row.why))
    return False


@transaction.atomic
def keep_back(*, run: Run, judgment: int, by: User) -> None:
    """Keep one analysis from researchers, whatever was said of it before. Raises BadInput."""
    _check_staff(by)
    (row,) = rows(_locked(run, [judgment]), reader=by)
    was_open = row.release.is_open
    AnalysisRelease.objects.filter(pk=row.release.pk).update(
        decision=Decision.KEEP,
        held=row.why[:200],
        proposed_by=by,
        proposed_at=timezone.now(),
        confirmed_by=None,
        confirmed_at=None,
    )
    accounts.audit.record(
        "release-ended", by=by, about=f"run {run.pk}", judgments=[judgment], was_open=was_open, kept_back=True
    )


@transaction.atomic
def end(*, run: Run, by: User) -> int:
    """Close all analyses of a run again and forget what was proposed; how many. Raises BadInput."""
    _check_staff(by)
    number, _ = run.releases.all().delete()
    if not number:
        raise BadInput("The analyses of this run are neither released nor proposed.")
    accounts.audit.record("release-ended", by=by, about=f"run {run.pk}", analyses=number)
    return number
