"""Pages of recipes and of desiderata: what their templates show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from bank.models import Recipe, Response
from bank.recipes.spec import OPTIONS, Nearest, Numbers, Spec, Tree, Turn
from judging.models import Evaluation, Judge, Run
from judging.recipes.evaluations import ABILITIES
from leaderboard.boards.desiderata import FEWEST, QUALITIES, DesiderataBoard, DesiderataRow, Quality
from leaderboard.boards.recipes import METRICS, RecipeBoard, RecipeRow
from leaderboard.figures import MINUS, NONE, in_brackets, number_of, percent, signed_points, told, two, whole
from leaderboard.pages import marks, plots
from leaderboard.pages.table import ends_of_groups, row_css, tints
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


def parts_of(spec: Spec) -> list[Part]:
    """The four parts in words, in reading order."""
    scenarios = [
        (
            scenario.benchmark,
            ", ".join(
                words
                for words in (
                    scenario.split,
                    *scenario.levels,
                    f"{scenario.sample:,} drawn by the seed" if scenario.sample else "",
                )
                if words
            )
            or "all questions",
        )
        for scenario in spec.scenario
    ]
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
    lines = []
    for evaluation in Evaluation.objects.filter(recipe=recipe).select_related("judge")[:20]:
        runs = list(evaluation.runs.order_by("pk"))
        current = next((run for run in runs if run.state != Run.State.FINISHED), runs[-1] if runs else None)
        failed = sum(run.failures or 0 for run in runs)
        over = bool(evaluation.finished_at and not evaluation.state_reason)
        if over and not failed:
            continue
        done = None
        if current is not None and current.planned:
            done = round(100 * ((current.verdicts or 0) + (current.failures or 0)) / current.planned)
        of_run = (reasons and current.state_reason) or current.state_words if current else "Waits"
        state = evaluation.state_reason or of_run
        halts = (Run.State.PAUSED, Run.State.WAITING, Run.State.CANCELLED)
        halted = current is not None and current.state in halts
        lines.append(
            UnderWay(
                evaluation.model_name,
                evaluation.judge.name,
                f"{number_of(failed, 'answer')} failed" if over else state,
                current.pk if current else None,
                done,
                "Ask again" if over else "Go on" if evaluation.state_reason or halted else "",
                evaluation.pk,
            )
        )
    return lines


@dataclass(frozen=True, slots=True)
class BoardLine:
    """A row of a recipe's board."""

    css: str
    rank: str
    ranks: str
    model: str
    scenario: str
    value: str
    title: str
    bar: SafeString
    accuracy: str
    chance: str
    n: str
    unread: str
    coverage: str
    notes: str


@dataclass(frozen=True, slots=True)
class BoardPage:
    title: str
    words: str
    axis: SafeString
    rows: list[BoardLine]
    conditions: list[str]
    by_condition: list[tuple[str, list[tuple[str, str]]]]  # model, (accuracy, interval)
    several: bool
    steady: "Steady | None"


@dataclass(frozen=True, slots=True)
class Steady:
    """How far each model's accuracy depends on the wording and the repeat, on one axis."""

    lines: list["SteadyLine"]
    axis: SafeString


@dataclass(frozen=True, slots=True)
class SteadyLine:
    model: str
    spread: str
    dots: SafeString


def board_page(board: RecipeBoard) -> BoardPage:
    """The table of a recipe's board, with its conditions where there are several."""
    write = signed_points if board.metric.signed else points
    rows = list(board.rows)
    scale = marks.axis([end for row in rows for end in row.value.ends], unit=0.01)
    names = list(dict.fromkeys(name for row in rows for name in row.conditions))
    by_condition = [
        (
            row.model
            if row.scenario == (board.scenarios[0] if len(board.scenarios) == 1 else "")
            else f"{row.model}, {row.scenario}",
            [_condition(row, name) for name in names],
        )
        for row in rows
        if row.conditions
    ]
    return BoardPage(
        title=board.metric.title,
        words=board.metric.words,
        axis=marks.axis_head(scale, _whole_percent),
        rows=[
            _line(row, scale, write, css)
            for row, css in zip(rows, _groups(rows if len(board.scenarios) == 1 else [], len(rows)), strict=True)
        ],
        conditions=names,
        by_condition=by_condition,
        several=len(board.scenarios) > 1,
        steady=steady_of(rows),
    )


