"""The controls of a page that change its view."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from annotations.models import Adjudication, Campaign
from bank.models import Benchmark, Capability, Sample
from judging.models import Judge
from leaderboard import kinds, votes
from leaderboard.models import Edition
from leaderboard.scope import ADJUDICATED, DEFINITIONS, HUMANS, INDIVIDUALS, NO_ELO, Scope
from leaderboard.view import BY_KIND, PEOPLE_IN_WORDS, RULES_IN_WORDS, Address, Source

SWITCHED = ("models", "together", "judges", "bias", "correlation")  # those with a switch between them
WAYS = {"models": "Ranking", "matrix": "Win rates", "together": "People and judge"}  # of models
IN_SIGHT = 3  # pickers; the others are folded, unless they are in use
EXPLAINED = {
    "source": "Whose verdicts count: people's, or those of a judge.",
    "run": "A judge's runs with different settings are not mixed: one of them counts.",
    "level": "Samples of this capability alone.",
    "question_type": "Samples with this type of question alone.",
    "split": "This part of the samples alone.",
    "campaign": "Labels of this campaign alone.",
    "majority": "How several people's labels of an item become one verdict.",
    "elo": "Elo depends on the order of the votes: it is a mean over votes drawn again in many orders, or taken once.",
    "weights": "Models whose weights anybody can download, or none of them. Ranks stay those among all models.",
    "organisation": "Models of one maker. Ranks stay those among all models.",
    "ties": "What an item without a winner adds to Win %.",
    "failures": "What an item counts on which the judge gave no readable verdict.",
    "orders": "Whether both orders must have a verdict, or one is enough.",
    "control": "What all answers are taken to have the same of: ranks and tints then follow that rating.",
    "weight": "How often a vote for a much better answer counts in ratings.",
    "reading": "How yes or no is found in an answer.",
    "pool": "What a number over all data sets is: the mean over them, or one number of all items.",
    "metric": "The number that compares a judge with people, and ranks it.",
    "reference": "What a judge is compared with: one verdict an item, or every label.",
    "rows": "Which models stand in the rows: the table holds a part of them.",
    "columns": "Which models stand in the columns.",
}


@dataclass(frozen=True, slots=True)
class Select:
    """A control of the filter row. ``groups``: under headings (or "") the values with their words; ``on``: not at its
    default.
    """

    name: str
    label: str
    groups: Mapping[str, Mapping[str, str]]
    chosen: str
    on: bool = False

    @property
    def explained(self) -> str:
        return EXPLAINED.get(self.name, "")


def pick(
    name: str, label: str, choices: Mapping[str, str] | Iterable[str], chosen: str, *, on: bool = False, empty: str = ""
) -> Select:
    """A control between values with their words, or names that are their own; ``empty``: the words for none of them."""
    words = choices if isinstance(choices, Mapping) else {choice: choice for choice in choices}
    return Select(name, label, {"": ({"": empty} if empty else {}) | dict(words)}, chosen, on)


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a switch, with its link, and its count if it has one."""

    label: str
    link: str
    chosen: bool
    n: int | None = None


def segments(address: "Address", name: str, parts: Iterable[tuple[str, str, int]]) -> list[Segment]:
    """A switch between values of a parameter, each with its words and count; it leads to the first page."""
    chosen = address.params.get(name, "")
    return [
        Segment(words, address.link(**{name: value or None}, page=None), chosen == value, n)
        for value, words, n in parts
    ]


def folded(selects: Sequence[Select]) -> tuple[list[Select], list[Select]]:
    """The pickers in sight, those in use among them, and the others."""
    room = max(0, IN_SIGHT - sum(select.on for select in selects))
    first = [select for select in selects if not select.on][:room]
    return (
        [select for select in selects if select.on or select in first],
        [select for select in selects if not select.on and select not in first],
    )


def kind_segments(address: Address) -> list[Segment]:
    """The switch between kinds; empty if there is only one, and it is shown."""
    board = BY_KIND[address.page.removeprefix("leaderboard:")]
    with_data = kinds.available(address.benchmark, board, staff=address.staff)
    current = address.kind
    if len(with_data) < 2 and current in (*with_data, kinds.USUAL):
        return []
    params = {name: address.params[name] for name in ("split",) if name in address.params}
    return [
        Segment(kind.title, address.to(address.page, **params, kind=kind.name), kind is current)
        for kind in kinds.KINDS.values()
        if kind in with_data or kind is current
    ]


def view_segments(address: Address) -> list[Segment]:
    """The switch between the ways to look at models."""
    fits = {"matrix": address.kind.pairwise, "together": address.kind.has_means}
    pages = ((f"leaderboard:{name}", label) for name, label in WAYS.items() if fits.get(name, True))
    return [Segment(label, address.to(page, **address.view()), page == address.page) for page, label in pages]


def reader_select(address: Address, scope: Scope) -> list[Select]:
    """The judge whose readings of answers without an option count, if judges have read some."""
    names = votes.judges_of(scope)
    choices = {name: f"label, then {name}" for name in names}
    return [_filter(address, "source", "Read by", choices, "label, then whoever read most")] if names else []


