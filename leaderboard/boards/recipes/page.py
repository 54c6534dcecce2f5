"""Pages of recipes and of desiderata: what their templates show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from bank.models import Recipe, Response
from bank.recipes.spec import ALONE, OPTIONS, Nearest, Numbers, Scenario, Spec, Tree, Turn
from bank.recipes.verbalizers import GROUPS
from judging.models import Evaluation, Judge, Run
from judging.recipes.evaluations import ABILITIES
from leaderboard.boards.recipes.board import ALL, METRICS, ConditionRow, RecipeBoard, RecipeRow
from leaderboard.boards.recipes.desiderata import (
    FEWEST,
    QUALITIES,
    DesiderataBoard,
    DesiderataRow,
    Quality,
    QualityCorrelationRow,
)
from leaderboard.lookups import KnownModels, known_models
from leaderboard.rows import Number
from leaderboard.show import marks, plots
from leaderboard.show.marks import Cell, Chip
from leaderboard.show.table import Column, Group, Table, axis_of, drawn, names, number_cell, table, text, tiers
from stats.desiderata import softmax, spread
from stats.figures import (
    NONE,
    in_brackets,
    listed,
    number_of,
    percent,
    rank_range,
    signed,
    signed_points,
    two,
    value_or_interval,
    whole,
    whole_percent,
)


def answers_link(recipe: Recipe | str, model: str, **chosen: str | int) -> str:
    """Where the answers stand that a figure of a model is made of."""
    query = {"model": model} | {name: value for name, value in chosen.items() if value != ""}
    return reverse("leaderboard:recipe-answers", args=[str(recipe)], query=query)


def model_cell(name: str, known: KnownModels, scenario: str = "") -> Cell:
    chips = (Chip("simulated", title="Its answers are known, as everything of the demo is"),)
    return Cell(f"{name}, {scenario}" if scenario else name, chips=chips if known[name].simulated else ())


# ---- one recipe ----


@dataclass(frozen=True, slots=True)
class Part:
    """One of the four parts of a recipe: title, what it is, and lines (name, words)."""

    title: str
    about: str
    lines: list[tuple[str, str]]


def _questions(scenario: Scenario) -> str:
    drawn = f"{scenario.sample:,} drawn by the seed" if scenario.sample else ""
    return ", ".join(filter(None, (scenario.split, *scenario.levels, drawn))) or "all questions"


def parts_of(spec: Spec) -> list[Part]:
    """The four parts in words, in reading order."""
    scenarios = [(scenario.benchmark, _questions(scenario)) for scenario in spec.scenario]
    turns = [(f"Turn {at}", _turn(turn)) for at, turn in enumerate(spec.turns, start=1)]
    asked = f"{spec.repeats} times" if spec.repeats > 1 else "once"
    temperature = "not sent" if spec.temperature is None else f"{spec.temperature:g}"
    metric = METRICS[spec.metric]
    scored = [("Score", metric.words), ("Asked", f"{asked}, temperature {temperature}, seed {spec.seed}")]
    if spec.judge:
        judge = Judge.objects.filter(name=spec.judge).first()
        scored.append(("Judge", f"{judge or spec.judge}{', of all answers' if spec.marked == 'all' else ''}"))
    return [
        Part("Scenario", "what is asked", scenarios),
        Part("Instruction", "how it is asked", _instruction(spec)),
        Part("Inferencer", "how it answers", turns),
        Part("Metric", "how it is scored", scored),
    ]


def _instruction(spec: Spec) -> list[tuple[str, str]]:
    queries = len(spec.instruction.queries)
    instruction = [
        ("Query", "the standard one" if queries == 1 else f"{queries} in all, {_dealt(spec)}"),
        ("Examples", examples_in_words(spec) or "none"),
    ]
    if spec.instruction.verbalizer != "none":
        instruction.append(("Labels", f"{spec.instruction.verbalizer} ones in place of letters"))
    if not spec.instruction.pictures:
        instruction.append(("Pictures", "not shown"))
    if spec.corruption.strategy != "none":
        instruction.append(("Corruption", corruption_in_words(spec)))
    return instruction


def _dealt(spec: Spec) -> str:
    return f"dealt by seed {spec.seed}" if spec.instruction.deal == "seeded" else "of which the first is asked"


def examples_in_words(spec: Spec) -> str:
    """Which examples stand before a question; "" for none."""
    rule = spec.instruction.examples
    if rule.how == "none":
        return ""
    how = {"random": "random", "fixed": "fixed", "top-text": "nearest by text", "top-image": "nearest by picture"}
    pictures = "with pictures" if rule.images else "as text"
    return f"{rule.k}, {how[rule.how]}, {pictures}; never of the question's own group, never from a hidden split"


def corruption_in_words(spec: Spec) -> str:
    rule = spec.corruption
    if rule.strategy == "single":
        return f"{rule.image or rule.text}, severity {rule.severity or 'drawn by the seed'}"
    what = " and ".join(word for word, on in (("pictures", rule.image), ("questions", rule.text)) if on)
    if rule.strategy == "each":
        return f"{what}, each method alone, at {f'severity {rule.severity}' if rule.severity else 'every severity'}"
    return f"{what}, one method of each category, drawn by the seed"


def _turn(turn: Turn) -> str:
    if turn.kind == "cot":
        return "reasons, step by step"
    if turn.kind == "direct":
        return "an answer in words"
    pool = turn.pool
    if pool == OPTIONS:
        answers = "each option"
    elif isinstance(pool, Tree):
        answers = f"each class, down a tree of {len(pool.tree):,}"
    elif isinstance(pool, Numbers):
        answers = f"the key and {pool.numbers} numbers below and above"
    elif isinstance(pool, Nearest):
        answers = f"the key and the {pool.nearest} nearest other keys"
    else:
        answers = "yes and no" if pool == "yes-no" else f"each of {len(pool)} answers"
    way = "its first token" if turn.by == "first-token" else "the whole answer"
    return f"likelihood (PPL) of {answers}, by {way}{', per token' if turn.sum == 'per-token' else ''}"


def endpoints_for(spec: Spec) -> list[tuple[Judge, list[tuple[str, str]], str]]:
    """Each with what it can do ("yes", "no" or "not tested", and a class), and why it cannot be asked by this one."""
    lines = []
    for judge in Judge.objects.exclude(base_url="").order_by("name"):
        known = [judge.abilities.get(name) for name in ("vision", "logprobs", "prompt_logprobs")]
        words = [("not tested", "dim") if able is None else ("yes", "ok") if able else ("no", "dim") for able in known]
        problem = ""
        for way in sorted(spec.ways):
            able = judge.abilities.get(ABILITIES[way][0])
            if able is False:
                problem = "no log-probabilities: use a direct inferencer" if way == "first-token" else "use first-token"
            elif able is None:
                problem = problem or "test it first"
        lines.append((judge, words, problem))
    return lines


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An evaluation that is not over, that stopped, or of which answers failed."""

    evaluation: Evaluation
    state: str
    run: int | None
    share: int | None  # percent of the current run's answers
    action: str  # what staff may do about it


