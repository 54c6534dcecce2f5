"""The board of agreement as a page: a matrix of the most active, and a table of pairs."""

from collections.abc import Callable
from dataclasses import dataclass

from django.core.paginator import Page, Paginator

from leaderboard.boards.agreement.board import MAJORITY, METRICS, AgreementBoard, Voter
from leaderboard.boards.agreement.board import AgreementRow as Row
from leaderboard.boards.judges.page import in_plain_words
from leaderboard.metrics import PAIRS as OF_PAIRS
from leaderboard.show import marks
from leaderboard.show.marks import Cell, Chip
from leaderboard.show.pickers import Select, pick
from leaderboard.show.provenance import CLOSED
from leaderboard.show.table import Column, Table, axis_of, names, on_axis, table, text, upright
from leaderboard.view import Address
from stats.agreement import MEASURES
from stats.figures import NONE, interval, number_of, tick, two, whole

FEW, MANY = 12, 60
PAIRS = 100
FEWEST = 10  # shared items below which a cell has no colour: 1 of 1 is no agreement
LONGEST_LEVEL = 8  # letters
BEYOND_CHANCE = {metric.name: metric for metric in OF_PAIRS if metric.name in MEASURES}
METRIC_WORDS = {
    **{name: metric.label for name, metric in BEYOND_CHANCE.items()},
    "agreement": "Agreement",
    "agreement_decided": "Agreement, decided",
    "kappa": "Cohen's kappa",
}
IN_WORDS = {
    **{name: f"{metric.words}." for name, metric in BEYOND_CHANCE.items()},
    "agreement": "share of shared items with the same verdict; undecided counts as a tie.",
    "agreement_decided": "share of shared items with the same verdict, where both chose a side.",
    "kappa": "agreement beyond chance over first, second and tie (Cohen's kappa).",
}
HEAT = {name: metric.heat for name, metric in BEYOND_CHANCE.items()}
HEAT |= {"agreement": (0.2, 1.0), "agreement_decided": (0.3, 1.0)}
KIND_ORDER = {"majority": 0, "judge": 1, "baseline": 2}
KEY = "Small figures: shared items; under 10 no colour."
KEY_OF_PSEUDONYMS = f"{KEY} People appear under pseudonyms."


@dataclass(frozen=True, slots=True)
class AgreementPage:
    """``who``: whose pairs ``pairs`` holds, or nobody."""

    metric: str
    metric_label: str
    in_words: str
    matrix: Table
    pairs: Table
    pairs_in_all: int
    shown: str  # which annotators the matrix holds
    who: str
    before: str
    after: str
    wider: str
    narrower: str
    heat_low: str
    heat_high: str

    @property
    def pairs_title(self) -> str:
        return f"{self.who} and everybody" if self.who else "Pairs with most shared items"

    @property
    def pairs_shown(self) -> str:
        """How many of the pairs the table holds: "12 of 1,830 pairs"."""
        rows, pairs = len(self.pairs.rows), number_of(self.pairs_in_all, "pair")
        return f"{rows} of {pairs}" if self.pairs_in_all > rows else pairs


def metric_of(address: Address) -> str:
    metric = address.params.get("metric", "")
    return metric if metric in METRICS else METRICS[0]


def metric_select(address: Address) -> Select:
    metric = metric_of(address)
    words = {name: METRIC_WORDS[name] for name in METRICS}
    return pick("metric", "Metric", words, metric, on=metric != METRICS[0])


def build_agreement_page(address: Address, board: AgreementBoard, *, single: bool) -> AgreementPage:
    """``single``: the viewer may see annotators' verdicts one by one, so cells of theirs are links."""
    metric = metric_of(address)
    numbers = {(row.a, row.b): row for row in board.rows if row.metric == metric}
    voters = board.voters
    fixed = sorted((voter for voter in voters if voter.kind != "annotator"), key=lambda voter: KIND_ORDER[voter.kind])
    people = sorted((voter for voter in voters if voter.kind == "annotator"), key=lambda voter: (-voter.n, voter.name))
    size = MANY if address.params.get("all") else FEW
    page = Paginator(people, size).get_page(address.params.get("page"))
    selected = [*fixed, *page]
    by_name = {voter.name: voter for voter in voters}
    who = address.params.get("who", "")
    if who not in by_name:
        who = ""
    ordered = _pairs(numbers, by_name, who)
    low, high = HEAT[metric]
    open_to = {voter.name: voter.key for voter in voters if single or voter.kind != "annotator"}

    def cell(voter: Voter, other: Voter) -> Cell:
        if voter.name == other.name:
            return marks.ITSELF
        row = numbers.get((voter.name, other.name)) or numbers.get((other.name, voter.name))
        link = _items_of(address, voter.name, other.name, open_to)
        return _agreement_cell(f"{voter.name} and {other.name}", row, metric, link)

    return AgreementPage(
        metric=metric,
        metric_label=METRIC_WORDS[metric],
        in_words=IN_WORDS[metric],
        matrix=_agreement_matrix(address, selected, cell, metric, len(people), open_to),
        pairs=_pairs_table(address, ordered[:PAIRS], metric, open_to),
        pairs_in_all=len(ordered),
        who=who,
        **_paging(address, page, size),
        heat_low=two(low),
        heat_high=two(high),
    )