def source_select(address: Address, scope: Scope) -> Select:
    people = PEOPLE_IN_WORDS | ({HUMANS: "people, mean"} if scope.kind.by_mean else {})
    adjudications = Adjudication.objects.filter(campaign_item__campaign__benchmark=address.benchmark)
    if not (scope.kind.pairwise and adjudications.exists()):
        del people[ADJUDICATED]
    groups: dict[str, dict[str, str]] = {"People": people, "Judges": {}, "Baselines": {}}
    with_runs = Judge.objects.filter(pk__in=votes.judged_runs(scope).order_by().values("judge"))
    for judge in with_runs.order_by("name"):
        groups["Baselines" if judge.is_baseline else "Judges"][judge.name] = judge.titled
    present = {title: choices for title, choices in groups.items() if choices}
    return Select("source", "Judged by", present, scope.source, on="source" in address.params)


def verdict_selects(address: Address, source: Source) -> list[Select]:
    """Whose verdicts count; for answers compared with keys, whose readings."""
    scope = source.scope
    sources = reader_select(address, scope) if scope.kind.keyed else [source_select(address, scope)]
    return [*sources, *run_select(source), *sample_selects(address)]


def run_select(source: Source) -> list[Select]:
    return [pick("run", "Run", source.runs, str(source.scope.run), on=True)] if source.runs else []


def sample_selects(address: Address) -> list[Select]:
    """Capability, question type and split, if there is something to choose from."""
    selects = []
    groups = _capabilities(address.benchmark)
    if groups:
        level = address.params.get("level", "")
        selects.append(Select("level", "Capability", groups, level, on=bool(level)))
    question_types, splits = set(), set()
    for group in votes.sample_groups(address.benchmark):
        if group.status == Sample.Status.APPROVED:
            question_types.add(group.question_type)
            splits.add(group.split)
    for name, label, found in (("question_type", "Question", question_types), ("split", "Split", splits)):
        values = sorted(filter(None, found))
        if len(values) > 1 or name in address.params:
            selects.append(_filter(address, name, label, values))
    return selects


def _capabilities(benchmark: Benchmark) -> dict[str, dict[str, str]]:
    """What a picker of capabilities offers, by heading; nothing where the benchmark has none."""
    tree = list(Capability.objects.filter(benchmark=benchmark).order_by("position", "pk"))
    tops = [node for node in tree if node.parent_id is None]
    if not tops:
        return {}
    nested = any(node.parent_id for node in tree)
    groups: dict[str, dict[str, str]] = {"": {"": "all"}}
    for top in tops:
        of_top = groups.setdefault(top.name if nested else "", {})
        of_top[top.path] = f"all of {top.name}" if nested else top.name
        of_top |= {node.path: node.path.split(" / ", 1)[1] for node in tree if node.path.startswith(f"{top.path} / ")}
    return groups


def edition_selects(address: Address, scope: Scope) -> list[Select]:
    """For a board seen by its editions: the hidden splits that have one, and the rest."""
    editions = Edition.objects.filter(benchmark=scope.benchmark, kind=scope.kind.name).exclude(split="")
    splits = sorted(set(editions.values_list("split", flat=True)))
    if not splits or not address.benchmark.samples.in_use().exclude(split__in=splits).exists():
        return []
    return [pick("split", "Split", splits, scope.split, on=bool(scope.split), empty="all but hidden ones")]


def people_selects(address: Address, scope: Scope) -> list[Select]:
    """Campaign, for those who may read campaigns, and majority rule."""
    selects = []
    labelled = scope.kind.labels().filter(campaign=OuterRef("pk"))
    campaigns = Campaign.objects.filter(Exists(labelled), benchmark=address.benchmark).order_by("pk")
    names = list(campaigns.values_list("name", flat=True)) if address.may("read-judging") else []
    if len(names) > 1 or (names and "campaign" in address.params):
        selects.append(_filter(address, "campaign", "Campaign", names))
    if scope.source != INDIVIDUALS and scope.kind.pairwise:
        on = scope.rule != address.benchmark.majority
        selects.append(pick("majority", "Majority", RULES_IN_WORDS, scope.rule, on=on))
    return selects


def elo_select(address: Address, scope: Scope) -> Select:
    """How Elo is computed. The bootstrap takes seconds with many votes; then it is only run on request."""
    large = votes.is_large(address.benchmark)
    words = {"online-bootstrap": "mean of many orders", "online": "votes in order"}
    words = {NO_ELO: "not computed"} | words if large else words
    return pick("elo", "Elo", words, scope.elo, on=scope.elo != next(iter(words)))


def definition_selects(scope: Scope, *names: str) -> list[Select]:
    """Those of these definitions among which this kind of verdict has a choice."""
    selects = []
    for name in names:
        definition = DEFINITIONS[name]
        values = definition.of_kind(scope.kind)
        if len(values) > 1:
            chosen, words = getattr(scope, name), {value: definition.ways[value].label for value in values}
            selects.append(pick(name, definition.label, words, chosen, on=chosen != values[0]))
    return selects


def _filter(
    address: Address, name: str, label: str, choices: Mapping[str, str] | Iterable[str], empty: str = "all"
) -> Select:
    value = address.params.get(name, "")
    return pick(name, label, choices, value, on=bool(value), empty=empty)
