"""The public page of a model: all boards that it is on, its levels, its history, what sways it, and its card."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed
from bank import guard
from bank.models import Benchmark, Capability, EvaluatedModel, Response
from judging.models import Judge
from leaderboard import votes
from leaderboard.benchmarks import newest_visible
from leaderboard.boards import seen
from leaderboard.boards.base import ModelRow, ModelsBoard
from leaderboard.boards.biases.board import by_place
from leaderboard.boards.models import page as models_page
from leaderboard.boards.models import scored_page as scored
from leaderboard.boards.models.pairs import PairRow
from leaderboard.frozen import page as snapshots_page
from leaderboard.kept.values import until_changed
from leaderboard.kinds import available
from leaderboard.kinds.base import Shape
from leaderboard.models import Snapshot
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import HUMANS, LENGTH, NO_ELO, BadScope, Scope
from leaderboard.show import marks
from leaderboard.show.marks import Cell
from leaderboard.show.provenance import priced
from leaderboard.show.table import BLANK, Column, Table, axis_of, drawn, interval_of, names, table, tick_of
from leaderboard.sight import Sight
from leaderboard.view import PEOPLE_IN_WORDS, Address, named, rows_at_level, rows_behind, source_of
from stats.figures import NONE, number_of, rank_range, whole, whole_percent, with_interval

HUNDRED = marks.Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), marks.WIDE)
STEP = " / "  # between the levels of a path
MOST_LEVELS = 16
MOST_BELOW = 14  # capabilities below them
MOST_SOURCES = 4
SHOWN = "Shown"


@dataclass(frozen=True, slots=True)
class ModelPage:
    """``levels_said``: which rows are left out; ``by_place``: whether the last table tells numbers by place."""

    lead: str
    boards: Table
    levels: Table | None
    levels_of: str
    levels_said: str
    influences: Table | None
    by_place: bool
    history: SafeString
    history_of: str
    price: str
    home_page: str  # its address, as it is read


@dataclass(frozen=True, slots=True)
class _OnBoard:
    """A model's row on one board."""

    address: Address
    sight: Sight
    board: ModelsBoard
    row: ModelRow

    @property
    def scope(self) -> Scope:
        return self.sight.scope

    @property
    def shape(self) -> Shape:
        return scored.shape_of(self.scope, self.board)

    @property
    def number(self) -> Number:
        return self.row.number(self.shape.main.name)

    @property
    def rank(self) -> str:
        """``1–4``, or ``2`` where the model has a place for sure."""
        if self.row.rank is None or models_page.is_provisional(self.row, self.scope.anchor):
            return NONE
        return rank_range(self.row.rank, self.row.rank_low, self.row.rank_high)

    @property
    def ranked(self) -> int:
        return sum(row.rank is not None for row in self.board.rows)


def model_page(model: EvaluatedModel, viewer: Viewer) -> ModelPage | None:
    """None for a model of which the viewer may see neither a board nor an answer, unless the viewer is staff."""
    found = _boards_of(model.name, viewer)
    answers = Response.objects.visible_to(viewer).filter(model=model)
    if not (found or allowed(viewer, "read-bank") or answers.exists()):
        return None
    page = ModelPage(
        lead="Not on a public board yet.",
        boards=_boards_table(model.name, found),
        levels=None,
        levels_of="",
        levels_said="",
        influences=None,
        by_place=False,
        history=BLANK,
        history_of="",
        price=priced(model),
        home_page=model.homepage.partition("://")[2].rstrip("/"),
    )
    if not found:
        return page
    first = found[0]
    levels, said = _levels(first)
    otherwise = _otherwise(first, model)
    history, followed = _history(first)
    return replace(
        page,
        lead=_lead(first),
        levels=levels,
        levels_of=f"{_title(first)}, {first.shape.main.label.lower()}",
        levels_said=said,
        influences=_influences(first, otherwise) if otherwise else None,
        by_place=any(each.name.startswith(SHOWN) for each in otherwise),
        history=history,
        history_of=f"{_title(first)}, {followed}",
    )


