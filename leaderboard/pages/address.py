"""What the URL of a page asks for: the benchmark, the view, and the controls that change it.

The URL contains the whole view, so that it can be linked and cited.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest
from django.urls import reverse

from accounts.rules import Viewer, allowed
from annotations.models import Adjudication, Campaign
from bank.models import Benchmark, Capability, Sample
from judging.models import Judge
from judging.protocols.in_words import settings_in_words
from leaderboard import kinds, votes
from leaderboard.definitions import DEFINITIONS
from leaderboard.kinds import Kind
from leaderboard.models import Edition
from leaderboard.scope import ADJUDICATED, HUMANS, INDIVIDUALS, NO_ELO, PEOPLE, Scope
from leaderboard.sight import MODELS, Sight
from leaderboard.view import OF_VOTES, run_number, scope_of

PEOPLE_IN_WORDS = {
    HUMANS: "people, majority",
    INDIVIDUALS: "people, each label",
    ADJUDICATED: "people, adjudicated",
}
# Pages that exist in several kinds, and the board whose kinds they have.
BY_KIND = {
    "models": "models",
    "together": "models",
    "judges": "judges",
    "bias": "bias",
    "correlation": "models",
    "answers": "models",
    "models-compare": "models",
    "judges-compare": "judges",
}
SWITCHED = ("models", "together", "judges", "bias", "correlation")  # those with a switch between them
WAYS = {"models": "Ranking", "matrix": "Win rates", "together": "People and judge"}  # of models
RULES_IN_WORDS = {"plurality": "most frequent verdict", "mllm-bench": "MLLM-Bench"}


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


@dataclass(frozen=True, slots=True)
class Address:
    """A requested page of one benchmark. ``params`` holds the non-empty parameters that the page knows;
    ``name`` is the benchmark as the URL writes it.
    """

    viewer: Viewer
    page: str
    name: str
    benchmark: Benchmark
    params: dict[str, str] = field(default_factory=dict)

    @property
    def staff(self) -> bool:
        return self.may("read-hidden")

    def may(self, rule: str) -> bool:
        """Whether the viewer has the rule for this benchmark."""
        return allowed(self.viewer, rule, of=self.benchmark)

    def link(self, **changes: str | None) -> str:
        """This page with some parameters changed; None removes one."""
        return self.to(self.page, **(self.params | changes))

    def plot(self, what: str) -> str:
        """A plot of this view, as a file."""
        return self.to("leaderboard:plot", what, **self.params)

    def to(self, page: str, /, *keys: object, **parameters: str | None) -> str:
        """Another page of the same benchmark; ``keys`` identify the object that the page is about, if any."""
        query = {name: value for name, value in parameters.items() if value}
        return reverse(page, args=[self.name, *keys], query=query)

    def kept(self, *names: str) -> list[tuple[str, str]]:
        """Those of these parameters that are there, for hidden fields."""
        return [(name, self.params[name]) for name in names if name in self.params]

    def view(self, names: Sequence[str] = OF_VOTES) -> dict[str, str | None]:
        """The parameters that say which verdicts count, to pass on to another page."""
        return {name: self.params[name] for name in names if name in self.params}

    def scope(self, *, source: str = "", run: int | None = None) -> Scope:
        """The checked scope. Raises BadScope."""
        asked = scope_of(
            benchmark=self.benchmark,
            source=source or self.params.get("source", ""),
            run=run or run_number(self.params.get("run", "")),
            elo=self.params.get("elo", "") or (NO_ELO if votes.is_large(self.benchmark) else ""),
            staff=self.staff,
            kind=self.kind,
            **{name: self._asked(name) for name in OF_VOTES if name not in ("source", "run", "kind")},
        )
        return replace(asked, pseudonyms=asked.staff and not self.may("read-names"))

    def sight(self, of: Edition.What | None = None) -> Sight:
        """What the viewer sees of a board in this view, which may have editions of its own. Raises BadScope."""
        return Sight(self.scope(), of)

    def _asked(self, name: str) -> str:
        """A parameter of the view, without definitions that links between kinds keep and this kind does not have."""
        value = self.params.get(name, "")
        definition = DEFINITIONS.get(name)
        other = definition and value in definition.ways and value not in definition.of_kind(self.kind)
        return "" if other else value

    @property
    def kind(self) -> Kind:
        """The kind of board: the requested one, or the first with data; pairs for pages that only have pairs.

        Raises BadScope.
        """
        if "kind" in self.params:
            return kinds.get(self.params["kind"])
        board = BY_KIND.get(self.page.removeprefix("leaderboard:"), "")
        return kinds.default_of(self.benchmark, board, staff=self.staff)


def read_address(request: HttpRequest, page: str, name: str, *, parameters: Sequence[str]) -> Address:
    """The address of a page; 404 for a benchmark that the viewer may not see."""
    try:
        benchmark = Benchmark.objects.visible_to(request.user).select_related("anchor").named(name)
    except Benchmark.DoesNotExist:
        raise Http404("no such benchmark") from None
    asked = {parameter: request.GET.get(parameter, "").strip() for parameter in parameters}
    if "show" in asked:  # a box for each column
        asked["show"] = ",".join(request.GET.getlist("show"))
    params = {parameter: value.replace("\x00", "")[:300] for parameter, value in asked.items() if value}
    return Address(request.user, page, name, benchmark, params)


def named(benchmark: Benchmark) -> str:
    """The benchmark as addresses write it."""
    return str(benchmark) if benchmark.version != "1" else benchmark.slug


# ---- which verdicts ----


@dataclass(frozen=True, slots=True)
class Source:
    """Where the verdicts of a view come from, and a note about that."""

    scope: Scope
    note: str = ""
    runs: Mapping[str, str] = field(default_factory=dict)  # to choose from, if a judge has some with other settings

    @property
    def sight(self) -> Sight:
        """What its viewer sees of the board of models."""
        return Sight(self.scope, MODELS)


def board_scope(address: Address, board: str) -> Scope:
    """The view of a board; of models with a judge's verdicts where there are none by people."""
    return source_of(address).scope if board == "models" else address.scope()


