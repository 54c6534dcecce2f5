"""Pages of recipes and of desiderata: what their templates show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from bank.models import Recipe, Response
from bank.recipes.spec import OPTIONS, Nearest, Numbers, Scenario, Spec, Tree, Turn
from judging.models import Evaluation, Judge, Run
from judging.recipes.evaluations import ABILITIES
from leaderboard.boards.desiderata import FEWEST, QUALITIES, DesiderataBoard, DesiderataRow, Quality, TogetherRow
from leaderboard.boards.recipes import METRICS, RecipeBoard, RecipeRow
from leaderboard.figures import (
    MINUS,
    NONE,
    in_brackets,
    number_of,
    percent,
    signed_points,
    span,
    two,
    value_or_interval,
    whole,
)
from leaderboard.pages import marks, plots
from leaderboard.pages.marks import Cell
from leaderboard.pages.table import Column, Group, Table, figure, names, table, text, tiers, upright
from leaderboard.rows import Number
from stats.desiderata import softmax, spread


def points(share: float | None) -> str:
    """A share in percent, which may lie below 0."""
    return percent(share).replace("-", MINUS)


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
    queries = len(spec.instruction.queries)
    examples = spec.instruction.examples
    instruction = [
        ("Query", "the standard one" if queries == 1 else f"{queries} in all, {_dealt(spec)}"),
        ("Examples", _examples(spec) if examples.how != "none" else "none"),
    ]
    if spec.instruction.verbalizer != "none":
        instruction.append(("Labels", f"{spec.instruction.verbalizer} ones in place of letters"))
    if spec.corruption.strategy != "none":
        instruction.append(("Corruption", _corruption(spec)))
    turns = [(f"Turn {at}", _turn(turn)) for at, turn in enumerate(spec.turns, start=1)]
    asked = f"{spec.repeats} times" if spec.repeats > 1 else "once"
    temperature = "not sent" if spec.temperature is None else f"{spec.temperature:g}"
    metric = METRICS[spec.metric]
    scored = [("Score", metric.words), ("Asked", f"{asked}, temperature {temperature}, seed {spec.seed}")]
    if spec.judge:
        scored.append(("Judge", spec.judge))
    return [
        Part("Scenario", "what is asked", scenarios),
        Part("Instruction", "how it is asked", instruction),
        Part("Inferencer", "how it answers", turns),
        Part("Metric", "how it is scored", scored),
    ]


def _dealt(spec: Spec) -> str:
    return f"dealt by seed {spec.seed}" if spec.instruction.deal == "seeded" else "of which the first is asked"


def _examples(spec: Spec) -> str:
    rule = spec.instruction.examples
    how = {"random": "random", "fixed": "fixed", "top-text": "nearest by text", "top-image": "nearest by picture"}
    pictures = "with pictures" if rule.images else "as text"
    return f"{rule.k}, {how[rule.how]}, {pictures}; never of the question's own group, never from a hidden split"


def _corruption(spec: Spec) -> str:
    rule = spec.corruption
    if rule.strategy == "single":
        return f"{rule.image or rule.text}, severity {rule.severity or 'drawn by the seed'}"
    what = " and ".join(word for word, on in (("pictures", rule.image), ("questions", rule.text)) if on)
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
    return f"likelihood of {answers}, by {way}{', per token' if turn.sum == 'per-token' else ''}"


@dataclass(frozen=True, slots=True)
class EndpointLine:
    """An endpoint beside a recipe: what it can do, and why it cannot be asked by this one."""

    name: str
    host: str
    model: str
    abilities: list[tuple[str, str]]  # "yes", "no" or "not tested", and a class
    problem: str


def endpoints_for(spec: Spec) -> list[EndpointLine]:
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
        lines.append(EndpointLine(judge.name, judge.host, judge.model, words, problem))
    return lines


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An evaluation that is not over, that stopped, or of which answers failed."""

    model: str
    endpoint: str
    state: str
    run: int | None
    share: int | None  # percent of the current run's answers
    action: str  # what staff may do about it
    pk: int


def under_way(recipe: Recipe, *, reasons: bool) -> list[UnderWay]:
    """What is being asked, what stopped, and where answers failed, newest first; ``reasons`` of runs are for staff."""
    newest = Evaluation.objects.filter(recipe=recipe).select_related("judge")[:20]
    return list(filter(None, (_under_way(evaluation, reasons=reasons) for evaluation in newest)))


