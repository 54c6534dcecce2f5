"""The home page: one item with its verdicts, and the state of each benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef
from django.urls import reverse
from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed, role_of
from annotations.labels.desk import Board
from annotations.models import Campaign, CampaignItem, Label
from bank.models import Benchmark, Item, Sample, SampleImage
from judging.models import Judgment, Run
from leaderboard import boards, cache, changes, queries, votes
from leaderboard.boards.base import ModelRow, ModelsBoard, cached
from leaderboard.boards.judge_board import MAJORITY, JudgeRow, JudgesBoard, sided
from leaderboard.figures import NONE, interval, number_of, percent, rank_range, tick, two, whole
from leaderboard.kinds import Kind
from leaderboard.metrics import Metric
from leaderboard.pages import marks, one_item
from leaderboard.pages import models as models_page
from leaderboard.pages import votes as votes_page
from leaderboard.pages.address import Address, rows_behind, source_of
from leaderboard.pages.provenance import verdicts_link
from leaderboard.scope import BadScope
from stats.ranks import Place

BLANK = SafeString()
TOP = 5
MOST = 4  # benchmarks shown; the index has all
SEARCHED = 200  # items looked at for the one that is shown
TRIED = 12  # of them with everybody's verdict
SHORT = 150  # characters
LINES = 5
FEWEST_ITEMS = 30  # of the number in the first sentence
PUBLIC = Benchmark.Visibility.PUBLIC
Ranked = tuple[Run, JudgeRow, Place | None]


@dataclass(frozen=True, slots=True)
class MiniRow:
    rank: str
    ranks: str
    name: str
    link: str
    value: str
    bar: SafeString
    page: str
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark: what it is, its best models, its most human-like judges."""

    title: str
    about: str
    counts: str
    link: str
    models_link: str
    judges_link: str
    models: list[MiniRow] = field(default_factory=list)
    models_note: str = ""
    models_unit: str = ""
    judges: list[MiniRow] = field(default_factory=list)
    judges_note: str = ""
    judges_unit: str = ""


@dataclass(frozen=True, slots=True)
class SpecimenLine:
    who: str
    verdict: str
    drawn: SafeString
    people: bool = False
    simulated: bool = False
    mark: str = ""  # "agrees", "differs" or ""


@dataclass(frozen=True, slots=True)
class Specimen:
    """A finished item with its verdicts. It does not name the models."""

    benchmark: str
    instruction: str
    image: SampleImage | None
    lines: list[SpecimenLine]
    link: str
    agreeing: int  # people who gave the verdict that most gave
    finished: bool  # whether people's verdicts are in


@dataclass(frozen=True, slots=True)
class Headline:
    """The number of the first sentence: how often the best judge of a benchmark sides with people, and one more person
    on the same pairs. Both are shares with their interval in words.
    """

    benchmark: str
    judge: str
    items: str
    share: str
    share_interval: str
    person: str
    person_interval: str
    rows: str  # the judge's verdicts
    board: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Benchmarks with their best models and judges, on shared axes."""

    entries: list[Entry]
    has_ceiling: bool
    models_axis: SafeString
    judges_axis: SafeString


@dataclass(frozen=True, slots=True)
class Home:
    entries: list[Entry]
    specimen: Specimen | None
    headline: Headline | None
    benchmarks: int
    computed_at: datetime | None
    has_ceiling: bool
    vote_heads: SafeString = BLANK
    models_axis: SafeString = BLANK
    judges_axis: SafeString = BLANK


@dataclass(frozen=True, slots=True)
class _Place:
    """A benchmark with its two boards, before rendering."""

    counts: queries.BenchmarkCounts
    address: Address
    models: ModelsBoard
    judges: JudgesBoard
    anchor: str
    note: str
    models_kind: Kind
    main: str  # the number that ranks the models
    judges_kind: Kind

    @property
    def metric(self) -> Metric:
        return self.judges_kind.metrics[0]


def build_home_page(viewer: Viewer) -> Home:
    """Everything that the page shows; computed again only when the data of a benchmark on it have changed."""
    shared = not allowed(viewer, "read-hidden")  # of what staff see no file is made
    return cache.cached("home", [changes.version(), role_of(viewer)], lambda: _made(viewer), shared=shared)


def compute() -> None:
    """The page of visitors, so that it is there when they come, see ``cache.cached``."""
    build_home_page(AnonymousUser())


@dataclass(frozen=True, slots=True)
class BoardFed:
    """A board that an annotator's labels count for: who leads there, and the judge most like people."""

    title: str
    link: str
    labels: int
    model: MiniRow | None
    judge: MiniRow | None
    unit: str


