"""The home page: one item with its verdicts, and the state of each benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed, class_of
from annotations.labels.desk import Board
from annotations.models import Campaign, CampaignItem, Label
from bank.models import Benchmark, Item, Sample, SampleImage
from bank.recipes import store
from judging.models import Judgment, Run
from leaderboard import votes
from leaderboard.benchmarks import BenchmarkCounts, benchmark_counts, newest_visible
from leaderboard.boards import seen
from leaderboard.boards.base import ModelRow, ModelsBoard
from leaderboard.boards.behind import item_page as one_item
from leaderboard.boards.behind import votes_page
from leaderboard.boards.empty import Empty, too_few, why_no_judges, why_no_models
from leaderboard.boards.judges.board import MAJORITY, JudgeRow, JudgesBoard
from leaderboard.boards.models import page as models_page
from leaderboard.boards.standing import rounds_beside_people, rounds_of
from leaderboard.hidden import of_one_source
from leaderboard.kept.values import until_changed
from leaderboard.kinds import Kind
from leaderboard.kinds.base import Shape
from leaderboard.lookups import KnownModel, KnownModels, known_models
from leaderboard.methods import PROVISIONAL
from leaderboard.metrics import SIDED, Metric
from leaderboard.pages import pictures
from leaderboard.rows import Number
from leaderboard.scope import BadScope
from leaderboard.show import marks, plots, sharing
from leaderboard.show.provenance import verdicts_link
from leaderboard.sight import JUDGES
from leaderboard.view import Address, Source, rows_behind, source_of
from stats.figures import NONE, interval, number_of, percent, rank_range, tick, whole, whole_percent
from stats.ranks import Place

BLANK = SafeString()
TOP = 3
MOST = 4  # benchmarks shown; the index has all
SEARCHED = 200  # items looked at for the one that is shown
TRIED = 12  # of them with everybody's verdict
SHORT = 150  # characters
LINES = 5
WIDTH, ROW = 104, 28  # pixels, of the marks: as wide as a phone has room for, so that nothing is scaled
PUBLIC = Benchmark.Visibility.PUBLIC


@dataclass(frozen=True, slots=True)
class Ranked:
    """A judge's row, and where it stands."""

    run: Run
    row: JudgeRow
    standing: Place | None


@dataclass(frozen=True, slots=True)
class MiniRow:
    rank: str  # or its range
    name: str
    link: str
    value: str
    bar: SafeString
    page: str
    simulated: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark: what it is, its best models and judges, and how many more there are of each; ``people``: the
    number of one more person, below the judges.
    """

    counts: BenchmarkCounts
    link: str
    models_link: str
    judges_link: str
    models: list[MiniRow]
    models_note: str
    models_unit: str
    more_models: int
    of_all: str  # which models are not among them
    models_as_of: str  # where they are of an earlier state
    judges: list[MiniRow]
    no_judges: Empty | None
    judges_as_of: str
    judges_unit: str
    more_judges: int
    people: SafeString
    label_link: str  # where labels are missing


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
    """The number of the first sentence: how often the best judge of a benchmark sides with people, and how often one
    more person does; as the board of judges has them. ``other``: the same by the second measure, in a sentence.
    """

    benchmark: str
    answers: str  # to what they are, in words
    judge: str
    items: str
    share: str
    share_interval: str
    person: str
    person_interval: str
    rows: str  # the judge's verdicts
    board: str
    other: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Benchmarks with their best models and judges, on shared axes."""

    entries: list[Entry]
    models_axis: SafeString
    judges_axis: SafeString


@dataclass(frozen=True, slots=True)
class Picture:
    """What agreement with people costs on a benchmark, drawn for wide windows and for phones, and where it is as a file
    and as a board.
    """

    title: str
    under: str
    drawn: SafeString
    narrow: SafeString
    png: str
    svg: str
    board: str
    alt: str


