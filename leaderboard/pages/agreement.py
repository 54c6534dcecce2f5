"""The board of agreement as a page: a matrix of the most active, and a table of pairs."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from bank.forms.fields import whole_number
from leaderboard.boards.agreement import METRICS, AgreementBoard, Voter
from leaderboard.boards.agreement import AgreementRow as Row
from leaderboard.figures import NONE, interval, number_of, tick, two, whole
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select

FEW, MANY = 12, 60
PAIRS = 100
FEWEST = 10  # shared items below which a cell has no colour: 1 of 1 is no agreement
LONGEST_LEVEL = 8  # letters
METRIC_WORDS = {"agreement": "Agreement", "agreement_decided": "Agreement, decided", "kappa": "Cohen's kappa"}
IN_WORDS = {
    "agreement": "Share of shared items with the same verdict; undecided counts as a tie.",
    "agreement_decided": "Share of shared items with the same verdict, where both chose a side.",
    "kappa": "Agreement beyond chance over first, second and tie (Cohen's kappa).",
}
HEAT = {"agreement": (0.2, 1.0), "agreement_decided": (0.3, 1.0), "kappa": (-0.1, 0.9)}
KIND_ORDER = {"majority": 0, "judge": 1, "baseline": 2}


@dataclass(frozen=True, slots=True)
class MatrixHead:
    name: str
    short: str  # over a column
    kind: str
    n: str
    link: str
    key: str  # how the compare page calls it; empty where its single verdicts are not for this viewer


@dataclass(frozen=True, slots=True)
class PairRow:
    a: str
    b: str
    a_link: str
    b_link: str
    value: str
    bar: SafeString
    counts: str


@dataclass(frozen=True, slots=True)
class AgreementPage:
    metric: str
    metric_label: str
    in_words: str
    heads: list[MatrixHead]
    rows: list[tuple[MatrixHead, list[marks.HeatCell]]]
    pairs: list[PairRow]
    pairs_in_all: int
    pairs_axis: SafeString
    annotators: int
    shown: str  # which annotators the matrix holds
    who: str
    before: str
    after: str
    wider: str
    narrower: str
    heat_low: str
    heat_high: str
    upright: bool  # names too long for the heads of narrow columns


def metric_of(address: Address) -> str:
    metric = address.params.get("metric", "")
    return metric if metric in METRICS else METRICS[0]


def metric_select(address: Address) -> Select:
    metric = metric_of(address)
    choices = [Choice(name, METRIC_WORDS[name]) for name in METRICS]
    return Select("metric", "Metric", [("", choices)], metric, on=metric != METRICS[0])


def page_of(address: Address, board: AgreementBoard, *, single: bool) -> AgreementPage:
    """``single``: the viewer may see annotators' verdicts one by one, so cells of theirs are links."""
    metric = metric_of(address)
    numbers = {(row.a, row.b): row for row in board.rows if row.metric == metric}
    voters = board.voters
    fixed = sorted((voter for voter in voters if voter.kind != "annotator"), key=lambda voter: KIND_ORDER[voter.kind])
    people = sorted((voter for voter in voters if voter.kind == "annotator"), key=lambda voter: (-voter.n, voter.name))
    size = MANY if address.params.get("all") else FEW
    number = _page(address, len(people), size)
    first = (number - 1) * size
    selected = [*fixed, *people[first : first + size]]
    heads = [_head(address, voter, single=single) for voter in selected]
    who = address.params.get("who", "")
    who = who if any(voter.name == who for voter in voters) else ""
    ordered = _pairs(numbers, {voter.name: voter for voter in voters}, who)
    scale = marks.axis([end for row in ordered[:PAIRS] for end in row.value.ends], most=4)
    low, high = HEAT[metric]
    last = min(first + size, len(people))
    return AgreementPage(
        metric=metric,
        metric_label=METRIC_WORDS[metric],
        in_words=IN_WORDS[metric],
        heads=heads,
        rows=[(head, [_cell(address, head, other, numbers, low, high) for other in heads]) for head in heads],
        pairs=[_pair(address, row, scale) for row in ordered[:PAIRS]],
        pairs_in_all=len(ordered),
        pairs_axis=marks.axis_head(scale, tick),
        annotators=len(people),
        shown=f"annotators {first + 1} to {last} of {len(people)} by number of items" if len(people) > size else "",
        who=who,
        before=address.link(page=str(number - 1) if number > 2 else None) if number > 1 else "",
        after=address.link(page=str(number + 1)) if last < len(people) else "",
        wider=address.link(all="1", page=None) if size == FEW and len(people) > FEW else "",
        narrower=address.link(all=None, page=None) if size == MANY else "",
        heat_low=two(low),
        heat_high=two(high),
        upright=any(len(head.short) > LONGEST_LEVEL for head in heads),
    )