def _groups(rows: Sequence[RecipeRow | DesiderataRow], number: int) -> list[str]:
    """The classes of a table's rows that tell which models cannot be told apart; none without ``rows``."""
    if not rows:
        return [""] * number
    names = [row.model for row in rows]
    tinted = tints((row.model, row.tier) for row in rows)
    ends = ends_of_groups(names, tinted)
    return [row_css("", tinted=tinted[name], last=last) for name, last in zip(names, ends, strict=True)]


def _rank(row: RecipeRow | DesiderataRow) -> tuple[str, str]:
    """The rank, which models that cannot be told apart share, and its range."""
    rank = row.tier or row.rank
    ranks = f"{row.rank_low}–{row.rank_high}" if row.rank_low and row.rank_low != row.rank_high else ""
    return NONE if rank is None else str(rank), ranks


def _condition(row: RecipeRow, name: str) -> tuple[str, str]:
    found = row.conditions.get(name)
    return (NONE, "") if found is None else (percent(found.accuracy.value), in_brackets(found.accuracy, percent))


def _line(row: RecipeRow, scale: marks.Axis, write: Any, css: str) -> BoardLine:
    value, (rank, ranks) = row.value, _rank(row)
    reference = 0.0 if row.metric == "riam" else row.chance if row.metric in ("accuracy", "circular") else None
    return BoardLine(
        css=css,
        rank=rank,
        ranks=ranks,
        model=row.model,
        scenario=row.scenario,
        value=told(value, write),
        title=f"{in_brackets(value, write)} {value.method}".strip() if value.value is not None else value.reason,
        bar=marks.interval_bar(scale, *value.ends, write=lambda share: write(share), reference=reference),
        accuracy=told(row.accuracy, percent),
        chance=percent(row.chance),
        n=whole(row.n),
        unread=whole(row.unread) if row.unread else "0",
        coverage=percent(row.coverage),
        notes="; ".join(row.notes),
    )


def steady_of(rows: Sequence[RecipeRow]) -> Steady | None:
    with_queries = [row for row in rows if len(row.queries) > 1]
    if not with_queries:
        return None
    scale = marks.axis([value for row in with_queries for value in row.queries.values()], width=marks.WIDE, unit=0.01)
    lines = []
    for row in with_queries:
        found = spread(list(row.queries.values()))
        if found is not None:
            words = f"±{100 * found.largest:.1f}"
            lines.append(SteadyLine(row.model, words, marks.dots(scale, list(row.queries.values()), found.mean)))
    return Steady(lines, marks.axis_head(scale, _whole_percent))


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
class QualityCell:
    text: str
    title: str
    link: str
    bar: SafeString
    best: bool


@dataclass(frozen=True, slots=True)
class QualityHead:
    quality: Quality
    recipe: str
    axis: SafeString
    choices: list[tuple[str, str, bool]]  # recipe, link, chosen