@dataclass(frozen=True, slots=True)
class Home:
    summary: Summary
    specimen: Specimen | None
    headline: Headline | None
    picture: Picture | None
    shared: pictures.Picture | None  # what stands for the page elsewhere if it shows no picture
    benchmarks: int
    computed_at: datetime | None
    vote_heads: SafeString


@dataclass(frozen=True, slots=True)
class _Place:
    """A benchmark with its two boards, before rendering."""

    counts: BenchmarkCounts
    address: Address
    source: Source  # of the board of models
    models: ModelsBoard
    judges: JudgesBoard
    shape: Shape  # of the number that ranks the models
    judges_kind: Kind
    refused: str = ""  # why there is no board of models of the view

    @property
    def kind(self) -> Kind:
        """Of the board of models."""
        return self.source.scope.kind

    @property
    def main(self) -> str:
        return self.shape.main.name

    @property
    def of_judges(self) -> Address:
        """The address of the board of judges."""
        return replace(self.address, page="leaderboard:judges")

    @property
    def metric(self) -> Metric:
        return self.judges_kind.metric("", self.judges.measured)

    @property
    def person(self) -> Number:
        """One more person by this metric."""
        return self.judges.person(self.metric.name).number


def build_home_page(viewer: Viewer) -> Home:
    """Everything that the page shows; computed again only when the data of a benchmark on it have changed."""
    return until_changed(("home", class_of(viewer)), lambda: _made(viewer))


def boards_fed(boards: Sequence[Board], viewer: Viewer) -> list[tuple[Board, Entry | None]]:
    """The boards that an annotator's labels count for, each with what the page of visitors says of it, if it does."""
    entries = {entry.counts.benchmark: entry for entry in build_home_page(viewer).summary.entries}
    return [(board, entries.get(board.benchmark)) for board in boards]


def _made(viewer: Viewer) -> Home:
    newest = newest_visible(viewer)
    by_verdicts = sorted(benchmark_counts(newest, viewer), key=lambda counts: -(counts.labels + counts.judgments))
    first = by_verdicts[:MOST]
    places = []
    for counts in first:
        address = Address(viewer, "leaderboard:models", counts.name, counts.benchmark)
        places.append(_place(counts, address))
    judges = [_top_judges(place) for place in places]
    times = [place.models.computed_at for place in places if place.models.computed_at]
    picture = next(filter(None, map(_picture, places)), None)
    return Home(
        summary=_summary(places, judges),
        specimen=specimen(viewer, [counts.benchmark for counts in first]),
        headline=_headline(places, judges),
        picture=picture,
        shared=pictures.shared(places[0].of_judges, pictures.OF_JUDGES) if places and not picture else None,
        benchmarks=len(newest),
        computed_at=max(times) if times else None,
        vote_heads=marks.vote_heads(WIDTH),
    )


def summary_of(counts: BenchmarkCounts, address: Address) -> Summary:
    """The best models and judges of one benchmark."""
    place = _place(counts, address)
    return _summary([place], [_top_judges(place)])


def _summary(places: Sequence[_Place], judges: Sequence[list[Ranked]]) -> Summary:
    """One axis for everything in percent, and one for all metrics of judges; scores use the axis of their scale."""
    models = [_top_models(place) for place in places]
    known = known_models(row.model for row in chain.from_iterable(models))
    shares: list[float | None] = []
    ends: list[float | None] = []
    for place, rows, ranked in zip(places, models, judges, strict=True):
        if place.shape.hundred:
            for row in rows:
                shares += _shares(place, row)
        if ranked:
            ends += place.person.ends
        for judge in ranked:
            ends += judge.row.value.ends
    of_models = marks.axis(shares, width=WIDTH, unit=0.01, row=ROW)
    of_judges = marks.axis(ends, width=WIDTH, row=ROW)
    in_percent = all(place.metric.is_share for place, ranked in zip(places, judges, strict=True) if ranked)
    return Summary(
        [
            _entry(place, top, ranked, of_models, of_judges, known)
            for place, top, ranked in zip(places, models, judges, strict=True)
        ],
        models_axis=marks.axis_head(of_models, whole_percent),
        judges_axis=marks.axis_head(of_judges, whole_percent if in_percent else tick),
    )