def under_way(recipe: Recipe, *, reasons: bool) -> list[UnderWay]:
    """What is being asked, what stopped, and where answers failed, newest first; ``reasons`` of runs are for staff."""
    newest = Evaluation.objects.filter(recipe=recipe).select_related("judge")[:20]
    return list(filter(None, (_under_way(evaluation, reasons=reasons) for evaluation in newest)))


HALTS = (*Run.HALTED, Run.State.CANCELLED)


def _under_way(evaluation: Evaluation, *, reasons: bool) -> UnderWay | None:
    """None where all of it is done."""
    runs = list(evaluation.runs.order_by("pk"))
    failed = sum(run.failures or 0 for run in runs)
    over = bool(evaluation.finished_at and not evaluation.state_reason)
    if over and not failed:
        return None
    current = next((run for run in runs if run.state != Run.State.FINISHED), runs[-1] if runs else None)
    if over:
        state, action = f"{number_of(failed, 'answer')} failed", "Ask again"
    else:
        state, action = _state_of(evaluation, current, reasons=reasons)
    return UnderWay(
        evaluation, state, current.pk if current else None, _percent_done(current) if current else None, action
    )


def _state_of(evaluation: Evaluation, current: Run | None, *, reasons: bool) -> tuple[str, str]:
    """Where it stands, and what can be done about it."""
    state, stopped = "Waits", False
    if current is not None:
        state = (reasons and current.state_reason) or current.state_words
        stopped = current.state in HALTS
    if evaluation.state_reason:
        state, stopped = evaluation.state_reason, True
    return state, "Go on" if stopped else ""