def on_boards(model: EvaluatedModel, viewer: Viewer) -> Table:
    return _boards_table(model.name, _boards_of(model.name, viewer))


def _boards_of(name: str, viewer: Viewer) -> list[_OnBoard]:
    """Where the model has a rank first, the larger boards first among them."""
    return sorted(_find_on_boards(name, viewer), key=lambda on: (on.row.rank is None, -on.row.n))


def _find_on_boards(name: str, viewer: Viewer) -> Iterator[_OnBoard]:
    with guard.working():
        answered = Response.objects.filter(model__name=name).order_by().values("sample__benchmark")
    visible = {benchmark.pk for benchmark in newest_visible(viewer)}
    for benchmark in Benchmark.objects.filter(pk__in=answered).select_related("anchor").order_by("pk"):
        staff = allowed(viewer, "read-hidden", of=benchmark)
        for kind in available(benchmark, "models", staff=staff) if benchmark.pk in visible else ():
            address = Address(viewer, "leaderboard:models", named(benchmark), benchmark, {"kind": kind.name})
            if on := _standing(address, name):
                yield on


def _standing(address: Address, name: str) -> _OnBoard | None:
    """The model on the board of this address; None where there is no such board, or it is not on it."""
    try:
        source = source_of(address)
        board = seen.models(source.scope)
    except BadScope:
        return None
    row = next((row for row in board.rows if row.model == name), None)
    return None if row is None else _OnBoard(address, source.sight, board, row)


def _title(on: _OnBoard) -> str:
    return on.address.benchmark.titled


def _lead(on: _OnBoard) -> str:
    shape = on.shape
    label, unit = (shape.main.label.removesuffix(", %"), "%" if shape.main.label.endswith(", %") else "")
    said = f"{label} {with_interval(on.number, shape.main.write, unit)}"
    place = "" if on.row.rank is None else f", rank {on.rank} of {on.ranked}"
    return f"{said} over {number_of(on.row.n, 'item')} of {_title(on)}{place}."


def _boards_table(name: str, found: Sequence[_OnBoard]) -> Table:
    def board(on: _OnBoard) -> Cell:
        source, kind = on.scope.source, on.scope.kind
        by = "" if kind.keyed else PEOPLE_IN_WORDS.get(source, source)
        return Cell(f"{_title(on)}, {kind.title.lower()}", by, link=on.address.link())

    def rows(on: _OnBoard) -> str:
        return rows_behind(on.address, on.sight, on.row.model)

    return table(
        [
            names("Board", board),
            Column("Rank", "rank", css="n rank"),
            Column("of", "ranked", css="n dim wide-only"),
            Column("Value", lambda on: Cell(on.shape.main.write(on.number.value), strong=True), opens=rows),
            drawn(HUNDRED, whole_percent, _board_bar, css="plotted"),
            Column("Items", lambda on: on.row.n, opens=rows),
        ],
        found,
        label=f"All boards of {name}",
        caption=f"{name} on every board",
        css="lines",
    )