def _entry(
    place: _Place,
    top: list[ModelRow],
    ranked: list[Ranked],
    of_models: marks.Axis,
    of_judges: marks.Axis,
    known: KnownModels,
) -> Entry:
    measured = _measured(place)
    labels_help = bool(place.counts.labels) and not ranked
    return Entry(
        counts=place.counts,
        link=place.address.to("leaderboard:benchmark"),
        models_link=place.address.link(),
        judges_link=place.address.to("leaderboard:judges"),
        models=[_model_row(place, row, of_models, known[row.model]) for row in top],
        models_note=place.source.note or _models_note(place, top),
        models_unit=place.shape.short if top else "",
        more_models=max(0, len(_with_number(place)) - len(top)),
        of_all=_of_all(place) if top else "",
        models_as_of=rounds_of(of_one_source(place.source.scope)).in_short if top else "",
        judges=[_judge_row(place, judge, of_judges) for judge in ranked],
        no_judges=None if ranked else _no_judges(place, measured),
        judges_as_of=rounds_beside_people(place.of_judges.scope()).in_short if ranked else "",
        judges_unit=_judges_unit(place) if ranked else "",
        more_judges=max(0, len(measured) - len(ranked)),
        people=_people(place, of_judges) if ranked else BLANK,
        label_link=reverse("annotations:index") if labels_help and allowed(place.address.viewer, "label") else "",
    )


def _of_all(place: _Place) -> str:
    rows = len(_with_number(place))
    return models_page.of_all_models(
        place.counts.models, place.models, place.kind, rows=rows, anchor=place.source.scope.anchor
    )


def _people(place: _Place, scale: marks.Axis) -> SafeString:
    """``people 70.9`` under their line."""
    if place.person.value is None:
        return BLANK
    return marks.below(scale, place.person.value, f"people {place.metric.write(place.person.value)}")


def _place(counts: BenchmarkCounts, address: Address) -> _Place:
    source = source_of(address)
    refused = ""
    try:
        board = seen.models(source.scope)
    except BadScope as error:
        board, refused = ModelsBoard(), str(error)
    of_judges = replace(address, page="leaderboard:judges").scope()
    judges = seen.judges(of_judges)
    kind = source.scope.kind
    shape = _shape_of(kind, board)
    return _Place(counts, address, source, board, judges, shape, of_judges.kind, refused)


def _shape_of(kind: Kind, board: ModelsBoard) -> Shape:
    """That of the number that ranks; of an edition that leaves it out of every row, that of another that it tells."""
    ranking = kind.shapes.get(board.ranked_by, kind.shape)
    for shape in (ranking, *kind.shapes.values()):
        if any(row.number(shape.main.name).value is not None for row in board.rows):
            return shape
    return ranking


def _headline(places: Sequence[_Place], judges: Sequence[list[Ranked]]) -> Headline | None:
    """Of the first public benchmark on the page whose people and best judge are real."""
    for place, ranked in zip(places, judges, strict=True):
        if not (ranked and place.judges_kind.pairwise) or place.counts.benchmark.visibility != PUBLIC:
            continue
        run, row = ranked[0].run, ranked[0].row
        scope = place.of_judges.scope()
        if run.judge.simulated or place.person.value is None:
            continue
        of_simulated, _ = votes.labels_by_origin(scope)
        if of_simulated:
            continue
        if place.metric is SIDED and row.n >= PROVISIONAL:
            board = place.address.to("leaderboard:judges")
            return Headline(
                benchmark=place.counts.benchmark.titled,
                answers=_answers_to(place.counts.benchmark),
                judge=run.judge.name,
                items=whole(row.n),
                share=percent(row.value.value),
                share_interval=interval(row.value, percent),
                person=percent(place.person.value),
                person_interval=interval(place.person, percent),
                rows=verdicts_link(place.address, run, metric=SIDED.name) or board,
                board=board,
                other=_by_other_measure(place, run),
            )
    return None