def _percent_done(run: Run) -> int | None:
    return round(100 * ((run.verdicts or 0) + (run.failures or 0)) / run.planned) if run.planned else None


@dataclass(frozen=True, slots=True)
class Reliability:
    """A model's diagram: its gap in points, what a model that knows exactly when it is right would show, questions."""

    model: str
    invented: bool
    gap: str
    calibrated: str
    questions: str
    drawn: SafeString


@dataclass(frozen=True, slots=True)
class BoardPage:
    """``more``: what the figures are made of, by condition, label and mark; ``steady``: how far each model's
    accuracy depends on the wording and the repeat.
    """

    title: str
    words: str
    table: Table
    more: list[Table]
    reliability: list[Reliability]
    steady: Table | None


SEALED = "Single answers would tell answer keys that are not open to everybody"


def board_page(board: RecipeBoard) -> BoardPage:
    """The table of a recipe's board, with its conditions where there are several."""
    write = signed_points if board.metric.signed else percent
    rows = list(board.rows)
    scale = axis_of(rows, "value", unit=0.01)
    several = len(board.scenarios) > 1
    classes = _groups([] if several else rows)
    known = known_models(row.model for row in board.rows)

    def value(row: RecipeRow) -> Cell:
        reference = 0.0 if row.metric == "riam" else row.chance if row.metric in ("accuracy", "circular") else None
        ends = f"{in_brackets(row.value, write)} {row.value.method}".strip()
        bar = marks.interval_bar(scale, *row.value.ends, write=write, reference=reference)
        title = row.value.reason if row.value.value is None else ends
        return _leading(board, row, Cell(value_or_interval(row.value, write), title=title, bar=bar))

    main = table(
        [
            Column("Rank", _rank, kind="rank"),
            names("Model", lambda row: model_cell(row.model, known)),
            text("Scenario", "scenario", shown=several),
            Column(board.metric.title, value, kind="interval", css="", axis=marks.axis_head(scale, whole_percent)),
            Column(
                "Right %",
                lambda row: _leading(board, row, number_cell(row.accuracy, percent), condition="plain"),
                title="Right answers to the plain questions",
            ),
            Column(
                "Other labels %",
                lambda row: _leading(board, row, number_cell(row.accuracy_vm, percent)),
                title="Right answers under other labels (Acc_vm)",
                shown=board.metric.name == "mr",
            ),
            Column(
                "Chance %",
                lambda row: Cell(percent(row.chance), title="Follows from the number of options, not from answers"),
                title="Of random answers",
            ),
            Column("n", lambda row: _leading(board, row, Cell(whole(row.n))), title="Questions"),
            Column(
                "Not read",
                lambda row: _leading(board, row, Cell(whole(row.unread)), mark="unread"),
                title="Answers in which no option was read: not right",
            ),
            Column(
                "Answered %",
                lambda row: Cell(percent(row.coverage), title="What was not answered has no rows"),
                title="Questions answered under every condition",
            ),
            text("Notes", lambda row: "; ".join(row.notes), css="small dim fill", unseen=True),
        ],
        rows,
        group=lambda row: classes.get(row.model),
        label="Board of the recipe",
        caption=f"Models by {board.metric.title}",
        css="lb recipeboard",
    )
    return BoardPage(
        board.metric.title,
        board.metric.words,
        main,
        _more_tables(board, known),
        _reliability(board, known),
        steady_of(rows, known),
    )