HALTS = (Run.State.PAUSED, Run.State.WAITING, Run.State.CANCELLED)


def _under_way(evaluation: Evaluation, *, reasons: bool) -> UnderWay | None:
    """None where all of it is done."""
    runs = list(evaluation.runs.order_by("pk"))
    failed = sum(run.failures or 0 for run in runs)
    over = bool(evaluation.finished_at and not evaluation.state_reason)
    if over and not failed:
        return None
    current = next((run for run in runs if run.state != Run.State.FINISHED), runs[-1] if runs else None)
    of_run = (reasons and current.state_reason) or current.state_words if current else "Waits"
    stopped = evaluation.state_reason or (current is not None and current.state in HALTS)
    return UnderWay(
        evaluation.model_name,
        evaluation.judge.name,
        f"{number_of(failed, 'answer')} failed" if over else evaluation.state_reason or of_run,
        current.pk if current else None,
        _percent_done(current) if current else None,
        "Ask again" if over else "Go on" if stopped else "",
        evaluation.pk,
    )


def _percent_done(run: Run) -> int | None:
    return round(100 * ((run.verdicts or 0) + (run.failures or 0)) / run.planned) if run.planned else None


@dataclass(frozen=True, slots=True)
class BoardPage:
    """``by_condition``: right answers under each condition, where there are several; ``steady``: how far each model's
    accuracy depends on the wording and the repeat.
    """

    title: str
    words: str
    table: Table
    by_condition: Table | None
    steady: Table | None


def board_page(board: RecipeBoard) -> BoardPage:
    """The table of a recipe's board, with its conditions where there are several."""
    write = signed_points if board.metric.signed else points
    rows = list(board.rows)
    scale = marks.axis([end for row in rows for end in row.value.ends], unit=0.01)
    several = len(board.scenarios) > 1
    classes = _groups([] if several else rows)

    def value(row: RecipeRow) -> Cell:
        reference = 0.0 if row.metric == "riam" else row.chance if row.metric in ("accuracy", "circular") else None
        ends = f"{in_brackets(row.value, write)} {row.value.method}".strip()
        return Cell(
            value_or_interval(row.value, write),
            title=row.value.reason if row.value.value is None else ends,
            bar=marks.interval_bar(scale, *row.value.ends, write=lambda share: write(share), reference=reference),
        )

    main = table(
        [
            Column("Rank", _rank, kind="rank"),
            names("Model", lambda row: row.model),
            text("Scenario", lambda row: row.scenario, shown=several),
            Column(board.metric.title, value, kind="interval", css="", axis=marks.axis_head(scale, _whole_percent)),
            Column(
                "Right %",
                lambda row: value_or_interval(row.accuracy, percent),
                title="Right answers to the plain questions",
            ),
            Column("Chance %", lambda row: percent(row.chance), title="Of random answers"),
            Column("n", lambda row: whole(row.n), title="Questions"),
            Column(
                "Not read",
                lambda row: whole(row.unread or 0),
                title="Answers in which no option was read: not right",
            ),
            Column("Answered %", lambda row: percent(row.coverage), title="Questions answered under every condition"),
            text("Notes", lambda row: "; ".join(row.notes), css="small dim fill", unseen=True),
        ],
        rows,
        group=lambda row: classes.get(row.model),
        label="Board of the recipe",
        caption=f"Models by {board.metric.title}",
        css="lb recipeboard",
    )
    return BoardPage(board.metric.title, board.metric.words, main, _by_condition(board), steady_of(rows))


def _by_condition(board: RecipeBoard) -> Table | None:
    rows = [row for row in board.rows if row.conditions]
    overall = board.scenarios[0] if len(board.scenarios) == 1 else ""

    def condition(name: str) -> Column[RecipeRow]:
        def accuracy(row: RecipeRow) -> Number | None:
            found = row.conditions.get(name)
            return found.accuracy if found else None

        return figure(name, accuracy, percent)

    conditions = dict.fromkeys(name for row in rows for name in row.conditions)
    title = "Right %, by condition"
    return (
        table(
            [
                names(title, lambda row: row.model if row.scenario == overall else f"{row.model}, {row.scenario}"),
                *(condition(name) for name in conditions),
            ],
            rows,
            label="Accuracy by condition",
            caption=title,
            fill=True,
        )
        if rows
        else None
    )


def _groups(rows: Sequence[RecipeRow | DesiderataRow]) -> dict[str, Group]:
    """The tier of each model."""
    return tiers((row.model, row.tier) for row in rows)