def source_of(address: Address) -> Source:
    """The view's source. The default is people, or a judge if there are no labels.

    For a judge with several settings the run with most items counts; the page offers the others. Raises BadScope.
    """
    note = ""
    scope = address.scope()
    if not address.params.get("source") and "run" not in address.params and Sight(scope, MODELS).live:
        scope, note = votes.in_place_of_people(scope)
    if scope.source in PEOPLE:
        return Source(scope, note)
    runs = list(votes.judged_runs(scope).filter(judge__name=scope.source))
    if len({(run.protocol, run.settings_hash) for run in runs}) < 2:
        return Source(scope, note)
    choices = {str(run.pk): f"{run.pk}: {settings_in_words(run.protocol, run.settings)}" for run in runs}
    most = votes.with_most_items(runs, alone=True)
    assert most
    return Source(replace(scope, run=scope.run or most.pk), note, choices)


def rows_behind(address: Address, sight: Sight, model: str) -> str:
    """Where the rows behind a model's number are; of what is seen as an edition alone, the board itself."""
    kind = sight.scope.kind
    if sight.only_editions:
        return address.to("leaderboard:models", kind=kind.in_address)
    return address.to(kind.rows_page, model=model, kind=kind.in_address)


def rows_at_level(address: Address, sight: Sight, model: str, level: str) -> str:
    """Where the rows behind a model's number at a level are; nowhere for what is seen as an edition alone."""
    kind = sight.scope.kind
    if sight.only_editions or not level or kind.part_word != "level":
        return ""
    path = level if kind.keyed else " / ".join(filter(None, [address.params.get("level", ""), level]))
    return address.to(kind.rows_page, **(address.view() | {"model": model, "level": path}))


# ---- the controls ----


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
    tree = list(Capability.objects.filter(benchmark=address.benchmark).order_by("position", "pk"))
    tops = [node for node in tree if node.parent_id is None]
    nested = any(node.parent_id for node in tree)
    groups: dict[str, dict[str, str]] = {"": {"": "all"}}
    for top in tops:
        of_top = groups.setdefault(top.name if nested else "", {})
        of_top[top.path] = f"all of {top.name}" if nested else top.name
        of_top |= {node.path: node.path.split(" / ", 1)[1] for node in tree if node.path.startswith(f"{top.path} / ")}
    if tops:
        level = address.params.get("level", "")
        selects.append(Select("level", "Capability", groups, level, on=bool(level)))
    groups_in_use = [group for group in votes.sample_groups(address.benchmark) if group[0] == Sample.Status.APPROVED]
    for name, label, place in (("question_type", "Question", 2), ("split", "Split", 3)):
        values = sorted({group[place] for group in groups_in_use if group[place]})
        if len(values) > 1 or name in address.params:
            selects.append(_filter(address, name, label, values))
    return selects


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