def _is_sealed(board: RecipeBoard, row: RecipeRow) -> bool:
    """Whether a row is made of answers that are not shown one by one."""
    return row.scenario in board.published or (row.scenario == ALL and bool(board.published))


def _leading(board: RecipeBoard, row: RecipeRow, cell: Cell, **chosen: str | int) -> Cell:
    """A figure that leads to the answers it is made of, or says why it does not."""
    if _is_sealed(board, row):
        return replace(cell, title=f"{'. '.join(filter(None, (cell.title, SEALED)))}.")
    return replace(cell, link=_behind(row, **chosen)) if cell.text != NONE else cell


def _behind(row: RecipeRow, **chosen: str | int) -> str:
    return answers_link(row.recipe, row.model, scenario="" if row.scenario == ALL else row.scenario, **chosen)


@dataclass(frozen=True, slots=True)
class _PartsOfRow:
    row: RecipeRow
    parts: Mapping[str, Cell]


def _parts(
    board: RecipeBoard, known: KnownModels, title: str, parts: Callable[[RecipeRow], Mapping[str, Cell]]
) -> Table | None:
    """A row for each model and scenario, a column for each of its ``parts``; None where nobody has any."""
    rows = [_PartsOfRow(row, found) for row in board.rows if (found := parts(row))]
    overall = board.scenarios[0] if len(board.scenarios) == 1 else ""

    def part(name: str) -> Column[_PartsOfRow]:
        return Column(name, lambda each: each.parts.get(name, Cell(NONE)))

    def model(each: _PartsOfRow) -> Cell:
        return model_cell(each.row.model, known, "" if each.row.scenario == overall else each.row.scenario)

    heads = dict.fromkeys(chain.from_iterable(each.parts for each in rows))
    columns = [names("Model", model), *(part(name) for name in heads)]
    return table(columns, rows, label=title, caption=title, fill=True) if rows else None


def _more_tables(board: RecipeBoard, known: KnownModels) -> list[Table]:
    """What the figures are made of, by condition, by label and by mark."""

    def leading(row: RecipeRow, found: Number, **chosen: str) -> Cell:
        return _leading(board, row, number_cell(found, percent), **chosen)

    def by_condition(row: RecipeRow) -> dict[str, Cell]:
        shown = {} if row.corruptions else row.conditions
        return {name: leading(row, found.accuracy, condition=name) for name, found in shown.items()}

    def matched(row: RecipeRow) -> dict[str, Cell]:
        return {
            name: leading(row, found.match, condition="" if name in GROUPS else name)
            for name, found in row.labels.items()
        }

    def letters(row: RecipeRow, name: str) -> dict[str, Cell]:
        condition = "plain" if "plain" in row.conditions else ""
        cells = {}
        for letter, found in row.letters.items():
            cell = leading(row, found.number(name), condition=condition, letter=letter)
            cells[letter] = replace(cell, title=f"{cell.title}; the key of {percent(found.key)}% of the questions")
        return cells

    def by_marks(row: RecipeRow) -> dict[str, Cell]:
        return {name: leading(row, found.accuracy, condition="plain") for name, found in row.marks.items()}

    tables = (
        _parts(board, known, "Right %, by condition", by_condition),
        _parts(board, known, "Same answer %, by labels", matched),
        _damage(board, known),
        _parts(board, known, "Right %, by marks of the reasons", by_marks),
        _parts(board, known, "Chosen %, by letter", lambda row: letters(row, "chosen")),
        _parts(board, known, "Right % of those, by letter", lambda row: letters(row, "accuracy")),
    )
    return [each for each in tables if each]