@dataclass(frozen=True, slots=True)
class DesiderataPage:
    heads: list[QualityHead]
    rows: list[tuple[str, str, str, str, list[QualityCell]]]  # classes, rank, range, model, cells
    matrix_heads: list[str]
    matrix: list[tuple[str, list[marks.HeatCell]]]
    few: str
    reliability: list[tuple[str, str, str, SafeString]]  # model, ECE, what a calibrated model shows, diagram
    steady: Steady | None
    scatter: "Scatter | None"
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
    heads, axes = [], {}
    for quality in QUALITIES.values():
        numbers = [row.number(quality.name) for row in board.rows]
        scale = marks.axis([end for each in numbers for end in each.ends], unit=0.01, most=3, width=72)
        axes[quality.name] = scale
        recipe = board.recipes.get(quality.name)
        heads.append(
            QualityHead(
                quality,
                str(recipe or ""),
                marks.axis_head(scale, _whole_percent) if recipe else SafeString(),
                [
                    (str(other), _with(chosen, quality.name, str(other)), other == recipe)
                    for other in board.choices[quality.name]
                ],
            )
        )
    best = {
        name: max((value for row in board.rows if (value := row.number(name).value) is not None), default=None)
        for name in QUALITIES
    }
    rows = [
        (
            css,
            *_rank(row),
            row.model,
            [_quality_cell(quality, row, axes[quality.name], best[quality.name]) for quality in QUALITIES.values()],
        )
        for row, css in zip(board.rows, _groups(board.rows, len(board.rows)), strict=True)
    ]
    measured = [quality for quality in QUALITIES.values() if quality.name in board.recipes]
    found = {frozenset((row.a, row.b)): row for row in board.together}
    matrix = [
        (one.title, [_together_cell(one.name, other.name, found, chosen) for other in measured]) for one in measured
    ]
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
    ][:4]
    enough = len(board.rows) >= FEWEST
    steady = steady_of([row for each in board.boards.values() for row in each.overall()])
    return DesiderataPage(
        heads=heads,
        rows=rows,
        matrix_heads=[quality.title for quality in measured],
        matrix=matrix if enough and len(measured) > 1 else [],
        few="" if enough else f"A correlation needs {FEWEST} models; there are {len(board.rows)}.",
        reliability=reliability,
        steady=steady,
        scatter=_scatter(board, chosen.get(TOGETHER, "")),
        finding=_finding(board),
        models=len(board.rows),
    )


def _with(chosen: Mapping[str, str], name: str, recipe: str) -> str:
    return "?" + urlencode({**chosen, name: recipe})


def _quality_cell(quality: Quality, row: DesiderataRow, scale: marks.Axis, best: float | None) -> QualityCell:
    value, recipe = row.number(quality.name), row.recipes.get(quality.name, "")
    write = signed_points if quality.name == "in_context" else points
    link = reverse("leaderboard:recipe-board", args=[recipe]) if recipe else ""
    if value.value is None:
        title = value.reason or (f"not measured: needs {quality.needs}" if quality.needs else "not measured")
        return QualityCell(NONE, title, link, SafeString(), False)
    title = f"{in_brackets(value, write)}, n = {whole(value.n)}, {value.method}"
    reference = {"accuracy": row.chance, "in_context": 0.0}.get(quality.name)
    bar = marks.interval_bar(scale, *value.ends, write=lambda share: write(share), reference=reference)
    return QualityCell(write(value.value), title, link, bar, value.value == best)


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
    found = next((each for each in board.together if {each.a, each.b} == set(names)), None)
    said = ""
    if found is not None and found.pearson.value is not None:
        pearson = found.pearson
        interval = in_brackets(pearson, _signed)
        said = f"Pearson {_signed(pearson.value)}{f' {interval}' if interval else ''}, n = {found.n} models"
        said += "" if found.p is None else f", p = {found.p:.3f}"
    elif found is not None:
        said = found.pearson.reason
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


def _together_cell(a: str, b: str, found: Mapping[frozenset[str], Any], chosen: Mapping[str, str]) -> marks.HeatCell:
    if a == b:
        return marks.HeatCell("", "", "self", "")
    row = found.get(frozenset((a, b)))
    if row is None or row.pearson.value is None:
        return marks.HeatCell(NONE, "", "qx", row.pearson.reason if row else "no model has both")
    title = f"n = {row.n} models" + ("" if row.p is None else f", p = {row.p:.3f}")
    link = f"{_with(chosen, TOGETHER, f'{a},{b}')}#{TOGETHER}"
    return marks.HeatCell(_signed(row.pearson.value), "", marks.heat(row.pearson.value, -1, 1), title, link)


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
