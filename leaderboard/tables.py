"""The four boards, and what pages show beside them, as rows in full precision: for command, API and downloads.

A table is seen by whoever sees its page: ``rule`` says who that is, and the boards that it reads keep back the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from accounts.rules import Viewer, allowed
from annotations.campaigns import power as plans
from annotations.labels.agreement import Agreement, agreement_of, components_of, label_rows
from annotations.labels.monitor import visible_campaigns
from annotations.models import Annotator, Campaign
from bank.errors import BadInput
from bank.models import Benchmark
from bank.text.names import as_stored
from leaderboard import boards, kinds, queries
from leaderboard.boards import abilities, cached, lengths, repeats, reviews, standin, variance, versions, versus
from leaderboard.boards.agreement import AgreementRow
from leaderboard.boards.base import ApartRow, Board
from leaderboard.boards.bias import BiasRow, PlaceRow, by_place
from leaderboard.boards.contents import PARTS, ContentRow, contents_of
from leaderboard.boards.declared import (
    OF_JUDGES,
    OF_LABELS,
    OF_MODELS,
    OF_PLACES,
    OF_VOTERS,
    STRENGTHS,
    Rows,
    Table,
    TableQuery,
    board_rows,
    chosen_part,
    kept,
    of_models,
    of_usual_source,
)
from leaderboard.boards.held_out import HeldOutRow, releases
from leaderboard.boards.judge_board import PEOPLE, JudgeRow, JudgesBoard
from leaderboard.boards.keyed import ChoiceBoard, ChoiceRow, YesNoRow
from leaderboard.boards.lengths import LengthRow
from leaderboard.boards.pairs import PairRow
from leaderboard.boards.scores import ComponentsRow, MarksRow, ScoreRow
from leaderboard.boards.standin import StandInRow, TogetherLevel, TogetherRank, TogetherRow
from leaderboard.boards.variance import VarianceRow
from leaderboard.boards.versus import LevelMeasure, Measure
from leaderboard.definitions import JUDGED, POOL
from leaderboard.disagreements import DisagreementRow, disagreements
from leaderboard.hidden import shows_edition
from leaderboard.kinds import Kind
from leaderboard.methods import EPSILON
from leaderboard.rankings.correlation import CorrelationRow, MetaRank, SpreadRow
from leaderboard.rankings.languages import LanguageRow
from leaderboard.rows import UNKNOWN, Number, Row, number, plain, with_note
from leaderboard.scope import SAMPLES, VIEW, BadScope, Scope
from leaderboard.view import LENGTHS, MEASURES, RANKINGS, TOGETHER, checked_epsilon, judge_run, run_number, scope_of


def rows_of(table: Table, benchmark: Benchmark, given: Mapping[str, str], viewer: Viewer) -> Rows:
    """The rows for these parameters of its ``view`` and ``takes``, as the viewer may see them. Raises BadScope."""
    asked = TableQuery(
        viewer=viewer,
        named="source" in given or "run" in given,
        epsilon=checked_epsilon(given.get("epsilon", EPSILON)),
        **{name: given[name] for name in ("part", "a", "b") if name in given},
        planned={name: given[name] for name in plans.PLANNED if name in given},
    )
    staff = allowed(viewer, "read-hidden", of=benchmark)
    kind = given.get("kind") or _default_kind(table, benchmark, asked, staff=staff)
    view = {name: given[name] for name in VIEW if name in given and name not in ("kind", "run")}
    run = run_number(str(given.get("run", "")))
    scope = scope_of(benchmark=benchmark, kind=kind, run=run, staff=staff, **view)
    return table.make(replace(scope, pseudonyms=staff and not allowed(viewer, "read-names")), asked)


def _default_kind(table: Table, benchmark: Benchmark, asked: TableQuery, *, staff: bool) -> Kind:
    """The first kind with data that it can be made of."""
    board = "judges" if "a" in table.takes and of_judges(asked) else table.board
    fitting = (kind for kind in kinds.available(benchmark, board, staff=staff) if table.fits(kind))
    return next(fitting, None) or kinds.default_of(benchmark, board, staff=staff)


# ---- the four boards ----


def models(scope: Scope, asked: TableQuery) -> Rows:
    """The board of models, by its kind.

    Pairs: rank with its range, wins, ties, losses, win rate, Elo and Bradley-Terry, by level too. Scores, components:
    the mean, by level or category. Multiple choice: one pass, circular, by level, how options were found. Yes or no:
    accuracy, precision, recall, F1 and the share of yes.
    """
    scope, note = of_usual_source(scope, asked)
    board = cached(scope, "models", boards.models)
    return Rows(with_note(board.as_json(), note), [*filter(None, [note]), *board.notes])


# ---- judges and people ----


def stand_in(scope: Scope, asked: TableQuery) -> Rows:
    """The alternative annotator test of each judge: winning rate, advantage, and each annotator left out (unnamed)."""
    return board_rows(standin.stand_ins(scope, asked.epsilon))


def people_and_judge(scope: Scope, asked: TableQuery) -> Rows:
    """Each model by people alone, and by people and a judge together (PPI++).

    The judge is that of ``run`` or ``source``, else the one with verdicts on most items. Ranks: the places of the
    models by both. Levels: each model within each, with a weight of its own.
    """
    part = chosen_part(asked, TOGETHER)
    run = standin.run_beside(scope)
    if run is None:
        return Rows([], ["No judge has verdicts here."])
    board = standin.together(scope, run)
    rows: Sequence[Row] = {"models": board.rows, "ranks": board.ranks, "levels": board.levels}[part]
    return Rows([{"judge_name": board.judge, "run": run} | row.as_json() for row in rows], board.notes)


@dataclass(frozen=True, kw_only=True)
class CeilingRow(Row):
    """People against people by one metric: overall (``level`` is empty), or in a level or data set."""

    kind: str
    reference: str
    metric: str
    level: str = ""
    value: Number
    n: int


def of_lengths(scope: Scope, asked: TableQuery) -> Rows:
    """How long each model's answers are, in characters, or with part replies how long each judge's replies are, in
    tokens: mean, tenths and quarters, and a histogram (MLLM-as-a-Judge, Figures 3, 8 and 14 to 17).
    """
    board = cached(scope, "lengths", lengths.lengths)
    return Rows(plain(board.replies if chosen_part(asked, LENGTHS) == "replies" else board.rows))


def disagreed(scope: Scope, asked: TableQuery) -> Rows:
    """Where a judge decides otherwise than most people do: the items by what both say, and within by what those who
    labelled them ticked or wrote there. For those who may read single labels.
    """
    return Rows(plain(disagreements(scope, asked.viewer)))


def held_out(scope: Scope, asked: TableQuery) -> Rows:
    """What was asked for of the half that the benchmark holds out: every request with who made it and when, and the
    figures of the judge's run that it told, beside those on the open half. For staff.
    """
    rows = [
        {"request": told.number, "asked_by": str(told.by or ""), "asked_at": told.at.isoformat()} | row.as_json()
        for told, board in releases(scope.benchmark)
        for row in board.rows
    ]
    return Rows(rows)


VALUE_ALONE = "within a level the value stands alone, without an interval"


def ceiling(scope: Scope, asked: TableQuery) -> Rows:
    """People against people by every metric of judges, overall and by level or data set."""
    board: JudgesBoard = cached(scope, "judges", boards.judges)
    rows: list[CeilingRow] = []
    for reference, against in board.against.items():
        row = partial(CeilingRow, kind=scope.kind.name, reference=reference)
        for metric, of_people in against.ceiling.items():
            rows.append(row(metric=metric, value=of_people.number, n=of_people.n))
            cells = against.cells.get(metric, {}).get(PEOPLE, {})
            levels = [(level, cells[level]) for level in board.cell_order if level in cells]
            if len(levels) > 1:
                rows += [
                    row(metric=metric, level=level, value=Number(at.value, n=at.n, reason=VALUE_ALONE), n=at.n)
                    for level, at in levels
                ]
    return Rows(plain(rows), board.notes)


@dataclass(frozen=True, kw_only=True)
class CampaignRow(Row):
    """Agreement in a campaign by one metric: of everybody (``level`` is empty or a capability), how often a ``verdict``
    is the majority's, or of two annotators, ``a`` and ``b``.
    """

    campaign: str
    metric: str
    level: str = ""
    verdict: str = ""
    a: str = ""
    b: str = ""
    value: Number = UNKNOWN
    n: int
    items: int


def campaign(scope: Scope, asked: TableQuery) -> Rows:
    """Agreement within campaigns: matching labels, Krippendorff's alpha, Fleiss' kappa, Gwet's AC1 and AC2, intraclass
    correlations, by capability, and of every two annotators, by pseudonym below curators.
    """
    rows: list[CampaignRow] = []
    for labelled in _campaigns(scope, asked):
        rows += _campaign_rows(labelled, agreement_of(labelled, label_rows(labelled, asked.viewer)), asked.viewer)
    return Rows(plain(rows))


def _campaigns(scope: Scope, asked: TableQuery) -> Sequence[Campaign]:
    """The campaigns of the benchmark that this viewer may see, or the one that is asked for."""
    campaigns = visible_campaigns(asked.viewer).filter(benchmark=scope.benchmark)
    if scope.campaign:
        campaigns = campaigns.filter(name=scope.campaign)
        if not campaigns:
            raise BadScope(f"{scope.benchmark} has no campaign {scope.campaign!r}.")
    return list(campaigns.order_by("pk"))


METRICS = {
    "Matching": "matching",
    "Krippendorff's alpha, nominal": "alpha_nominal",
    "Krippendorff's alpha, ordinal": "alpha_ordinal",
    "Fleiss' kappa": "fleiss",
    "Gwet's AC1": "ac1",
    "Gwet's AC2": "ac2",
    "ICC(1)": "icc_one_way",
    "ICC(A,1)": "icc_agreement",
    "ICC(C,1)": "icc_consistency",
}


def _campaign_rows(of: Campaign, agreement: Agreement, viewer: Viewer) -> list[CampaignRow]:
    row = partial(CampaignRow, campaign=of.name)
    figures = [("", figure) for figure in agreement.figures]
    figures += [(level.name, figure) for level in agreement.levels for figure in (level.same, level.alpha)]
    rows = [
        row(
            metric=METRICS[figure.name],
            level=level,
            value=number(figure.estimate),
            n=figure.estimate.n,
            items=figure.items,
        )
        for level, figure in figures
        if agreement.items
    ]
    if agreement.items:
        unanimous = number(agreement.of_unanimous)
        rows.append(row(metric="unanimous", value=unanimous, n=agreement.items, items=agreement.items))
    for verdict, _, share in agreement.majority:
        rows.append(row(metric="majority", verdict=verdict, value=number(share), n=share.n, items=share.n))
    people = Annotator.objects.filter(pk__in=agreement.people)
    named = allowed(viewer, "read-names")
    names = {person.pk: person.shown(named=named) for person in people}
    for (a, b), cell in sorted(agreement.cells.items()):
        pair_row = partial(row, a=names[a], b=names[b], n=cell.n, items=cell.n)
        rows.append(pair_row(metric="agreement", value=number(cell.agreement)))
        rows += [pair_row(metric=name, value=number(estimate)) for name, estimate in cell.beyond_chance.items()]
    return rows


@dataclass(frozen=True, kw_only=True)
class PowerRow(Row):
    """What two models on the same items can be told apart by, with 80% power: the smallest ``detectable`` difference of
    their rates, and the items ``needed`` to find ``difference``. ``in_group`` items share a picture or prompt.
    """

    campaign: str
    plan: str
    items: int
    labels: int
    rate: float
    tie_rate: float
    alike: float
    in_group: float
    detectable: float
    difference: float
    needed: int


def power(scope: Scope, asked: TableQuery) -> Rows:
    """Before labelling: the smallest difference between two models that a campaign finds with 80% power, as planned,
    with one more label an item and with twice the items; and how many items a stated difference needs.
    """
    rows, notes = [], []
    for planned in _campaigns(scope, asked):
        if not plans.fits(planned):
            notes.append(f"{planned.name}: {plans.UNFIT}")
            continue
        try:
            found = plans.outlooks(planned, label_rows(planned, asked.viewer), asked.planned)
        except BadInput as error:
            raise BadScope(str(error)) from None
        for outlook in found:
            numbers = {name: getattr(outlook.plan, of_plan) for name, of_plan in plans.OF_PLAN.items()}
            row = PowerRow(
                campaign=planned.name,
                plan=outlook.name,
                **numbers,
                in_group=outlook.plan.in_group,
                detectable=outlook.detectable,
                difference=outlook.difference,
                needed=outlook.needed,
            )
            rows.append(row)
    return Rows(plain(rows), notes)


def variance_parts(scope: Scope, asked: TableQuery) -> Rows:
    """What verdicts differ by: prompt, item, person or order, and the rest, each with its share of the variance of one
    verdict; of campaigns, for those who may read them, and of judges. And what twice the items, or twice the people or
    repeats, would make of the standard error of the mean.
    """
    rows, notes = [], []
    readable = allowed(asked.viewer, "read-judging", of=scope.benchmark) and scope.run is None
    for labelled in _campaigns(scope, asked) if readable else ():
        labels = label_rows(labelled, asked.viewer)
        found = components_of(labels)
        if found is None:
            notes.append(f"{labelled.name}: its verdicts have no place on a scale, or there are none.")
        else:
            rows += variance.rows_of(found, len(labels), campaign=labelled.name)
    board = cached(scope, "variance", variance.of_judges) if not scope.campaign else Board[variance.VarianceRow]()
    return Rows(plain([*rows, *board.rows]), [*notes, *board.notes])


NO_NEIGHBOURS = "an edition does not say how neighbours differ"


@of_models
def apart(scope: Scope, asked: TableQuery) -> Rows:
    """Neighbours on the board of models that share a rank: their difference, what could be told apart with the items
    there are, and how many more would tell a difference like the one seen apart, with 80% power.
    """
    board = cached(scope, "models", boards.models)
    return Rows(plain(board.apart), [NO_NEIGHBOURS] if shows_edition(scope) else [])


# ---- answers to multiple choice ----


@dataclass(frozen=True, kw_only=True)
class LetterRow(Row):
    """The share of one option among those that a model chose, or, ``of`` the key, among the right ones."""

    of: str
    model: str = ""
    letter: str
    share: float


@dataclass(frozen=True, kw_only=True)
class ExtractionRow(Row):
    """For how many answers the option was found in which way; ``found``: the share named by label or judge."""

    model: str
    label: int
    judge: int
    random: int
    none: int
    no_text: int
    n: int
    found: float | None


def _choices(scope: Scope) -> ChoiceBoard:
    if not scope.kind.rotates:
        raise BadScope(f"Only answers to multiple choice have options; those of kind {scope.kind} have none.")
    return cast(ChoiceBoard, cached(scope, "models", boards.models))


def of_contents(scope: Scope, asked: TableQuery) -> Rows:
    """What instructions ask to do (verbs), how they begin (words) and what pictures show (objects), in counts of the
    samples that one sees (MLLM-Bench, Figure 4; MIA-Bench, Figure 5).
    """
    rows = contents_of(scope, asked.viewer)
    part = chosen_part(asked, ("", *PARTS))
    return Rows(plain([row for row in rows if part in ("", row.part)]))


def letters(scope: Scope, asked: TableQuery) -> Rows:
    """Multiple choice: the share of each option among those that a model chose, and among the right ones."""
    board = _choices(scope)
    rows = [LetterRow(of="key", letter=letter, share=share) for letter, share in sorted(board.right.items())]
    rows += [
        LetterRow(of="model", model=model, letter=letter, share=share)
        for model, shares in sorted(board.letters.items())
        for letter, share in sorted(shares.items())
    ]
    return Rows(plain(rows), board.notes)


def extraction(scope: Scope, asked: TableQuery) -> Rows:
    """Multiple choice: for how many answers of each model the option was found in which way."""
    board = _choices(scope)
    rows = []
    for row in sorted(board.rows, key=lambda row: row.model.casefold()):
        counts = row.extraction
        n, found = sum(counts.values()), counts["label"] + counts["judge"]
        rows.append(ExtractionRow(model=row.model, **counts, n=n, found=found / n if n else None))
    return Rows(plain(rows), board.notes)


# ---- rankings, and two of a kind ----


@of_models
def places(scope: Scope, asked: TableQuery) -> Rows:
    """Pairs: each model's win rate where its answer was shown first, and where second, each verdict by itself."""
    return Rows(plain(by_place(scope)))