def _damage(board: RecipeBoard, known: KnownModels) -> Table | None:
    """A row for each corruption, a column for each model: the accuracy over all strengths (Figure 20)."""
    rows = [row for row in board.rows if row.corruptions]
    several = len(board.scenarios) > 1

    def of(row: RecipeRow) -> Column[str]:
        def accuracy(method: str) -> Cell:
            found = row.corruptions.get(method)
            cell = _leading(board, row, number_cell(found.accuracy if found else None, percent))
            return replace(cell, link=cell.link and f"{cell.link}#{DAMAGE}")

        name = f"{row.model}, {row.scenario}" if several else row.model
        return Column(name, accuracy, head="n name", under="simulated" if known[row.model].simulated else "")

    methods = dict.fromkeys(chain.from_iterable(row.corruptions for row in rows))
    columns = [names("Damage", _method), *(of(row) for row in rows)]
    return table(columns, methods, label=BY_DAMAGE, caption=BY_DAMAGE) if rows else None


DAMAGE = "damage"
BY_DAMAGE = "Right %, by damage"


def _method(name: str) -> str:
    return name.replace("-", " ").capitalize()


def damage_of(row: RecipeRow, chosen: str) -> Table | None:
    """A model's accuracy by each corruption alone and its strength, on one axis with the undamaged pictures; ``chosen``
    is the condition whose answers are shown.
    """
    if not row.corruptions or row.accuracy.value is None:
        return None
    found: dict[str, dict[int, ConditionRow]] = {}
    for name, each in row.conditions.items():
        if name.startswith(ALONE):
            method, _, strength = name.removeprefix(ALONE).rpartition("-")
            found.setdefault(method, {})[int(strength)] = each
    values = {method: [each.accuracy.value or 0.0 for each in by.values()] for method, by in found.items()}
    undamaged = row.accuracy.value
    scale = marks.axis([undamaged, *chain.from_iterable(values.values())], width=marks.WIDE, unit=0.01)

    def at(strength: int) -> Column[str]:
        def accuracy(method: str) -> Cell:
            if strength not in found[method]:
                return Cell(NONE, title="This damage has one strength")
            condition = f"{ALONE}{method}-{strength}"
            cell = number_cell(found[method][strength].accuracy, percent)
            return replace(cell, link=_behind(row, condition=condition), strong=condition == chosen)

        return Column(str(strength), accuracy)

    strengths = sorted(set[int]().union(*found.values()))
    return table(
        [
            names("Damage", _method, css=""),
            *(at(strength) for strength in strengths),
            drawn(scale, whole_percent, lambda method: marks.dots(scale, values[method], undamaged)),
        ],
        found,
        label=BY_DAMAGE,
        caption=f"{BY_DAMAGE} and its strength",
    )


def _groups(rows: Sequence[RecipeRow | DesiderataRow]) -> dict[str, Group]:
    """The tier of each model."""
    return tiers((row.model, row.tier) for row in rows)


def _rank(row: RecipeRow | DesiderataRow) -> Cell:
    """The range of the rank."""
    return Cell(NONE if row.rank is None else rank_range(row.rank, row.rank_low, row.rank_high))


@dataclass(frozen=True, slots=True)
class _Steadiness:
    """A row's accuracies by wording and repeat, their mean, and how far from it the farthest is."""

    row: RecipeRow
    accuracies: list[float]
    mean: float
    largest: float