def _board_bar(on: _OnBoard) -> SafeString:
    """The number on an axis from 0 to 1, or that of its scale, and where all others stand."""
    main, hundred = on.shape.main, on.shape.hundred or 1.0
    scale = HUNDRED if on.shape.hundred else marks.Axis(*on.scope.kind.ends(on.address.benchmark), (), marks.WIDE)
    others = [row.number(main.name).value for row in on.board.rows if row.model != on.row.model]
    return marks.interval_bar(
        scale,
        *(None if end is None else end / hundred for end in on.number.ends),
        write=lambda value: main.write(value * hundred),
        provisional=models_page.is_provisional(on.row, on.scope.anchor),
        others=[None if value is None else value / hundred for value in others],
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A model on a level or capability, and the median of the other models there."""

    path: str
    number: Number
    n: int
    others: float | None

    @property
    def parent(self) -> str:
        return self.path.rpartition(STEP)[0]

    @property
    def ahead(self) -> float | None:
        """By how much it is above the median; None where one of the two is not known."""
        return None if self.number.value is None or self.others is None else self.number.value - self.others


def _farthest(parts: Sequence[_Part], half: int) -> list[_Part]:
    """The weakest and the strongest, so many of each, beside the median of the other models."""
    known = [part for part in parts if part.ahead is not None]
    known.sort(key=lambda part: part.ahead or 0.0)
    return [*known[:half], *known[max(half, len(known) - half) :]]


def _every_part(on: _OnBoard) -> list[_Part]:
    every = list(_parts(on, on.board, ""))
    if _can_go_deeper(on) and not on.scope.kind.keyed:  # boards by keys have the whole tree
        deeper = Capability.objects.filter(benchmark=on.address.benchmark, parent__parent=None, parent__isnull=False)
        with_children = set(deeper.values_list("parent__name", flat=True))
        for name in [part.path for part in every if part.path in with_children]:
            board = seen.models(replace(on.scope, level=name, elo=NO_ELO))
            every += _parts(on, board, name)
    return every


def _levels(on: _OnBoard) -> tuple[Table | None, str]:
    """The levels of a board and the capabilities below them, each beside the median of the other models, and what is
    left out: of many capabilities all but the strongest and the weakest beside that median.
    """
    main = on.shape.main
    every = _every_part(on)
    parts = [part for part in every if not part.parent][:MOST_LEVELS]
    below = [part for part in every if part.parent and part.number.value is not None]
    half = MOST_BELOW // 2
    shown = _farthest(below, half) if len(below) > MOST_BELOW else below
    if len(parts) + len(shown) < 2:
        return None, ""
    paths = [part.path for part in every]
    parts = sorted(
        [*parts, *shown], key=lambda part: [paths.index(above) for above in _above(part.path) if above in paths]
    )
    scale = axis_of(parts, "number", *(part.others for part in parts), width=marks.WIDE, unit=on.shape.unit)

    def value(part: _Part) -> Cell:
        link = rows_at_level(on.address, on.sight, on.row.model, part.path)
        return Cell(main.write(part.number.value), link=link, strong=True)

    said = (
        f"Of {len(below)} capabilities the {half} weakest and the {half} strongest beside that median."
        if len(shown) < len(below)
        else ""
    )
    label = f"{on.row.model} by level"
    columns = [
        names("Level", lambda part: Cell(part.path.rpartition(STEP)[2], title=part.path)),
        Column("Value", value),
        interval_of("number", scale, tick_of(main.write), main.write, lambda part: {"others": [part.others]}),
        Column("Items", "n", css="n dim"),
    ]
    css = {part.path: "below" for part in parts if part.parent}
    return table(columns, parts, row_css=lambda part: css.get(part.path, ""), label=label, caption=label), said


def _above(path: str) -> list[str]:
    """The path of each level down to this one, the top first."""
    steps = path.split(STEP)
    return [STEP.join(steps[: depth + 1]) for depth in range(len(steps))]


def _can_go_deeper(on: _OnBoard) -> bool:
    """Whether boards of single levels may be computed for a page: not of a million votes, and not behind an edition."""
    return not (on.sight.only_editions or votes.is_large(on.address.benchmark) or on.scope.kind.part_word != "level")


def _parts(on: _OnBoard, board: ModelsBoard, level: str) -> Iterator[_Part]:
    """The model on the levels of a board, which is narrowed to ``level``."""
    name = scored.shape_of(on.scope, board).main.name
    row = next((row for row in board.rows if row.model == on.row.model), None)
    for part in row.levels if row else ():
        own = row.level(part) if row and part else None
        if own is None:
            continue
        others = [
            value
            for other in board.rows
            if other.model != on.row.model
            and (of_other := other.level(part))
            and (value := of_other.number(name).value) is not None
        ]
        path = STEP.join(filter(None, (level, part)))
        yield _Part(path, own.number(name), own.n, median(others) if others else None)


def _otherwise(on: _OnBoard, model: EvaluatedModel) -> "list[_Otherwise]":
    """What the model's number would be with length held equal, at each place, and by others' verdicts. Nothing of
    editions, and of a million votes.
    """
    if not _can_go_deeper(on) or on.scope.kind.keyed:
        return []
    return [*_of_pairs_otherwise(on), *_by_other_sources(on, model, on.shape.main.name)]


def _influences(on: _OnBoard, found: "Sequence[_Otherwise]") -> Table:
    """The line in each bar is the number as it is on the board."""
    write = on.shape.main.write
    there = on.number.value
    scale = axis_of(found, "number", there, most=3, unit=on.shape.unit)

    def value(each: _Otherwise) -> Cell:
        return Cell(write(each.number.value), title=f"n = {whole(each.n)}", link=each.link)

    return table(
        [
            names("If", lambda each: Cell(each.name, each.words)),
            Column("Value", value),
            interval_of("number", scale, tick_of(write), write, lambda each: {"reference": there}),
        ],
        found,
        label=f"{on.row.model} if one thing were otherwise",
        caption=f"{on.row.model} if one thing were otherwise",
        css="cmpt",
    )


@dataclass(frozen=True, slots=True)
class _Otherwise:
    name: str
    words: str
    number: Number
    n: int | None
    link: str


def _of_pairs_otherwise(on: _OnBoard) -> Iterator[_Otherwise]:
    if not on.scope.kind.pairwise:
        return
    row = cast(PairRow, on.row)
    if row.win_rate_lc.value is not None:
        words = "" if row.mean_length is None else f"{whole(round(row.mean_length))} characters on average"
        yield _Otherwise("Length held equal", words, row.win_rate_lc, row.n, on.address.link(control=LENGTH))
    scope = on.scope
    for place in until_changed(("places", on.board.key), lambda: by_place(scope), benchmark=scope.benchmark.pk):
        if place.model == row.model:
            link = on.address.to("leaderboard:bias", kind=on.scope.kind.in_address)
            yield _Otherwise(f"{SHOWN} {place.shown}", "", place.win_rate, place.n, link)


def _by_other_sources(on: _OnBoard, model: EvaluatedModel, name: str) -> Iterator[_Otherwise]:
    """The number by people and by judges that the board does not go by; judges of the model's own family first."""
    judges = Judge.objects.filter(pk__in=votes.judged_runs(on.scope).order_by().values("judge"), baseline="")
    said = {judge.name: str(judge) for judge in judges}
    of_family = {judge.name for judge in judges if model.family and judge.family == model.family}
    sources = [source for source in (HUMANS, *said) if source != on.scope.source]
    sources.sort(key=lambda source: source not in of_family)
    for source in sources[:MOST_SOURCES]:
        address = replace(on.address, params=on.address.params | {"source": source})
        other = _standing(address, on.row.model)
        number = other.row.number(name) if other else UNKNOWN
        if other is None or number.value is None:
            continue
        words = "a judge of its own family" if source in of_family else ""
        yield _Otherwise(
            f"By {said.get(source, PEOPLE_IN_WORDS.get(source))}", words, number, other.row.n, address.link()
        )


def _history(on: _OnBoard) -> tuple[SafeString, str]:
    """The model's number over the snapshots of its first board, and what it is called."""
    snapshots = [
        snapshot
        for snapshot in Snapshot.objects.visible_to(on.address.viewer).filter(
            benchmark=on.address.benchmark, what="models"
        )
        if on.row.model in snapshots_page.entries_of(snapshot)
    ]
    if not snapshots:
        return BLANK, ""
    same = [each for each in reversed(snapshots) if snapshots_page.same_view(each, snapshots[0])]  # newest last
    line = snapshots_page.Line(snapshots, snapshots[0], same, on.row.model)
    return snapshots_page.plot_of(line), snapshots_page.followed_in(line)