def _head(address: Address, voter: Voter, *, single: bool) -> MatrixHead:
    key = voter.key if single or voter.kind != "annotator" else ""
    short = voter.name.removeprefix("annotator-")
    return MatrixHead(voter.name, short, voter.kind, whole(voter.n), _pairs_of(address, voter.name), key)


def _pairs_of(address: Address, name: str) -> str:
    return address.link(who=name) + "#pairs"


def _page(address: Address, annotators: int, size: int) -> int:
    return max(1, min(whole_number(address.params.get("page")) or 1, -(-annotators // size)))


def _pairs(numbers: dict[tuple[str, str], Row], voters: dict[str, Voter], who: str) -> list[Row]:
    """Pairs with most shared items first, baselines' last; of one voter where ``who`` names one."""
    rows = [row for pair, row in numbers.items() if (not who or who in pair) and row.n]
    floor = {name for name, voter in voters.items() if voter.kind == "baseline"}
    return sorted(rows, key=lambda row: (bool({row.a, row.b} & floor), -row.n, row.a, row.b))


def _cell(
    address: Address,
    head: MatrixHead,
    other: MatrixHead,
    numbers: dict[tuple[str, str], Row],
    low: float,
    high: float,
) -> marks.HeatCell:
    if head.name == other.name:
        return marks.HeatCell("", "", "self", "")
    row = numbers.get((head.name, other.name)) or numbers.get((other.name, head.name))
    if row is None or row.value.value is None:
        return marks.HeatCell(NONE, "", "qx", f"{head.name} and {other.name}: no shared item to compare")
    link = ""
    if head.key and other.key:
        link = address.to("leaderboard:compare", **address.view(), a=head.key, b=other.key)
    title = f"{head.name} and {other.name}: {two(row.value.value)} of {number_of(row.n, 'item')}"
    title = ", ".join(filter(None, [title, interval(row.value, two)]))
    css = marks.heat(row.value.value, low, high) if row.n >= FEWEST else "qx"
    return marks.HeatCell(two(row.value.value), whole(row.n), css, title, link)


def _pair(address: Address, row: Row, scale: marks.Axis) -> PairRow:
    return PairRow(
        row.a,
        row.b,
        _pairs_of(address, row.a),
        _pairs_of(address, row.b),
        two(row.value.value),
        marks.interval_bar(scale, *row.value.ends),
        f"{whole(row.agree)} of {whole(row.n)}",
    )


def reading(page: AgreementPage) -> list[tuple[str, str]]:
    """What the matrix shows: a term and what is said of it."""
    few = f"with fewer than {FEWEST} it has no colour"
    return [
        (page.metric_label, f"of two voters: {page.in_words[:1].lower()}{page.in_words[1:]}"),
        ("", f"Small figures are the items that both have a verdict on; {few}: 1 of 1 is no agreement."),
        ("", "A click on a cell opens the items of the two, a click on a name all pairs of that voter."),
    ]


def counted(board: AgreementBoard) -> str:
    """``8,931 labels by 124 annotators``."""
    people = [voter for voter in board.voters if voter.kind == "annotator"]
    labels = number_of(sum(voter.n for voter in people), "label")
    return f"{labels} by {number_of(len(people), 'annotator')}"
