"""Boards that depend on hidden inputs: answer keys of splits that are not open, weights of hidden components.

Only staff see them live: anybody who knows what models answered can read a key off two states of the board. Everybody
else sees the newest edition that a curator published; ``boards.editions`` says how one is made and what it must not
reveal.
"""

from django.db.models import QuerySet

from bank.criteria import answer_keys
from bank.models import Benchmark, Sample
from leaderboard.definitions import changed
from leaderboard.models import Edition
from leaderboard.scope import HUMANS, BadScope, Scope

NONE_YET = "No edition of this board is published yet: it depends on hidden answers, so only staff see it until then."
AS_A_WHOLE = (
    "This board depends on hidden answers or weights. You see a published edition as a whole: without filters, "
    "and with the verdicts and definitions that the edition was made from."
)
STAFFS = "This depends on hidden answers or weights. Everybody may see published editions of the board of models."


class Withheld(BadScope):
    """The view depends on hidden inputs that this viewer may not see."""


def rests_on_hidden(scope: Scope) -> bool:
    """Whether the numbers of this view depend on hidden keys or weights."""
    if not scope.kind.hidden:
        return False
    if hidden_split(scope) is not None:
        return True
    splits = scope.benchmark.hidden_splits
    samples = scope.benchmark.samples.in_use()
    return not answer_keys.are_open(
        samples=samples.exclude(split__in=splits) if scope.kind.keyed else samples,
        kinds=scope.kind.hidden,
        hidden_splits=splits,
    )


def open_samples(scope: Scope) -> set[int]:
    """The samples whose keys or weights are open to everybody, so that they add nothing hidden to a number."""
    splits = scope.benchmark.hidden_splits
    return answer_keys.open_samples(benchmark=scope.benchmark, kinds=scope.kind.hidden, hidden_splits=splits)


def samples_with_open_keys(benchmark: Benchmark) -> set[int]:
    """The samples whose answer keys are open to everybody."""
    return answer_keys.open_samples(benchmark=benchmark, kinds=("answer_key",), hidden_splits=benchmark.hidden_splits)


def is_kept_back(scope: Scope) -> bool:
    """Whether this viewer sees an edition instead of the live numbers."""
    return not scope.staff and not scope.edition and rests_on_hidden(scope)


def refuse_live(scope: Scope) -> None:
    """Raises BadScope if this viewer may not see the live numbers."""
    if is_kept_back(scope):
        raise Withheld(STAFFS)


def hidden_split(scope: Scope) -> str | None:
    """The hidden split that the view is about, also if the benchmark has no other."""
    hidden = scope.benchmark.hidden_splits
    if not scope.kind.keyed or not hidden:
        return None
    if scope.split in hidden:
        return scope.split
    if scope.split or scope.benchmark.samples.in_use().exclude(split__in=hidden).exists():
        return None
    return str(hidden[0])


def newest_edition(scope: Scope) -> Edition | None:
    """The newest edition of the board that the view is about."""
    editions = Edition.objects.filter(benchmark=scope.benchmark, kind=scope.kind.name, split=hidden_split(scope) or "")
    return editions.order_by("-number").first()


def edition_of(scope: Scope) -> Edition | None:
    """What everybody sees of this view: its newest edition.

    Raises BadScope if the view asks for a part of it, or for other verdicts than the edition's.
    """
    other_split = scope.split if scope.split != hidden_split(scope) else ""
    narrowed = scope.level or scope.question_type or scope.campaign or other_split
    if narrowed or scope.run or scope.source != HUMANS or changed(scope):
        raise Withheld(AS_A_WHOLE)
    return newest_edition(scope)


def keys_are_open(samples: "QuerySet[Sample]") -> bool:
    """Whether the keys of all of these samples are open to everybody."""
    return bool(samples.count() == answer_keys.with_open_keys(samples).count())


def keys_state(benchmark: Benchmark) -> tuple[int, int, int]:
    """Changes whenever the benchmark's criteria do."""
    return answer_keys.edition_of(benchmark)