def boards_fed(boards: Sequence[Board], viewer: Viewer) -> list[BoardFed]:
    """What the page of visitors says of these benchmarks, as far as it shows them."""
    page = build_home_page(viewer)
    entries = {entry.title: entry for entry in page.entries}
    fed = []
    for board in boards:
        entry = entries.get(board.benchmark.titled)
        fed.append(
            BoardFed(
                title=board.benchmark.titled,
                link=board.link,
                labels=board.labels,
                model=entry.models[0] if entry and entry.models else None,
                judge=entry.judges[0] if entry and entry.judges else None,
                unit=entry.models_unit if entry else "",
            )
        )
    return fed


def _made(viewer: Viewer) -> Home:
    newest = queries.newest_visible(viewer)
    benchmark_counts = sorted(
        queries.benchmark_counts(newest, viewer), key=lambda counts: -(counts.labels + counts.judgments)
    )[:MOST]
    places = []
    for counts in benchmark_counts:
        address = Address(viewer, "leaderboard:models", counts.name, counts.benchmark)
        places.append(_place(counts, address))
    judges = [_top_judges(place) for place in places]
    summary = _summary(places, judges)
    times = [place.models.computed_at for place in places if place.models.computed_at]
    return Home(
        entries=summary.entries,
        specimen=specimen(viewer, [counts.benchmark for counts in benchmark_counts]),
        headline=_headline(places, judges),
        benchmarks=len(newest),
        computed_at=max(times) if times else None,
        has_ceiling=summary.has_ceiling,
        vote_heads=marks.vote_heads(),
        models_axis=summary.models_axis,
        judges_axis=summary.judges_axis,
    )


def summary_of(counts: queries.BenchmarkCounts, address: Address) -> Summary:
    """The best models and judges of one benchmark."""
    place = _place(counts, address)
    return _summary([place], [_top_judges(place)])


def _summary(places: Sequence[_Place], judges: Sequence[list[Ranked]]) -> Summary:
    """One axis for everything in percent, and one for all metrics of judges; scores use the axis of their scale."""
    models = [_top_models(place) for place in places]
    pages = models_page.model_pages(row.model for rows in models for row in rows)
    shares = [
        _shares(place, row)
        for place, rows in zip(places, models, strict=True)
        for row in rows
        if place.models_kind.shape.hundred
    ]
    model_axis = marks.axis((end for ends in shares for end in ends), width=marks.WIDE, unit=0.01)
    ceilings = [_ceiling(place) for place in places]
    judge_ends = [end for rows in judges for _, row, _ in rows for end in row.value.ends]
    judge_axis = marks.axis([*judge_ends, *ceilings], width=marks.WIDE)
    return Summary(
        entries=[
            Entry(
                title=place.counts.benchmark.titled,
                about=place.counts.benchmark.description,
                counts=_counts(place.counts),
                link=place.address.to("leaderboard:benchmark"),
                models_link=place.address.link(),
                judges_link=place.address.to("leaderboard:judges"),
                models=[_model_row(place, row, model_axis, pages.get(row.model, "")) for row in top],
                models_note=place.note or _models_note(place, top),
                models_unit=_models_unit(place) if top else "",
                judges=[_judge_row(place, *judge_row, judge_axis, ceiling) for judge_row in ranked],
                judges_note=_judges_note(place, ranked),
                judges_unit=_judges_unit(place) if ranked else "",
            )
            for place, top, ranked, ceiling in zip(places, models, judges, ceilings, strict=True)
        ],
        has_ceiling=any(value is not None for value in ceilings),
        models_axis=marks.axis_head(model_axis, lambda value: whole(100 * value)),
        judges_axis=marks.axis_head(judge_axis, tick),
    )


def _place(counts: queries.BenchmarkCounts, address: Address) -> _Place:
    source = source_of(address)
    try:
        board = cached(source.scope, "models", boards.models)
    except BadScope as error:
        board = ModelsBoard([], [str(error)])
    of_judges = Address(address.viewer, "leaderboard:judges", address.name, address.benchmark).scope()
    judges = cached(of_judges, "judges", boards.judges)
    kind = source.scope.kind
    main = kind.shapes.get(board.ranked_by, kind.shape).main.name
    return _Place(
        counts, address, board, judges, source.scope.anchor, source.note, source.scope.kind, main, of_judges.kind
    )