def _answers_to(benchmark: Benchmark) -> str:
    pictured = SampleImage.objects.filter(sample__in=benchmark.samples.in_use())
    return "answers to pictures" if pictured.exists() else "text answers"


def _picture(place: _Place) -> Picture | None:
    address = place.of_judges
    plot = pictures.plot_of_judges(address, address.sight(JUDGES), place.judges)
    if plot is None:
        return None
    png, svg = (address.to("leaderboard:picture", "judges-price", shape) for shape in ("png", "svg"))
    drawn, narrow, alt = plots.points(plot), plots.narrow(plot), sharing.titled(plot)
    return Picture(plot.title, plot.under, drawn, narrow, png, svg, address.link(), alt)


def _by_other_measure(place: _Place, run: Run) -> str:
    """``With ties counted, GPT-4 has 39.1 and people 58.0.``"""
    counted = place.judges_kind.metrics[0]
    row = place.judges.overall().get(run.pk, {}).get(counted.name)
    people = place.judges.person(counted.name).number.value
    if row is None or people is None:
        return ""
    return f"With ties counted, {run.judge} has {percent(row.value.value)} and people {percent(people)}"


def _judges_unit(place: _Place) -> str:
    return f"{place.metric.within_sentence} with people{', in %' if place.metric.is_share else ''}"


def _with_number(place: _Place) -> list[ModelRow]:
    anchor = place.source.scope.anchor
    return [row for row in place.models.rows if row.model != anchor and row.number(place.main).value is not None]


def _top_models(place: _Place) -> list[ModelRow]:
    """In the order of the number that is shown."""

    def order(row: ModelRow) -> tuple[bool, float, int]:
        few = models_page.is_provisional(row, place.source.scope.anchor)
        return few, -(row.number(place.main).value or 0.0), row.rank or 0

    return sorted(_with_number(place), key=order)[:TOP]


def _shares(place: _Place, row: ModelRow) -> list[float | None]:
    """The number that ranks and its ends, as shares of 1."""
    hundred = place.shape.hundred or 1.0
    return [None if end is None else end / hundred for end in row.number(place.main).ends]


def _model_row(place: _Place, row: ModelRow, scale: marks.Axis, known: KnownModel) -> MiniRow:
    few = models_page.is_provisional(row, place.source.scope.anchor)
    write: Any = percent
    ends = _shares(place, row)
    kind = place.kind
    if not place.shape.hundred:
        scale, write = marks.Axis(*kind.ends(place.counts.benchmark), (), WIDTH, ROW), place.shape.main.write
    bar = marks.interval_bar(scale, *ends, write=write, provisional=few)
    rank = NONE
    if not few and row.rank is not None:
        rank = rank_range(row.rank, row.rank_low, row.rank_high)
    link = rows_behind(place.address, place.source.sight, row.model)
    return MiniRow(rank, row.model, link, write(ends[0]), bar, known.page, known.simulated)


def _models_note(place: _Place, rows: list[ModelRow]) -> str:
    if rows:
        return ""
    if not place.models.rows and store.is_answered(place.counts.benchmark):
        link = reverse("leaderboard:desiderata")
        return format_html('Asked by recipes: <a href="{}">more than right answers</a>.', link)
    if place.refused:
        return place.refused
    if place.models.rows:
        most = max((row.number(place.main) for row in place.models.rows), key=lambda number: number.groups or 0)
        few = too_few(most.groups or 0, items=most.n or 0)
        return few.in_short if few else ""
    return why_no_models(place.source.scope).in_short


