"""The four boards, and what pages show beside them, as rows in full precision: for command, API and downloads.

A table is seen by whoever sees its page: ``rule`` says who that is, and the boards that it reads keep back the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from accounts.rules import Viewer, allowed
from annotations.campaigns import power as plans
from bank.models import Benchmark
from bank.text.names import as_stored
from leaderboard import kinds
from leaderboard.boards import seen
from leaderboard.boards.agreement import campaigns, variance
from leaderboard.boards.agreement.board import AgreementRow
from leaderboard.boards.base import ApartRow
from leaderboard.boards.behind.disagreements import DisagreementRow, disagreements
from leaderboard.boards.biases.board import BiasRow, PlaceRow, by_place
from leaderboard.boards.correlation.board import CorrelationRow, MetaRank, SpreadRow, correlated
from leaderboard.boards.correlation.languages import LanguageRow, languages_beside
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
from leaderboard.boards.judges import ceiling, repeats, reviews, versions
from leaderboard.boards.judges import stand_in as of_stand_in
from leaderboard.boards.judges.board import JudgeRow
from leaderboard.boards.judges.stand_in import StandInRow, TogetherLevel, TogetherRank, TogetherRow
from leaderboard.boards.models import abilities, lengths, letters
from leaderboard.boards.models.contents import PARTS, ContentRow, contents_of
from leaderboard.boards.models.keyed import ChoiceRow, YesNoRow
from leaderboard.boards.models.lengths import LengthRow
from leaderboard.boards.models.pairs import PairRow
from leaderboard.boards.models.scores import ComponentsRow, MarksRow, ScoreRow
from leaderboard.boards.standing import state_of
from leaderboard.boards.versus import board as versus
from leaderboard.boards.versus.board import LevelMeasure, Measure
from leaderboard.held_out.board import HeldOutRow, releases
from leaderboard.kinds import Kind
from leaderboard.methods import EPSILON
from leaderboard.rows import Row, plain, with_note
from leaderboard.scope import JUDGED, SAMPLES, VIEW, BadScope, Scope
from leaderboard.sight import MODELS, Sight
from leaderboard.view import (
    LENGTHS,
    MEASURES,
    RANKINGS,
    TOGETHER,
    check_state,
    checked_epsilon,
    judge_run,
    run_number,
    scope_of,
)


def rows_of(table: Table, benchmark: Benchmark, given: Mapping[str, str], viewer: Viewer) -> Rows:
    """The rows for these parameters of its ``view`` and ``takes``, as the viewer may see them. Raises BadScope."""
    asked = TableQuery(
        viewer=viewer,
        named="source" in given or "run" in given,
        epsilon=checked_epsilon(given.get("epsilon", EPSILON)),
        **{name: given[name] for name in ("part", "a", "b") if name in given},
        planned={name: given[name] for name in plans.PLANNED if name in given},
    )
    check_state(given.get("state", ""))
    staff = allowed(viewer, "read-hidden", of=benchmark) and not given.get("state")
    kind = given.get("kind") or _default_kind(table, benchmark, asked, staff=staff)
    view = {name: given[name] for name in VIEW if name in given and name not in ("kind", "run", "state")}
    run = run_number(str(given.get("run", "")))
    scope = scope_of(benchmark=benchmark, kind=kind, run=run, staff=staff, **view)
    rows = table.make(replace(scope, pseudonyms=staff and not allowed(viewer, "read-names")), asked)
    state = state_of(of_usual_source(scope, asked)[0] if table.board == "models" else scope, table.board)
    return replace(rows, rows=[row | state for row in rows.rows])


def _default_kind(table: Table, benchmark: Benchmark, asked: TableQuery, *, staff: bool) -> Kind:
    """The first kind with data that it can be made of."""
    board = "judges" if "a" in table.takes and of_judges(asked) else table.board
    fitting = (kind for kind in kinds.available(benchmark, board, staff=staff) if table.fits(kind))
    usual = kinds.USUAL if table.fits(kinds.USUAL) else kinds.default_of(benchmark, board, staff=staff)
    return next(fitting, usual)


# ---- the four boards ----


def models(scope: Scope, asked: TableQuery) -> Rows:
    """The board of models, by its kind.

    Pairs: rank with its range, wins, ties, losses, win rate, Elo and Bradley-Terry, by level too. Scores, components:
    the mean, by level or category. Multiple choice: one pass, circular, by level, how options were found. Yes or no:
    accuracy, precision, recall, F1 and the share of yes.
    """
    scope, note = of_usual_source(scope, asked)
    board = seen.models(scope)
    return Rows(with_note(board.as_json(), note), [*filter(None, [note]), *board.notes])


# ---- judges and people ----


def stand_in(scope: Scope, asked: TableQuery) -> Rows:
    """The alternative annotator test of each judge: winning rate, advantage, and each annotator left out (unnamed)."""
    return board_rows(of_stand_in.stand_ins(scope, asked.epsilon))


def people_and_judge(scope: Scope, asked: TableQuery) -> Rows:
    """Each model by people alone, and by people and a judge together (PPI++).

    The judge is that of ``run`` or ``source``, else the one with verdicts on most items. Ranks: the places of the
    models by both. Levels: each model within each, with a weight of its own.
    """
    part = chosen_part(asked, TOGETHER)
    run = of_stand_in.run_beside(scope)
    if run is None:
        return Rows([], ["No judge has verdicts here."])
    board = of_stand_in.together(scope, run)
    rows: Sequence[Row] = {"models": board.rows, "ranks": board.ranks, "levels": board.levels}[part]
    return Rows([{"judge_name": board.judge, "run": run} | row.as_json() for row in rows], board.notes)


def of_lengths(scope: Scope, asked: TableQuery) -> Rows:
    """How long each model's answers are, in characters, or with part replies how long each judge's replies are, in
    tokens: mean, tenths and quarters, and a histogram (MLLM-as-a-Judge, Figures 3, 8 and 14 to 17).
    """
    board = lengths.lengths(scope)
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
    rows = []
    for told, board in releases(scope.benchmark):
        request = {"request": told.number, "asked_by": str(told.by or ""), "asked_at": told.at.isoformat()}
        rows += [request | row.as_json() for row in board.rows]
    return Rows(rows)


@of_models
def apart(scope: Scope, asked: TableQuery) -> Rows:
    """Neighbours on the board of models that share a rank: their difference, what could be told apart with the items
    there are, and how many more would tell a difference like the one seen apart, with 80% power.
    """
    return Rows(plain(seen.models(scope).apart), list(filter(None, [Sight(scope, MODELS).reason])))


def of_contents(scope: Scope, asked: TableQuery) -> Rows:
    """What instructions ask to do (verbs), how they begin (words) and what pictures show (objects), in counts of the
    samples that one sees (MLLM-Bench, Figure 4; MIA-Bench, Figure 5).
    """
    rows = contents_of(scope, asked.viewer)
    part = chosen_part(asked, ("", *PARTS))
    return Rows(plain([row for row in rows if part in ("", row.part)]))


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
        return Rows(languages_beside(scope, asked.viewer))
    board = correlated(scope, asked.viewer)
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
    return _two(asked, lambda a, b: seen.two_models(scope, as_stored(a), as_stored(b)))


def compare_judges(scope: Scope, asked: TableQuery) -> Rows:
    """Two judges compared with people on the items that both have judged."""
    return _two(asked, lambda a, b: seen.two_judges(scope, judge_run(a), judge_run(b)))


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
# In the order in which command and API name them.
TABLES = {
    "models": Table(make=models, board="models", rows_are={row: {} for row in MODEL_ROWS}, whole=seen.models),
    "judges": Table(
        make=kept(
            seen.judges,
            "The board of judges: every metric of every judge against people, by majority and by single labels.",
        ),
        board="judges",
        rows_are={JudgeRow: {}},
        whole=seen.judges,
        view=OF_JUDGES,
    ),
    "agreement": Table(
        make=kept(
            seen.agreement_of,
            "Agreement of every two annotators, of each with each judge, and of the majority with both.\n"
            "\n"
            "Annotators appear by pseudonym, for curators and administrators by name.",
        ),
        board="agreement",
        rows_are={AgreementRow: {}},
        whole=seen.agreement_of,
        view=OF_VOTERS,
    ),
    "bias": Table(
        make=kept(
            seen.bias_of,
            "The biases of each judge, and of people: position, length, own family (self), and leniency (high_score).",
        ),
        board="bias",
        rows_are={BiasRow: {}},
        whole=seen.bias_of,
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
    **ceiling.TABLES,
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
    **campaigns.TABLES,
    **variance.TABLES,
    "apart": Table(
        make=apart, board="models", rows_are={ApartRow: {}}, view=tuple(name for name in OF_MODELS if name != "elo")
    ),
    **abilities.TABLES,
    "contents": Table(make=of_contents, board="models", rows_are={ContentRow: {}}, view=SAMPLES, takes=("part",)),
    **letters.TABLES,
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


BOARDS = {name: table.whole for name, table in TABLES.items() if table.whole}
COMPARE_MODELS = replace(TABLES["compare"], make=compare_models)
COMPARE_JUDGES = replace(TABLES["compare"], make=compare_judges, board="judges")