def _headline(places: Sequence[_Place], judges: Sequence[list[Ranked]]) -> Headline | None:
    """Of the first public benchmark on the page whose people and best judge are real."""
    for place, ranked in zip(places, judges, strict=True):
        if not (ranked and place.judges_kind.pairwise) or place.counts.benchmark.visibility != PUBLIC:
            continue
        run = ranked[0][0]
        scope = Address(place.address.viewer, "leaderboard:judges", place.address.name, place.counts.benchmark).scope()
        if run.judge.simulated or votes.labels_by_origin(scope)[0]:
            continue
        runs = next(group for group in votes.judge_groups(scope) if run.pk in [member.pk for member in group])
        both = sided(scope, runs)
        if both is not None and both.items >= FEWEST_ITEMS:
            return Headline(
                benchmark=place.counts.benchmark.titled,
                judge=run.judge.name,
                items=whole(both.items),
                share=percent(both.judge.value),
                share_interval=interval(both.judge, percent),
                person=percent(both.person.value),
                person_interval=interval(both.person, percent),
                rows=verdicts_link(place.address, run) or place.address.to("leaderboard:judges"),
                board=place.address.to("leaderboard:judges"),
            )
    return None


def _counts(counts: queries.BenchmarkCounts) -> str:
    parts = [number_of(counts.samples, "sample"), number_of(counts.models, "model")]
    parts += [number_of(counts.judges, "judge")] if counts.judges else []
    return ", ".join([*parts, number_of(counts.labels, "label")])


def _models_unit(place: _Place) -> str:
    unit = place.models_kind.shape.short
    return f"{unit}, in the order of their rating" if place.models_kind.pairwise else unit


def _judges_unit(place: _Place) -> str:
    """Pairs that people could not decide count here, and not in the first sentence of the page."""
    unit = place.metric.within_sentence
    return f"{unit}, ties counted" if place.judges_kind.pairwise else unit


def _top_models(place: _Place) -> list[ModelRow]:
    rows = [row for row in place.models.rows if row.model != place.anchor and row.number(place.main).value is not None]
    rows.sort(key=lambda row: (_few(place, row), row.rank is None, row.place or 0, row.rank or 0))
    return rows[:TOP]


def _few(place: _Place, row: ModelRow) -> bool:
    return models_page.is_provisional(row, place.anchor)


def _shares(place: _Place, row: ModelRow) -> list[float | None]:
    """The number that ranks and its ends, as shares of 1."""
    hundred = place.models_kind.shape.hundred or 1.0
    return [None if end is None else end / hundred for end in row.number(place.main).ends]


def _model_row(place: _Place, row: ModelRow, scale: marks.Axis, page: str) -> MiniRow:
    few = _few(place, row)
    write: Any = percent
    ends = _shares(place, row)
    kind = place.models_kind
    if not kind.shape.hundred:
        scale, write = marks.Axis(*kind.ends(place.counts.benchmark), (), marks.WIDE), kind.shape.main.write
    bar = marks.interval_bar(scale, *ends, write=write, provisional=few)
    rank = NONE if few or row.rank is None else str(row.place)
    link = rows_behind(place.address, place.address.scope(), row.model)
    ranks = "" if few else rank_range(row.place, row.rank_low, row.rank_high)
    return MiniRow(rank, ranks, row.model, link, write(ends[0]), bar, page)


def _models_note(place: _Place, rows: list[ModelRow]) -> str:
    if rows:
        return ""
    if place.models.notes:
        return place.models.notes[0]
    return "Too few answers to show a number." if place.models.rows else "No verdicts yet."


def _top_judges(place: _Place) -> list[Ranked]:
    """The rows of the best judges by the metric, with their standing; baselines are a floor, and none of them."""
    if not place.judges.against:
        return []
    standing = place.judges.against[MAJORITY].standing.get(place.metric.name, {})
    rows = [
        row
        for of_run in place.judges.overall().values()
        if (row := of_run.get(place.metric.name)) and row.value.value is not None
    ]
    better = 1 if place.metric.lower_is_better else -1
    rows.sort(key=lambda row: (row.run not in standing, better * (row.value.value or 0.0)))
    runs = Run.objects.filter(judge__baseline="").select_related("judge").in_bulk([row.run for row in rows])
    return [(runs[row.run], row, standing.get(row.run)) for row in rows if row.run in runs][:TOP]


def _judge_row(
    place: _Place,
    run: Run,
    row: JudgeRow,
    standing: Place | None,
    scale: marks.Axis,
    top: float | None,
) -> MiniRow:
    bar = marks.interval_bar(scale, *row.value.ends, ceiling=top)
    page = reverse("leaderboard:judge-detail", args=[run.judge_id])
    link = place.address.to("leaderboard:judges", kind=place.judges_kind.name)
    if place.judges_kind.pairwise:
        link = verdicts_link(place.address, run) or link
    if standing is None:
        return MiniRow(NONE, "", row.judge, link, two(row.value.value), bar, page, row.simulated)
    ranks = rank_range(standing.tier, standing.rank_low, standing.rank_high)
    return MiniRow(str(standing.tier), ranks, row.judge, link, two(row.value.value), bar, page, row.simulated)