def correlation(scope: Scope, asked: TableQuery) -> Rows:
    """How far rankings of the same models agree: people's, judges', other benchmarks' and versions'.

    Pairs: Spearman with its interval, Kendall, permutation p, n models. Ranks: the models that every ranking holds.
    Repeats: mean and standard deviation of the win rate over a judge's repeats. Languages (multiple choice, yes or no):
    each model's accuracy in two languages of a benchmark, and the paired difference over the questions that correspond.
    """
    part = chosen_part(asked, RANKINGS)
    if part == "languages":
        return Rows(queries.languages_beside(scope, asked.viewer))
    board = queries.correlated(scope, asked.viewer)
    return Rows(plain({"pairs": board.rows, "ranks": board.ranks, "repeats": board.repeats}[part]))


def compare(scope: Scope, asked: TableQuery) -> Rows:
    """Two models on samples both answered, or two judges' runs against people on items that both have judged.

    Each measure with the interval of the difference, p and the test.
    """
    return compare_judges(scope, asked) if of_judges(asked) else compare_models(scope, asked)


def of_judges(asked: TableQuery) -> bool:
    """Whether the two to compare are runs of judges."""
    return asked.a.startswith("run-") and asked.b.startswith("run-")


@of_models
def compare_models(scope: Scope, asked: TableQuery) -> Rows:
    """Two models on samples both answered: each measure with the interval of the difference, p and the test."""
    return _two(asked, lambda a, b: versus.models(scope, as_stored(a), as_stored(b)))