def _rank(row: RecipeRow | DesiderataRow) -> Cell:
    """The range of the rank."""
    rank = row.tier or row.rank
    return Cell(span(row.rank_low, row.rank_high) or (NONE if rank is None else str(rank)))


def steady_of(rows: Sequence[RecipeRow]) -> Table | None:
    """How far each model's accuracy depends on the wording and the repeat, on one axis."""
    with_queries = [(row, found) for row in rows if (found := spread(list(row.queries.values()))) is not None]
    if not with_queries:
        return None
    values = [value for row, _ in with_queries for value in row.queries.values()]
    scale = marks.axis(values, width=marks.WIDE, unit=0.01)
    return table(
        [
            names("Model", lambda each: each[0].model, css=""),
            Column("Largest distance", lambda each: f"±{100 * each[1].largest:.1f}"),
            text(
                "Each",
                lambda each: Cell(bar=marks.dots(scale, list(each[0].queries.values()), each[1].mean)),
                axis=marks.axis_head(scale, _whole_percent),
                unseen=True,
            ),
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
    ``reliability``: model, ECE, what a calibrated model would show, and the diagram.
    """

    table: Table
    matrix: Table | None
    few: str
    reliability: list[tuple[str, str, str, SafeString]]
    steady: Table | None
    scatter: "Scatter | None"
    recipes: list[tuple[Quality, list[tuple[str, str, bool]]]]
    finding: str
    models: int


@dataclass(frozen=True, slots=True)
class Scatter:
    """Models by two qualities, and how these correlate."""

    title: str
    words: str
    drawn: SafeString


TOGETHER = "together"  # the parameter that names the two qualities of the scatter plot


def desiderata_page(board: DesiderataBoard, chosen: Mapping[str, str]) -> DesiderataPage:
    """The table of qualities, the matrix, reliability diagrams and spreads."""
    classes = _groups(board.rows)
    calibration = board.boards.get("calibration")
    reliability = [
        (
            row.model,
            percent(None if row.value.value is None else 1 - row.value.value),
            percent(row.ece_calibrated),
            marks.reliability([(part.confidence, part.accuracy, part.n) for part in row.bins]),
        )
        for row in (calibration.rows if calibration else ())
        if row.bins
    ]
    measured = [quality for quality in QUALITIES.values() if quality.name in board.recipes]
    enough = len(board.rows) >= FEWEST
    return DesiderataPage(
        table=table(
            [
                Column("Rank", _rank, kind="rank"),
                names("Model", lambda row: row.model),
                *(_quality_column(quality, board) for quality in QUALITIES.values()),
            ],
            board.rows,
            group=lambda row: classes.get(row.model),
            label="Models by accuracy and six qualities",
            caption="Models by accuracy and six qualities, each with its 95 % interval",
            css="lb desiderata",
        ),
        matrix=_quality_matrix(board, measured, chosen) if enough and len(measured) > 1 else None,
        few="" if enough else f"A correlation needs {FEWEST} models; there are {len(board.rows)}.",
        reliability=reliability[:4],
        steady=steady_of([row for each in board.boards.values() for row in each.overall()]),
        scatter=_scatter(board, chosen.get(TOGETHER, "")),
        recipes=[
            (
                quality,
                [
                    (str(recipe), _with(chosen, quality.name, str(recipe)), recipe == board.recipes.get(quality.name))
                    for recipe in board.choices[quality.name]
                ],
            )
            for quality in QUALITIES.values()
        ],
        finding=_finding(board),
        models=len(board.rows),
    )


def _quality_column(quality: Quality, board: DesiderataBoard) -> Column[DesiderataRow]:
    numbers = [row.number(quality.name) for row in board.rows]
    scale = marks.axis([end for each in numbers for end in each.ends], unit=0.01, most=3, width=72)
    best = max((each.value for each in numbers if each.value is not None), default=None)
    write = signed_points if quality.name == "in_context" else points
    missing = f"not measured: needs {quality.needs}"

    def cell(row: DesiderataRow) -> Cell:
        value, recipe = row.number(quality.name), row.recipes.get(quality.name, "")
        link = reverse("leaderboard:recipe-board", args=[recipe]) if recipe else ""
        if value.value is None:
            reason = value.reason or (missing if quality.needs else "not measured")
            return Cell(NONE, title=reason, link=link, bar=marks.interval_bar(scale, None, None, None))
        reference = {"accuracy": row.chance, "in_context": 0.0}.get(quality.name)
        return Cell(
            write(value.value),
            title=f"{in_brackets(value, write)}, n = {whole(value.n)}, {value.method}",
            link=link,
            bar=marks.interval_bar(scale, *value.ends, write=lambda share: write(share), reference=reference),
            strong=value.value == best,
        )

    is_measured = quality.name in board.recipes
    return Column(
        quality.title,
        cell,
        kind="interval",
        css="",
        title="" if is_measured else missing,
        under=quality.under,
        axis=marks.axis_head(scale, _whole_percent) if is_measured else SafeString(),
    )


def _quality_matrix(board: DesiderataBoard, measured: list[Quality], chosen: Mapping[str, str]) -> Table:
    found = {frozenset((row.a, row.b)): row for row in board.together}

    def against(other: Quality) -> Column[Quality]:
        return upright(other.title, lambda quality: _together_cell(quality.name, other.name, found, chosen))

    return table(
        [names("Quality", lambda quality: quality.title, css=""), *(against(other) for other in measured)],
        measured,
        label="Correlation of qualities",
        caption="Pearson's correlation of every two qualities",
        css="matrix upright",
    )


def _with(chosen: Mapping[str, str], name: str, recipe: str) -> str:
    return "?" + urlencode({**chosen, name: recipe})


def _correlation_words(found: TogetherRow) -> str:
    if found.pearson.value is None:
        return found.pearson.reason
    interval = in_brackets(found.pearson, _signed)
    said = f"Pearson {_signed(found.pearson.value)}{f' {interval}' if interval else ''}, n = {found.n} models"
    return said if found.p is None else f"{said}, p = {found.p:.3f}"


def _scatter(board: DesiderataBoard, together: str) -> Scatter | None:
    """The models that have both of two qualities, written ``a,b``."""
    names = together.split(",")
    if len(names) != 2 or not set(names) <= QUALITIES.keys() or names[0] == names[1]:
        return None
    across, up = (QUALITIES[name] for name in names)
    places = []
    for row in board.rows:
        x, y = row.number(across.name), row.number(up.name)
        if x.value is not None and y.value is not None:
            words = f"{across.title} {points(x.value)}, {up.title} {points(y.value)}"
            places.append(plots.Place(row.model, x.value, y.value, x.ends[1:], y.ends[1:], words))
    if not places:
        return None
    said = next((_correlation_words(each) for each in board.together if {each.a, each.b} == set(names)), "")
    title = f"{across.title} and {up.title}"
    drawn = plots.scatter(
        places,
        title=title,
        across=f"{across.title} %",
        up=f"{up.title} %",
        write_x=_whole_percent,
        write_y=_whole_percent,
        units=(0.01, 0.01),
    )
    return Scatter(title, said, drawn)


def _signed(value: float | None) -> str:
    return NONE if value is None else f"{value:+.2f}".replace("-", MINUS)


def _whole_percent(share: float) -> str:
    return f"{100 * share:.0f}".replace("-", MINUS)


def _together_cell(a: str, b: str, found: Mapping[frozenset[str], Any], chosen: Mapping[str, str]) -> Cell:
    if a == b:
        return marks.ITSELF
    row = found.get(frozenset((a, b)))
    if row is None or row.pearson.value is None:
        return Cell(NONE, css="qx", title=row.pearson.reason if row else "no model has both")
    title = f"n = {row.n} models" + ("" if row.p is None else f", p = {row.p:.3f}")
    link = f"{_with(chosen, TOGETHER, f'{a},{b}')}#{TOGETHER}"
    return Cell(_signed(row.pearson.value), "", marks.heat(row.pearson.value, -1, 1), title, link)


def _finding(board: DesiderataBoard) -> str:
    """What the table says in a sentence: who is best, or not told from the best, in most columns."""
    counts: dict[str, int] = {}
    columns = 0
    for name in QUALITIES:
        numbers = {row.model: row.number(name) for row in board.rows if row.number(name).value is not None}
        if len(numbers) < 2:
            continue
        columns += 1
        top = max(numbers.values(), key=lambda each: each.value or 0.0)
        for model, value in numbers.items():
            if value.high is not None and top.low is not None and value.high >= top.low:
                counts[model] = counts.get(model, 0) + 1
    if columns < 2:
        return ""
    model = max(counts, key=lambda name: counts[name])
    return f"{model} is the best, or its interval reaches that of the best, in {counts[model]} of {columns} columns."