def _agreement_cell(both: str, row: Row | None, metric: str, link: str) -> Cell:
    if row is None or row.value.value is None:
        return Cell(NONE, css="qx", title=f"{both}: no shared item to compare")
    title = f"{both}: {two(row.value.value)} of {number_of(row.n, 'item')}"
    title = ", ".join(filter(None, [title, interval(row.value, two), "" if link else CLOSED]))
    css = marks.heat(row.value.value, *HEAT[metric]) if row.n >= FEWEST else "qx"
    return Cell(two(row.value.value), whole(row.n), css, title, link)


def _paging(address: Address, page: Page[Voter], size: int) -> dict[str, str]:
    """Which annotators are shown, and where the others are."""
    people = page.paginator.count
    links = dict.fromkeys(("shown", "before", "after", "wider", "narrower"), "")
    if page.has_other_pages():
        links["shown"] = f"annotators {page.start_index()} to {page.end_index()} of {people} by number of items"
    if page.has_previous():
        links["before"] = address.link(page=str(page.number - 1) if page.number > 2 else None)
    if page.has_next():
        links["after"] = address.link(page=str(page.number + 1))
    if size == FEW and people > FEW:
        links["wider"] = address.link(all="1", page=None)
    if size == MANY:
        links["narrower"] = address.link(all=None, page=None)
    return links


def short_name(name: str) -> str:
    """The name over a narrow column."""
    return name.removeprefix("annotator-")


def _agreement_matrix(
    address: Address,
    voters: list[Voter],
    cell: Callable[[Voter, Voter], Cell],
    metric: str,
    annotators: int,
    open_to: dict[str, str],
) -> Table:
    def name(voter: Voter) -> Cell:
        chips = (Chip("needs no skill"),) if voter.kind == "baseline" else ()
        return Cell(in_plain_words(voter.name), link=_pairs_of(address, voter.name), chips=chips)

    def against(other: Voter) -> Column[Voter]:
        return upright(in_plain_words(short_name(other.name)), lambda voter: cell(voter, other), other.name)

    def items(voter: Voter) -> Cell:
        link = _items_of(address, MAJORITY, voter.name, open_to) if voter.kind not in ("annotator", "majority") else ""
        return Cell(whole(voter.n), link=link, title="" if link else CLOSED)

    is_upright = any(len(short_name(voter.name)) > LONGEST_LEVEL for voter in voters)
    return table(
        [
            names(number_of(annotators, "annotator"), name),
            Column("Items", items),
            *(against(other) for other in voters),
        ],
        voters,
        row_css=lambda voter: "" if voter.kind == "annotator" else "base",
        label="Agreement matrix",
        caption=f"{METRIC_WORDS[metric]} of every two, with the number of shared items",
        css="matrix upright" if is_upright else "matrix",
        does="Click: the items of the two.",
        fill=True,
    )


def _pairs_table(address: Address, rows: list[Row], metric: str, open_to: dict[str, str]) -> Table:
    def same(row: Row) -> Cell:
        text = f"{whole(row.agree)} of {whole(row.n)}"
        link = _items_of(address, row.a, row.b, open_to)
        return Cell(text, link=link, title="" if link else CLOSED)

    return table(
        [
            names("One", lambda row: Cell(in_plain_words(row.a), link=_pairs_of(address, row.a)), css=""),
            text("Other", lambda row: Cell(in_plain_words(row.b), link=_pairs_of(address, row.b))),
            on_axis(
                "Kappa" if metric == "kappa" else METRIC_WORDS[metric] if metric in MEASURES else "Agreement",
                "value",
                axis_of(rows, "value"),
                tick,
            ),
            Column("Same verdict", same),
        ],
        rows,
        label="Pairs",
        caption="Pairs with their agreement, its interval, and counts",
        css="cmpt pairs",
    )


def _pairs_of(address: Address, name: str) -> str:
    return address.link(who=name) + "#pairs"


def _items_of(address: Address, a: str, b: str, open_to: dict[str, str]) -> str:
    """Where the items of two voters are, for who may see both one by one. ``open_to``: what that page calls them."""
    if a not in open_to or b not in open_to:
        return ""
    return address.to("leaderboard:compare", **address.view(), a=open_to[a], b=open_to[b])


def _pairs(numbers: dict[tuple[str, str], Row], voters: dict[str, Voter], who: str) -> list[Row]:
    """Pairs with most shared items first, baselines' last; of one voter where ``who`` names one."""
    rows = [row for pair, row in numbers.items() if (not who or who in pair) and row.n]
    floor = {name for name, voter in voters.items() if voter.kind == "baseline"}
    return sorted(rows, key=lambda row: (bool({row.a, row.b} & floor), -row.n, row.a, row.b))


def counted(board: AgreementBoard) -> str:
    """``8,931 labels by 124 annotators``."""
    people = [voter for voter in board.voters if voter.kind == "annotator"]
    labels = number_of(sum(voter.n for voter in people), "label")
    return f"{labels} by {number_of(len(people), 'annotator')}"