def compare_judges(scope: Scope, asked: TableQuery) -> Rows:
    """Two judges compared with people on the items that both have judged."""
    return _two(asked, lambda a, b: versus.judges(scope, judge_run(a), judge_run(b)))


def _two(asked: TableQuery, compared: Callable[[str, str], versus.Versus]) -> Rows:
    part = chosen_part(asked, MEASURES)
    if not asked.a or not asked.b:
        raise BadScope("Say which two: a and b.")
    result = compared(asked.a, asked.b)
    measured: Sequence[Row] = result.levels if part == "levels" else result.measures
    return Rows([{"a_name": result.a, "b_name": result.b} | row.as_json() for row in measured], result.notes)


MODEL_ROWS = (PairRow, ScoreRow, ComponentsRow, MarksRow, ChoiceRow, YesNoRow)
BESIDE = {"judge_name": str, "run": int}
TWO = {"a_name": str, "b_name": str}
LANGUAGES = dict.fromkeys(("a_benchmark", "a_language", "b_benchmark", "b_language", "measure"), str)
# In the order in which command and API name them; those of boards that are not here follow.
LISTED = {
    "models": Table(make=models, board="models", rows_are={row: {} for row in MODEL_ROWS}, whole=boards.models),
    "judges": Table(
        make=kept(
            "judges",
            boards.judges,
            "The board of judges: every metric of every judge against people, by majority and by single labels.",
        ),
        board="judges",
        rows_are={JudgeRow: {}},
        whole=boards.judges,
        view=OF_JUDGES,
    ),
    "agreement": Table(
        make=kept(
            "agreement",
            boards.agreement_of,
            "Agreement of every two annotators, of each with each judge, and of the majority with both.\n"
            "\n"
            "Annotators appear by pseudonym, for curators and administrators by name.",
        ),
        board="agreement",
        rows_are={AgreementRow: {}},
        whole=boards.agreement_of,
        view=OF_VOTERS,
    ),
    "bias": Table(
        make=kept(
            "bias",
            boards.bias_of,
            "The biases of each judge, and of people: position, length, own family (self), and leniency (high_score).",
        ),
        board="bias",
        rows_are={BiasRow: {}},
        whole=boards.bias_of,
        view=OF_VOTERS,
    ),
    "stand-in": Table(
        make=stand_in,
        board="judges",
        rows_are={StandInRow: {}},
        fits=lambda kind: bool(kind.stand_in),
        view=OF_LABELS,
        takes=("epsilon",),
    ),
    "people-and-judge": Table(
        make=people_and_judge,
        board="models",
        rows_are={TogetherRow: BESIDE, TogetherRank: BESIDE, TogetherLevel: BESIDE},
        fits=lambda kind: kind.has_means,
        takes=("part",),
        view=tuple(name for name in OF_MODELS if name not in (*STRENGTHS, *JUDGED, "as_printed")),
    ),
    "ceiling": Table(make=ceiling, board="judges", rows_are={CeilingRow: {}}, view=(*OF_LABELS, POOL.name)),
    **reviews.TABLES,
    **repeats.TABLES,
    **versions.TABLES,
    "disagreements": Table(
        make=disagreed,
        board="judges",
        rows_are={DisagreementRow: {}},
        view=("source", "run", *OF_LABELS),
        rule="read-labels",
    ),
    "held-out": Table(
        make=held_out,
        board="judges",
        rows_are={HeldOutRow: {"request": int, "asked_by": str, "asked_at": str}},
        view=(),
        rule="read-hidden",
    ),
    "lengths": Table(
        make=of_lengths, board="bias", rows_are={LengthRow: {}}, view=("kind", "run", *SAMPLES), takes=("part",)
    ),
    "campaign": Table(
        make=campaign, board="judges", rows_are={CampaignRow: {}}, view=("campaign",), rule="read-judging"
    ),
    "power": Table(
        make=power,
        board="judges",
        rows_are={PowerRow: {}},
        view=("campaign",),
        takes=plans.PLANNED,
        rule="read-judging",
    ),
    "variance": Table(
        make=variance_parts,
        board="judges",
        rows_are={VarianceRow: {}},
        fits=lambda kind: kind.on_scale,
        view=("kind", "run", "campaign", "level", "question_type", "split"),
    ),
    "apart": Table(
        make=apart, board="models", rows_are={ApartRow: {}}, view=tuple(name for name in OF_MODELS if name != "elo")
    ),
    **abilities.TABLES,
    "contents": Table(make=of_contents, board="models", rows_are={ContentRow: {}}, view=SAMPLES, takes=("part",)),
    "letters": Table(make=letters, board="models", rows_are={LetterRow: {}}, fits=lambda kind: kind.rotates),
    "extraction": Table(make=extraction, board="models", rows_are={ExtractionRow: {}}, fits=lambda kind: kind.rotates),
    "places": Table(
        make=places, board="models", rows_are={PlaceRow: {}}, fits=lambda kind: kind.pairwise, view=OF_PLACES
    ),
    "correlation": Table(
        make=correlation,
        board="models",
        rows_are={CorrelationRow: {}, MetaRank: {}, SpreadRow: {}, LanguageRow: LANGUAGES},
        takes=("part",),
        alone=False,
    ),
    "compare": Table(
        make=compare, board="models", rows_are={Measure: TWO, LevelMeasure: TWO}, takes=("a", "b", "part")
    ),
}


def _found() -> dict[str, Table]:
    """What the files of ``boards`` declare: a new board is its file alone."""
    files = (import_module(f"{boards.__name__}.{file.name}") for file in iter_modules(boards.__path__))
    return {name: table for file in files for name, table in getattr(file, "TABLES", {}).items()}


TABLES = LISTED | _found()
BOARDS = {name: table.whole for name, table in TABLES.items() if table.whole}
COMPARE_MODELS = replace(TABLES["compare"], make=compare_models)
COMPARE_JUDGES = replace(TABLES["compare"], make=compare_judges, board="judges")