def steady_of(rows: Sequence[RecipeRow], known: KnownModels) -> Table | None:
    """How far each model's accuracy depends on the wording and the repeat, on one axis."""
    with_queries = []
    for row in rows:
        found = spread(list(row.queries.values()))
        if found is not None:
            with_queries.append(_Steadiness(row, list(row.queries.values()), found.mean, found.largest))
    if not with_queries:
        return None
    values = list(chain.from_iterable(each.accuracies for each in with_queries))
    scale = marks.axis(values, width=marks.WIDE, unit=0.01)
    return table(
        [
            names("Model", lambda each: model_cell(each.row.model, known), css=""),
            Column(
                "Largest distance",
                lambda each: Cell(f"±{percent(each.largest)}", link=_behind(each.row, condition="plain")),
            ),
            drawn(scale, whole_percent, lambda each: marks.dots(scale, each.accuracies, each.mean)),
        ],
        with_queries,
        label="Accuracy by wording and repeat",
        caption="How steady accuracy is",
        css="steady",
    )


# ---- one answer, as the model saw the question ----


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """A turn of a stored answer: the text, or the pool (answer, share, bar, whether it is the likeliest)."""

    number: int
    text: str
    pool: list[tuple[str, str, SafeString, bool]]
    mass: str


def seen_turns(responses: Sequence[Response]) -> list[SeenTurn]:
    turns = []
    for response in responses:
        pool: list[tuple[str, str, SafeString, bool]] = []
        mass = ""
        if response.likelihoods and response.likelihoods.get("pool"):
            answers = [str(answer) for answer, _ in response.likelihoods["pool"]]
            logs = [float("-inf") if value is None else float(value) for _, value in response.likelihoods["pool"]]
            shares = softmax(logs) if max(logs) > float("-inf") else [0.0] * len(logs)
            best = max(shares)
            pool = [
                (answer, two(share), marks.share_bar(share), share == best > 0)
                for answer, share in zip(answers, shares, strict=True)
            ]
            mass = percent(response.likelihoods.get("mass"))
        turns.append(SeenTurn(response.turn + 1, response.text, pool, mass if mass != NONE else ""))
    return turns


# ---- desiderata ----


@dataclass(frozen=True, slots=True)
class DesiderataPage:
    """``recipes``: of each quality those that measure it, with the link that chooses one and whether it is chosen.
    ``outlined``: from which correlation on a cell of the matrix is outlined, and for how many models.
    """

    table: Table
    matrix: Table | None
    few: bool
    tested: bool
    outlined: str
    reliability: list[Reliability]
    steady: Table | None
    scatter: "Scatter | None"
    recipes: list[tuple[Quality, list[tuple[str, str, bool]]]]
    finding: str
    measured: int  # qualities


@dataclass(frozen=True, slots=True)
class Scatter:
    """Models by two qualities, and how these correlate."""

    title: str
    words: str
    drawn: SafeString


TOGETHER = "together"  # the parameter that names the two qualities of the scatter plot


def desiderata_page(board: DesiderataBoard, chosen: Mapping[str, str]) -> DesiderataPage:
    """The table of qualities, the matrix, reliability diagrams and spreads."""
    known = known_models(row.model for row in board.rows)
    classes = _groups(board.rows)
    measured = [quality for quality in QUALITIES.values() if quality.name in board.recipes]
    enough = len(board.rows) >= FEWEST
    sure = [abs(row.pearson.value or 0.0) for row in board.together if _is_significant(row)]
    return DesiderataPage(
        table=table(
            [
                Column("Rank", _rank, kind="rank"),
                names("Model", lambda row: model_cell(row.model, known)),
                *(_quality_column(quality, board) for quality in QUALITIES.values()),
            ],
            board.rows,
            group=lambda row: classes.get(row.model),
            label="Models by right answers and six qualities",
            caption="Models by right answers and six qualities, each with its 95% interval",
            css="lb desiderata",
        ),
        matrix=_quality_matrix(board, measured, chosen) if enough and len(measured) > 1 else None,
        few=not enough,
        tested=any(row.p is not None for row in board.together),
        outlined=two(min(sure)) if sure else "",
        reliability=_reliability(board.boards.get("calibration", RecipeBoard()), known),
        steady=steady_of(list(chain.from_iterable(each.overall() for each in board.boards.values())), known),
        scatter=_scatter(board, chosen.get(TOGETHER, ""), known),
        recipes=[(quality, _choices(board, quality.name, chosen)) for quality in QUALITIES.values()],
        finding=_finding(board),
        measured=len(measured),
    )