def _no_judges(place: _Place, measured: Sequence[Ranked]) -> Empty:
    if measured:
        most = max(measured, key=_groups)
        few = too_few(_groups(most), items=most.row.n)
        assert few, "of judges on enough groups some are shown"
        return few
    return why_no_judges(place.of_judges.scope())


def _groups(judge: Ranked) -> int:
    return judge.row.value.groups or 0


def _measured(place: _Place) -> list[Ranked]:
    """The rows of judges by the metric, best first, with their standing; baselines are none of them."""
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
    return [Ranked(runs[row.run], row, standing.get(row.run)) for row in rows if row.run in runs]


def _top_judges(place: _Place) -> list[Ranked]:
    """Those on too few items for a rank come last."""
    told = [judge for judge in _measured(place) if not too_few(_groups(judge), items=judge.row.n)]
    return sorted(told, key=lambda judge: judge.row.n < PROVISIONAL)[:TOP]


def _judge_row(place: _Place, judge: Ranked, scale: marks.Axis) -> MiniRow:
    run, row, standing = judge.run, judge.row, judge.standing
    person = place.person
    bar = marks.interval_bar(
        scale,
        *row.value.ends,
        write=place.metric.write,
        ceiling=person.value,
        band=(person.low, person.high),
        provisional=row.n < PROVISIONAL,
    )
    page = reverse("leaderboard:judge-detail", args=[run.judge_id])
    link = place.address.to("leaderboard:judges", kind=place.judges_kind.name)
    if place.judges_kind.pairwise:
        link = verdicts_link(place.address, run, metric=place.metric.name) or link
    rank = NONE
    if standing is not None and row.n >= PROVISIONAL:
        rank = rank_range(standing.rank, standing.rank_low, standing.rank_high)
    return MiniRow(rank, row.judge, link, place.metric.write(row.value.value), bar, page, row.simulated)


# ---- one item, as judged ----


def specimen(viewer: Viewer, benchmarks: list[Benchmark]) -> Specimen | None:
    """An interesting item of a public benchmark: with a picture, labels by people, and judges that differ."""
    public = [benchmark for benchmark in benchmarks if benchmark.visibility == Benchmark.Visibility.PUBLIC]
    samples = Sample.objects.verdicts_visible_to(AnonymousUser()).filter(benchmark__in=public)
    pairs = Item.objects.filter(kind=Item.Kind.PAIR, sample__in=samples)
    # Checked verdict by verdict: a list of all pairs may have a million entries.
    of_pair = Exists(pairs.filter(pk=OuterRef("item")))
    labels = Label.objects.seen_by(AnonymousUser()).of_answers().filter(of_pair, excluded=False, choice__isnull=False)
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
        lines.append(SpecimenLine(who, _most(people), marks.vote_line(people.counts, width=WIDTH), people=True))
    elif people.under_way:
        lines.append(SpecimenLine("People", "are labelling it now", BLANK, people=True))
    judges = [votes_of for votes_of in judged_by if not votes_of.run.judge.is_baseline]
    for judge in judges[: LINES - len(lines)]:
        judged = judge.run.judge
        lines.append(
            SpecimenLine(
                judged.name,
                votes_page.sentence(judge.verdict, sides),
                marks.vote_line({judge.verdict: 1} if judge.verdict else {}, judge=True, width=WIDTH),
                simulated=judged.simulated,
                mark=votes_page.match(judge.verdict, people.compared),
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
    """``First, 4 of 5``: people's verdict and how many gave it; ``No majority`` where it is nobody's."""
    if people.split:
        return votes_page.NO_MAJORITY
    word = "tie" if people.verdict == "undecided" else str(people.verdict)
    n = sum(n for choice, n in people.counts.items() if choice == word or (word == "tie" and choice == "undecided"))
    return f"{word.capitalize()}, {n} of {people.total}"