def _ceiling(place: _Place) -> float | None:
    if not place.judges.against:
        return None
    ceiling = place.judges.against[MAJORITY].ceiling.get(place.metric.name)
    return ceiling.number.value if ceiling else None


def _judges_note(place: _Place, rows: list[Ranked]) -> str:
    if rows:
        return ""
    if not place.counts.labels:
        return "No labels by people yet, so no judge can be compared with them."
    return "No judge yet."


# ---- one item, as judged ----


def specimen(viewer: Viewer, benchmarks: list[Benchmark]) -> Specimen | None:
    """An interesting item of a public benchmark: with a picture, labels by people, and judges that differ."""
    public = [benchmark for benchmark in benchmarks if benchmark.visibility == Benchmark.Visibility.PUBLIC]
    samples = Sample.objects.verdicts_visible_to(AnonymousUser()).filter(benchmark__in=public, retired_in="")
    pairs = Item.objects.filter(kind=Item.Kind.PAIR, sample__in=samples)
    # Checked verdict by verdict: a list of all pairs may have a million entries.
    of_pair = Exists(pairs.filter(pk=OuterRef("item")))
    labels = Label.objects.seen_by(AnonymousUser()).filter(of_pair, excluded=False, choice__isnull=False)
    in_open_campaign = CampaignItem.objects.filter(item=OuterRef("item"), campaign__state__in=Campaign.GOING)
    labels = labels.exclude(Exists(in_open_campaign))
    ids = list(labels.order_by().values_list("item").annotate(n=Count("pk")).order_by("-n", "item")[:SEARCHED])
    judgments = Judgment.objects.seen_by(AnonymousUser()).filter(status=Judgment.Status.OK)
    if not ids:
        item_ids = judgments.filter(of_pair).order_by("pk").values_list("item", flat=True)[:SEARCHED]
        ids = [(pk, 0) for pk in dict.fromkeys(item_ids)]
    times = dict(ids)
    # From here on all are such pairs; asked again, the database would go through every sample.
    # A judge that is not a baseline is more interesting.
    real = set(judgments.filter(item__in=times, run__judge__baseline="").values_list("item", flat=True))
    items = list(
        Item.objects.filter(pk__in=times).select_related("sample__benchmark").prefetch_related("sample__images")
    )
    items.sort(key=lambda item: (*_shows(item, real), -times[item.pk], item.pk))
    tried = items[:TRIED]
    judges = one_item.judges_on(tried, AnonymousUser())
    specimens = [_specimen(item, judges[item.pk], viewer) for item in tried]
    return max(specimens, key=_telling, default=None)


def _telling(candidate: Specimen) -> tuple[bool, int, int]:
    """An item says most where judges differ among themselves, and where people do not differ much."""
    judged = {line.mark for line in candidate.lines if not line.people}
    return {"agrees", "differs"} <= judged, len(judged), candidate.agreeing


def _shows(item: Item, real: set[int]) -> tuple[bool, bool, bool]:
    return (not item.sample.images.all(), len(item.sample.instruction) > SHORT, item.pk not in real)


def _specimen(item: Item, judged_by: list[one_item.JudgeVotes], viewer: Viewer) -> Specimen:
    benchmark = item.sample.benchmark
    sides = ("first", "second")
    people = one_item.people_on(item, AnonymousUser(), rule=benchmark.majority)
    lines = []
    if people.total:
        who = number_of(people.total, "person", "people")
        lines.append(SpecimenLine(who, _most(people), marks.vote_line(people.counts), people=True))
    elif people.held:
        lines.append(SpecimenLine("People", "are labelling it now", BLANK, people=True))
    judges = [votes_of for votes_of in judged_by if not votes_of.run.judge.is_baseline]
    for judge in judges[: LINES - len(lines)]:
        judged = judge.run.judge
        lines.append(
            SpecimenLine(
                judged.name,
                votes_page.sentence(judge.verdict, sides).capitalize(),
                marks.vote_line({judge.verdict: 1} if judge.verdict else {}, judge=True),
                simulated=judged.simulated,
                mark=votes_page.match(judge.verdict, people.verdict),
            )
        )
    images = list(item.sample.images.all())
    address = Address(viewer, "leaderboard:item", benchmark.slug, benchmark)
    return Specimen(
        benchmark.titled,
        item.sample.instruction,
        images[0] if images else None,
        lines,
        address.to("leaderboard:item", item.pk),
        agreeing=max(people.counts.values(), default=0),
        finished=people.total > 0,
    )


def _most(people: one_item.PeopleVotes) -> str:
    """``First, 4 of 5``: people's verdict and how many gave it."""
    word = "tie" if people.verdict == "undecided" else str(people.verdict)
    n = sum(n for choice, n in people.counts.items() if choice == word or (word == "tie" and choice == "undecided"))
    return f"{word.capitalize()}, {n} of {people.total}"