def _choices(board: DesiderataBoard, quality: str, chosen: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """The recipes that measure a quality: the name, where the page with it is, and whether this page has it."""
    return [
        (str(recipe), _with(chosen, quality, str(recipe)), recipe == board.recipes.get(quality))
        for recipe in board.choices[quality]
    ]


def _reliability(board: RecipeBoard, known: KnownModels) -> list[Reliability]:
    diagrams = []
    for row in board.rows:
        if not row.bins:
            continue
        sealed = _is_sealed(board, row)
        bins = [(part, "" if sealed else _behind(row, bin=number)) for number, part in enumerate(row.bins, start=1)]
        gap = percent(None if row.value.value is None else 1 - row.value.value)
        drawn = plots.reliability(bins, title=known.shown(row.model))
        calibrated = percent(row.ece_calibrated)
        diagrams.append(Reliability(row.model, known[row.model].simulated, gap, calibrated, whole(row.n), drawn))
    return diagrams


def _nothing_of(quality: Quality, row: DesiderataRow) -> float | None:
    """What a model without the quality has: a random answer's, or no change."""
    return {"accuracy": row.chance, "in_context": 0.0, "hallucination": 0.5}.get(quality.name)


def _quality_column(quality: Quality, board: DesiderataBoard) -> Column[DesiderataRow]:
    numbers = [row.number(quality.name) for row in board.rows]
    known = list(chain.from_iterable(each.ends for each in numbers))
    chances = [_nothing_of(quality, row) for row in board.rows] if any(end is not None for end in known) else []
    scale = marks.axis([*known, *chances], unit=0.01, most=3, width=92)
    best = max((each.value for each in numbers if each.value is not None), default=None)
    missing = f"not measured: needs {quality.needs}"
    if any(each.value is not None or each.low is not None for each in numbers):
        title, unit, axis = "", quality.unit, marks.axis_head(scale, whole_percent)
    else:
        title, unit, axis = missing, "not measured", SafeString()
    return Column(
        quality.plain,
        lambda row: _quality_cell(row, quality, board, scale, best=best, missing=missing),
        kind="interval",
        css="",
        title=title,
        axis=format_html("<small>{}</small>{}", unit, axis),
    )


def _quality_cell(
    row: DesiderataRow,
    quality: Quality,
    board: DesiderataBoard,
    scale: marks.Axis,
    *,
    best: float | None,
    missing: str,
) -> Cell:
    value, reference = row.number(quality.name), _nothing_of(quality, row)
    if value.value is None:
        reason = value.reason or (missing if quality.needs else "not measured")
        return Cell(NONE, title=reason, bar=marks.interval_bar(scale, None, None, None, reference=reference))
    write = signed_points if quality.name == "in_context" else percent
    title, link = f"{in_brackets(value, write)}, n = {whole(value.n)}, {value.method}", ""
    of_board = board.boards.get(quality.name)
    if of_board is not None and of_board.published:
        title = f"{title}. {SEALED}."
    else:
        link = answers_link(row.recipes.get(quality.name, "") or board.recipes["calibration"], row.model)
    return Cell(
        write(value.value),
        title=title,
        link=link,
        bar=marks.interval_bar(scale, *value.ends, write=write, reference=reference),
        # A best that may be no gain at all is not marked.
        strong=value.value == best and not (reference is not None and value.low is not None and value.low <= reference),
    )


def _quality_matrix(board: DesiderataBoard, measured: list[Quality], chosen: Mapping[str, str]) -> Table:
    """The lower half: each quality against those before it."""
    found = {frozenset((row.a, row.b)): row for row in board.together}

    def against(other: Quality) -> Column[Quality]:
        def cell(quality: Quality) -> Cell:
            if measured.index(other) >= measured.index(quality):
                return Cell(css="none")
            row = found.get(frozenset((quality.name, other.name)))
            if row is None or row.pearson.value is None:
                return Cell(NONE, css="heat q0", title=row.pearson.reason if row else "no model has both")
            value = row.pearson.value
            step = sum(abs(value) >= limit for limit in (0.25, 0.5, 0.75))
            shade = f"n{step}" if value < 0 and step else ("q0", "q1", "q3", "q4")[step]
            css = f"heat {shade}{' sure' if _is_significant(row) else ''}"
            title = f"{quality.plain} and {other.plain}: {_correlation_words(row)}"
            link = f"{_with(chosen, TOGETHER, f'{other.name},{quality.name}')}#{TOGETHER}"
            return Cell(signed(value), css=css, title=title, link=link)

        return Column(other.short, cell)

    return table(
        [names("Quality", "plain", css=""), *(against(other) for other in measured[:-1])],
        measured[1:],
        label="How the qualities go together",
        caption="Pearson's correlation of every two qualities",
        css="matrix together",
    )


def _with(chosen: Mapping[str, str], name: str, recipe: str) -> str:
    return "?" + urlencode({**chosen, name: recipe})


def _correlation_words(found: QualityCorrelationRow) -> str:
    if found.pearson.value is None:
        return found.pearson.reason
    interval = in_brackets(found.pearson, signed)
    said = f"Pearson {signed(found.pearson.value)}{f' {interval}' if interval else ''}, n = {found.n} models"
    return said if found.p is None else f"{said}, p = {found.p:.3f}"


def _scatter(board: DesiderataBoard, together: str, known: KnownModels) -> Scatter | None:
    """The models that have both of two qualities, written ``a,b``."""
    names = together.split(",")
    if len(names) != 2 or not set(names) <= QUALITIES.keys() or names[0] == names[1]:
        return None
    across, up = (QUALITIES[name] for name in names)
    places = []
    for row in board.rows:
        x, y = row.number(across.name), row.number(up.name)
        if x.value is not None and y.value is not None:
            words = f"{across.plain} {percent(x.value)}, {up.plain} {percent(y.value)}"
            places.append(plots.Point(known.shown(row.model), x.value, y, words, x_ends=x.between))
    if not places:
        return None
    said = next((_correlation_words(each) for each in board.together if {each.a, each.b} == set(names)), "")
    title = f"{up.plain}, %, by {across.plain.lower()}"
    plot = plots.Plot(
        title=title,
        under=said,
        across=f"{across.plain}, %",
        points=places,
        write=whole_percent,
        unit=0.01,
        priced=False,
    )
    return Scatter(title, said, plots.points(plot, height=360))


def _is_significant(row: QualityCorrelationRow) -> bool:
    return row.p is not None and row.p < 0.05


def _finding(board: DesiderataBoard) -> str:
    """Who has the best figures, and for how many models examples help for sure."""
    led: dict[str, list[str]] = {}
    for quality in QUALITIES.values():
        numbers = {row.model: row.number(quality.name).value for row in board.rows}
        known = {model: value for model, value in numbers.items() if value is not None}
        if len(known) > 1:
            led.setdefault(max(known, key=lambda model: known[model]), []).append(quality.does)
    said = [f"{model} {listed(does)}." for model, does in sorted(led.items(), key=lambda each: -len(each[1]))[:2]]
    gains = [row.in_context for row in board.rows if row.in_context.value is not None]
    if len(gains) > 1:
        sure = sum(gain.low is not None and gain.low > 0 for gain in gains)
        verb = "gain" if sure > 1 else "gains"
        said.append(f"{sure or 'None'} of {len(gains)} models clearly {verb} from examples.")
    return " ".join(said)
