"""What may be seen of what hidden inputs touch: one rule for every reader (ADR 31).

Three facts are stored, each in one place: what a run, a jury or a campaign ``held`` (``bank.criteria`` notes it when
it hands criteria out), what of a sample is ``closed`` (``bank.criteria`` again), and of an item whether an answer in it
comes from ``outside``, whether people still label it ``blind``, and what those may have ``held`` whose verdicts it came
with: which items a file names can tell what it says of them. The class of a verdict follows at reading, since
keys are opened later:

- open: it held nothing that is closed;
- guided: free text alone. Seen one by one, unless an answer of its item comes from outside: such an answer can ask the
  judge about the text;
- keyed: a key, an exact reference or range, a weight. The verdict on a known answer tells it, so it is for staff alone.
"""

from collections.abc import Iterable
from enum import IntFlag
from functools import reduce
from operator import or_

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.lookups import Exact, GreaterThan

from accounts.rules import Viewer, allowed, where
from bank.models.catalogue import Sample, in_hidden_splits, known_to


class Inputs(IntFlag):
    """Kinds of hidden inputs, as ``Run.held``, ``Campaign.held`` and ``Sample.closed`` store them."""

    EXACT_REFERENCE = 1
    SOFT_REFERENCE = 2
    RANGE = 4
    GUIDELINE = 8
    COMPONENT = 16  # its text
    ANSWER_KEY = 32
    WEIGHT = 64  # of a component, and points for it


NOTHING = 0
UNKNOWN = 2**15 - 1  # of verdicts from a file: taken as all that the benchmark has
TEXTS = Inputs.SOFT_REFERENCE | Inputs.GUIDELINE | Inputs.COMPONENT
KEYS = Inputs.ANSWER_KEY | Inputs.EXACT_REFERENCE | Inputs.RANGE  # only protocols that mark against them hold them
KEYED = KEYS | Inputs.WEIGHT


def inputs_of(kind: str) -> int:
    """What a criterion of this kind is: its text, and of a component the weight as well."""
    return int(Inputs[kind.upper()] | (Inputs.WEIGHT if kind == "component" else NOTHING))


def inputs_of_all(kinds: Iterable[str]) -> int:
    return reduce(or_, map(inputs_of, kinds), NOTHING)


def closed_in(samples: QuerySet[Sample]) -> int:
    """All that is closed in one or another of these samples."""
    return reduce(or_, samples.order_by().values_list("closed", flat=True).distinct(), NOTHING)


# ---- conditions ----


def any_of(inputs: int, *columns: str) -> GreaterThan:
    """Whether one of these inputs is in all of the columns, which are paths to ``held`` or ``closed``."""
    return GreaterThan(_common(inputs, columns), 0)


def none_of(inputs: int, *columns: str) -> Exact:
    """The opposite of ``any_of``."""
    return Exact(_common(inputs, columns), 0)


def _common(inputs: int, columns: tuple[str, ...]) -> Combinable:
    first, *others = columns
    common: Combinable = F(first).bitand(int(inputs))
    for column in others:
        common = common.bitand(F(column))  # type: ignore[arg-type]  # the stubs know only numbers
    return common


def counted(*, held: str, item: str = "item__") -> Q:
    """The verdicts that numbers below staff are made of: none that is keyed, none guided one on an answer from outside.

    ``held`` and ``item`` are paths to what was held, and to the item.
    """
    closed = f"{item}sample__closed"
    told_to_all = Q(**{f"{item}outside": False}) | Q(none_of(UNKNOWN, held, closed))
    return Q(none_of(KEYED, held, closed)) & told_to_all & named_openly(item)


def said_before(*, item: str = "item__", at: str = "created_at") -> Q:
    """The verdicts that numbers below staff are made of while people label blind: on a blind item those of the last
    closed state, given before the earliest round that is open on it. ``item`` and ``at`` are paths to the item, and to
    when they were given.
    """
    return Q(**{f"{item}blind": False}) | Q(**{f"{at}__lt": F(f"{item}blind_since")})


def named_openly(item: str = "item__") -> Q:
    """The items of which everybody may know that they are there, see ``Item.held``; ``item`` is the path to them."""
    return Q(none_of(KEYED, f"{item}held", f"{item}sample__closed"))


def closes(closed: int, *, outside: bool) -> bool:
    """Whether ``counted`` leaves out a verdict on a sample with this closed whose giver may have held all of it."""
    return bool(closed & KEYED) or (outside and bool(closed))


def counted_if(held: int, *, item: str = "item__") -> Q:
    """The verdicts that ``counted`` would have if these inputs had been held."""
    closed = f"{item}sample__closed"
    return Q(none_of(held & KEYED, closed)) & (Q(**{f"{item}outside": False}) | Q(none_of(held, closed)))


def seen_singly(viewer: Viewer, *, held: str, item: str = "item__") -> Q:
    """The verdicts that this viewer may see one by one; none that says what a closed answer says. Whether a run goes on
    is for its own table to say.
    """
    if allowed(viewer, "read-hidden"):
        return Q()
    sample = f"{item}sample__"
    known = known_to(viewer, f"{sample}benchmark__") & Q(**{f"{sample}status": Sample.Status.APPROVED})
    seen = known & Q(**{f"{item}blind": False}) & counted(held=held, item=item)
    reads_no_answer = Q(option__isnull=True, answer__isnull=True)
    seen &= (reads_no_answer | Q(none_of(Inputs.ANSWER_KEY, f"{sample}closed"))) & ~in_hidden_splits(sample)
    return seen | where(viewer, "read-hidden", f"{sample}benchmark__")


def words_seen(viewer: Viewer, *, held: str, item: str = "item__") -> Q:
    """The verdicts of which this viewer may read what was written with them, of those that they see one by one: below
    staff of none that held something closed, for words can quote it.
    """
    sample = f"{item}sample__"
    return Q(none_of(UNKNOWN, held, f"{sample}closed")) | where(viewer, "read-hidden", f"{sample}benchmark__")


def answers_closed(sample: str) -> Q:
    """Samples whose answers are closed: with a key among few options, or in a hidden split."""
    return Q(any_of(Inputs.ANSWER_KEY, f"{sample}closed")) | in_hidden_splits(sample)
