"""The boards of a benchmark, each a page: ``PAGES`` lists them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from accounts.rules import allowed, class_of, requires
from judging.models import Run
from judging.protocols.prompts.stored import AS_PUBLISHED
from leaderboard import votes
from leaderboard.boards import empty, seen
from leaderboard.boards.agreement import page as agreement_page
from leaderboard.boards.agreement.board import AgreementBoard
from leaderboard.boards.base import MAY_BE_BEST, Board, KeptBoard, ModelsBoard, whole_from_text
from leaderboard.boards.behind.single_labels import sees_labels
from leaderboard.boards.biases import page as bias_page
from leaderboard.boards.biases.board import BiasBoard
from leaderboard.boards.by_kind import makers_of
from leaderboard.boards.correlation import languages_page, outside
from leaderboard.boards.correlation import page as correlation_page
from leaderboard.boards.correlation.board import correlated
from leaderboard.boards.judges import page as judges_page
from leaderboard.boards.judges import repeats, reviews, versions
from leaderboard.boards.judges import stand_in as standin
from leaderboard.boards.judges import stand_in_page as standin_page
from leaderboard.boards.judges.board import JudgesBoard
from leaderboard.boards.judges.stand_in import StandInBoard
from leaderboard.boards.models import abilities, lengths, lengths_page, matrix_page, scored_page
from leaderboard.boards.models import page as models_page
from leaderboard.boards.models.pairs import PairsBoard
from leaderboard.kept import hourly
from leaderboard.kept.pages import answered
from leaderboard.kept.values import until_changed
from leaderboard.kinds import Kind
from leaderboard.kinds.base import NumberColumn
from leaderboard.lookups import KnownModels, known_models
from leaderboard.models import Snapshot
from leaderboard.pages import pictures
from leaderboard.registry import TABLES
from leaderboard.scope import DEFINITIONS, JUDGED, ONCE, SAMPLES, WEIGHT, BadScope, Scope, in_words
from leaderboard.show import pickers, provenance
from leaderboard.show.marks import Chip
from leaderboard.show.singly import singly, table_or_words
from leaderboard.show.table import SHOW, Table
from leaderboard.sight import JUDGES, Sight
from leaderboard.view import (
    OF_PEOPLE,
    OF_VERDICTS,
    OF_VOTES,
    PEOPLE_IN_WORDS,
    Address,
    Source,
    board_scope,
    read_address,
    source_of,
)
from leaderboard.views.forms import OutsideForm
from leaderboard.views.frame import beside_filters, downloads, fragment, frame, refused, standing_of, table_files
from stats.figures import Write, number_of, percent, two, whole, without_interval


def _models(request: HttpRequest, address: Address) -> dict[str, Any]:
    source = source_of(address)
    scope, sight = source.scope, source.sight
    every = seen.models(scope)
    known = known_models(row.model for row in every.rows)
    shown = models_page.filtered_board(address, every, known)
    board = shown.board
    note = " ".join(filter(None, [source.note, shown.note]))
    context = frame(request, address, "models", _models_selects(address, source, shown))
    context |= {"board": board, "note": note}
    context |= standing_of(address, scope)
    if not board.rows:
        context |= {"views": [], "empty": empty.why_no_models(scope)}
    if sight.sealed:
        context["edition"] = _edition(address, sight)
    if board.rows:
        if board.rated:
            lost: list[str] = []
            beside = singly("The other rating", lambda: seen.rated_otherwise(scope, board), lost.append)
            template, of_models = (
                "_models",
                _models_context(address, sight, cast(PairsBoard, board), known, beside=beside),
            )
            of_models["notes"] = [*of_models["notes"], *lost]
        else:
            template, of_models = "_scored", _scored_context(address, sight, board, known)
        of_models["of_all"] = models_page.of_all_models(context["counts"].models, every, scope.kind)
        page = of_models["page"]
        context |= _whole("models", template, address, scope, board, of_models) | {"finding": page.finding}
        context |= beside_filters(page.table, page.chooser, rows="models", told=board.rated and page.told)
        if scope.kind.rotates:
            context["downloads"] += table_files("letters", address, rows="Chosen letters")
            context["downloads"] += table_files("extraction", address, rows="How options were found")
        context["downloads"] += _to_share(address, pictures.OF_MODELS)
    return context


def _models_selects(address: Address, source: Source, shown: models_page.FilteredBoard) -> list[pickers.Select]:
    scope, board = source.scope, shown.board
    if not source.sight.live:
        selects = [*pickers.edition_selects(address, scope), *shown.selects]
    else:
        selects = [*pickers.verdict_selects(address, source), *shown.selects]
        if scope.source in PEOPLE_IN_WORDS and not scope.kind.keyed:
            selects += pickers.people_selects(address, scope)
        selects += pickers.definition_selects(scope, *_definitions(scope, board))
    if board.rows and scope.kind.pairwise:
        selects.append(pickers.elo_select(address, scope))
    return selects


def _whole(
    name: str, template: str, address: Address, scope: Scope, board: Board[Any], context: dict[str, Any]
) -> dict[str, Any]:
    """A board as HTML, its files, and where its viewer can freeze it."""
    freezes = allowed(address.viewer, "freeze-views", of=address.benchmark)
    return {
        "fragment": fragment(f"leaderboard/{template}.html", address, context),
        "downloads": downloads(name, address, scope, board),
        "cite": address.to("leaderboard:snapshot-new", name, **address.params) if freezes else "",
    }


def _to_share(address: Address, names: Sequence[str]) -> list[tuple[str, str, str]]:
    picture = pictures.shared(address, names)
    return [("Picture to share", picture.png, "picture.png")] if picture else []


def _definitions(scope: Scope, board: ModelsBoard) -> list[str]:
    """The definitions that make a difference to this board."""
    plain = scope.weight == ONCE and not (board.rated and cast(PairsBoard, board).graded)
    names = TABLES["models"].view if board.rows else ()
    return [name for name in DEFINITIONS if name in names and not (name == WEIGHT.name and plain)]


def _edition(address: Address, sight: Sight) -> dict[str, Any]:
    """What the page says about the editions of this board, to those who see one and to those who see it live."""
    scope, newest, seen = sight.scope, sight.edition, not sight.live
    context = {"number": newest.number, "as_of": newest.published_at} if newest else {}
    view = address.view(("kind", "split")) | {"kind": scope.kind.name}
    if sight.of == JUDGES:
        view["what"] = JUDGES
    publish = address.to("leaderboard:edition-new", **view) if address.may("publish") else ""
    partly = not scope.kind.hidden  # other views of pairs and scores are live, without what editions alone count
    whole = address.to("leaderboard:models", kind=scope.kind.in_address) if partly and not seen else ""
    submit = reverse("leaderboard:submission-list") if allowed(address.viewer, "submit") else ""
    facts = {"live": scope.staff, "seen": seen, "partly": partly, "whole": whole, "publish": publish, "submit": submit}
    return facts | context


def _models_context(
    address: Address, sight: Sight, board: PairsBoard, known: KnownModels, *, beside: PairsBoard | None = None
) -> dict[str, Any]:
    scope = sight.scope
    anchor = scope.anchor if any(row.model == scope.anchor for row in board.rows) else ""
    repeats = f", {board.repeats} repeats" if board.repeats > 1 else ""
    counted = f"{number_of(board.items, 'item')}{repeats}"
    page = models_page.build_models_page(address, board, known, anchor=anchor, beside=beside)
    return {
        "page": page,
        "anchor": anchor,
        "defined": in_words(scope, *DEFINITIONS),
        "plot": address.plot("forest"),
        "apart": _apart(board, two),
        "verdicts_by": provenance.source_of(scope, board, address.viewer),
        "counted": counted,
        "coverage": _coverage(board),
        "notes": _below(board.notes, page.finding),
        "board": board,
    }


def _below(notes: Sequence[str], finding: str = "") -> list[str]:
    """The notes of a board without what stands above it."""
    told = [note for note in notes if not isinstance(note, seen.OfRounds)]
    return [note for note in told if not (finding and note.startswith(MAY_BE_BEST))]


def _coverage(board: PairsBoard) -> str:
    """``80.0 % of the items asked about; of each model's own, 77.5 to 84.3 %``."""
    if board.coverage is None:
        return ""
    own = sorted({percent(row.coverage) for row in board.rows if row.coverage is not None}, key=float)
    said = f"{percent(board.coverage)} % of the items asked about"
    differ = len(own) > 1
    return f"{said}; of each model's own, {own[0]} to {own[-1]} %" if differ else said


def _scored_context(address: Address, sight: Sight, board: ModelsBoard, known: KnownModels) -> dict[str, Any]:
    scope = sight.scope
    counted = number_of(board.items, scope.kind.counted_word)
    page = scored_page.build_scored_page(address, sight, board, known)
    return {
        "page": page,
        "abilities": _abilities(scope, page.main) if sight.live else None,
        "apart": _apart(board, page.main.write),
        "defined": in_words(scope, *DEFINITIONS),
        "verdicts_by": provenance.source_of(scope, board, address.viewer),
        "counted": counted,
        "notes": _below(board.all_notes, page.finding),
        "board": board,
    }


def _abilities(scope: Scope, main: NumberColumn) -> Table | None:
    def drawn() -> Table | None:
        board = abilities.abilities(scope)
        return scored_page.abilities_of(board, main, scope.kind.shape.unit)

    return table_or_words("All models together, by ability,", drawn)


def _apart(board: ModelsBoard, write: Write) -> Table | None:
    return table_or_words("How many more items tell models apart", lambda: models_page.apart_table(board, write))


def _judges(request: HttpRequest, address: Address) -> dict[str, Any]:
    sight = address.sight(JUDGES)
    scope, board = sight.scope, seen.judges(sight.scope)
    selects = [
        *(judges_page.selects(address, board, scope.kind) if board.rows else []),
        *pickers.definition_selects(scope, *judges_page.definitions(board, scope.kind)),
        *pickers.sample_selects(address),
        *pickers.people_selects(address, scope),
    ]
    context = frame(request, address, "judges", selects) | {"board": board}
    if scope.kind.hidden and scope.kind.metrics and sight.sealed:
        context["edition"] = _edition(address, sight)
    context["held_out"] = address.to("leaderboard:held-out") if address.may("publish") else ""
    context |= standing_of(address, scope, beside_people=True)
    if not any(row.value.value is not None for row in board.rows):
        context["empty"] = empty.why_no_judges(scope)
    else:
        of_judges = _judges_context(address, sight, board)
        context |= _whole("judges", "_judges", address, scope, board, of_judges)
        page = of_judges["page"]
        context |= {"finding": page.finding} | beside_filters(page.table, page.chooser, rows="judges")
        if sight.live:
            context["downloads"] += _files_beside_judges(address, scope.kind, of_judges["below"])
        context["downloads"] += _to_share(address, pictures.OF_JUDGES)
    return context


def _files_beside_judges(
    address: Address, kind: Kind, below: Sequence[tuple[str, "Below", Any]]
) -> list[tuple[str, str, str]]:
    files = table_files("ceiling", address, rows="People against people")
    if kind.stand_in:
        files += table_files("stand-in", address, rows="Stand-in test")
    for name, each, shown in below:
        if shown and not shown.problem:
            files += table_files(name, address, rows=each.file)
    return files


@dataclass(frozen=True, slots=True)
class Below:
    """A table below the board of judges. ``file``: what the menu of downloads calls it."""

    file: str
    title: str
    foot: str
    make: KeptBoard[Any]
    draw: Callable[[Any, Kind], Table | None]

    def drawn(self, scope: Scope) -> Table | None:
        return table_or_words(self.title, lambda: self.draw(self.make(scope), scope.kind))


BELOW_JUDGES = {
    "reviews": Below(
        "Reviews of verdicts",
        "Verdicts as people reviewed them",
        "By consensus: verdicts with fewer or more than three reviews do not count in the first two.",
        reviews.reviews,
        judges_page.reviewed,
    ),
    "analyses": Below(
        "Analyses compared",
        "Two judges' analyses, as people compared them",
        "Preferred: the first of the two, a tie counting half. Of each item the most frequent verdict counts. People "
        "did not see whose analysis was which.",
        reviews.compared,
        judges_page.compared,
    ),
    "versions": Below(
        "Versions of prompts",
        "Versions of prompts, each beside the one before it",
        "Against people, on the items that both versions judged, by a paired test. Point at a number for its measure.",
        versions.versions,
        judges_page.prompt_versions,
    ),
    "repeats": Below(
        "Repeats that are the same",
        "Asked again: how many verdicts are the same",
        "In % of the items that the judge gave a verdict on, labelled or not. A reply without a verdict is like no "
        "other.",
        repeats.repeats,
        judges_page.repeated,
    ),
}


SHOWN = (AS_PUBLISHED, seen.SIMULATED, seen.PARTLY_SIMULATED, seen.HELD_OUT)  # of the notes of a board


def _notes(board: JudgesBoard, page: judges_page.JudgesPage) -> list[str]:
    shown = [row.value for row in board.rows if (row.metric, row.reference) == (page.metric, page.reference)]
    told = (note for note in board.notes if note in SHOWN)
    return [*told, *without_interval(shown)]


def _judges_context(address: Address, sight: Sight, board: JudgesBoard) -> dict[str, Any]:
    """What the board shows; where it is live, with what other boards say of the same judges now."""
    scope = sight.scope
    lost: list[str] = []

    def of_biases() -> dict[int, list[Chip]]:
        return bias_page.chips_of(address, seen.bias_of(scope), scope.kind)

    def of_test() -> StandInBoard:
        return standin.stand_ins(scope, standin_page.epsilon_of(address))

    biases, tested = None, None
    if sight.live and scope.kind.biases:
        biases = singly("The biases", of_biases, lost.append)
    if sight.live and scope.kind.stand_in:
        tested = singly("The stand-in test", of_test, lost.append)
    biases, tested = biases or {}, tested or judges_page.UNTESTED
    page = judges_page.build_judges_page(address, board, kind=scope.kind, biases=biases, tested=tested)
    below = BELOW_JUDGES if sight.live else {}
    ceiling = board.against[page.reference].ceiling.get(page.metric)
    test = standin_page.panel_of(address, tested, kind=scope.kind) if tested.rows else None
    return {
        "test": test,
        "below": [(name, each, each.drawn(scope)) for name, each in below.items()],
        "page": page,
        "plot": address.plot("judges"),
        "kind": scope.kind,
        "ceiling": whole(ceiling.n) if ceiling else "",
        "rule": provenance.rule_of(scope),
        "counted": number_of(len(board.runs), "run"),
        "notes": [*lost, *_notes(board, page)],
        "defined": in_words(scope, *judges_page.definitions(board, scope.kind)),
        "against": judges_page.reference_words(scope.kind)[page.reference],
        "board": board,
    }


def _bias(request: HttpRequest, address: Address) -> dict[str, Any]:
    sight = address.sight()
    scope, board = sight.scope, seen.bias_of(sight.scope)
    selects = [*pickers.sample_selects(address), *pickers.people_selects(address, scope)]
    context = frame(request, address, "bias", selects) | {"board": board}
    context |= standing_of(address, scope, beside_people=True)
    if not any(
        row.run and row.value.value is not None for row in board.rows
    ):  # of people alone there is nothing to say
        context["empty"] = empty.why_no_biases(scope)
    else:
        of_biases = _bias_context(address, sight, board)
        context |= _whole("bias", "_bias", address, scope, board, of_biases)
        context |= {name: of_biases["page"][name] for name in ("finding", "reason")}
        context["downloads"] += [(label, link, "") for label, link in of_biases["page"]["files"]]
    if not votes.is_large(address.benchmark):
        lost: list[str] = []
        made = singly("The lengths of answers and replies", lambda: _lengths(scope), lost.append)
        found, context["lengths"] = made or (lengths.LengthsBoard(), [])
        context["lost"] = lost
        parts = (("answers", "Lengths of answers", found.rows), ("replies", "Lengths of replies", found.replies))
        of_lengths = [table_files("lengths", address, rows=words, part=part) for part, words, rows in parts if rows]
        context["downloads"] = [*context.get("downloads", ()), *chain.from_iterable(of_lengths)]
    return context


def _lengths(scope: Scope) -> tuple[lengths.LengthsBoard, list[Table]]:
    found = lengths.lengths(scope)
    return found, lengths_page.tables_of(found)


def _bias_context(address: Address, sight: Sight, board: BiasBoard) -> dict[str, Any]:
    scope = sight.scope
    return {
        "page": bias_page.build_bias_page(address, board, kind=scope.kind),
        "kind": scope.kind,
        "rule": provenance.rule_of(scope),
        "counted": f"{number_of(len(board.runs), 'run')}, {board.labels:,} labels by people",
        "notes": _below(board.notes),
        "board": board,
    }


def _correlation(request: HttpRequest, address: Address) -> dict[str, Any]:
    scope = address.scope()
    board = correlated(scope, address.viewer)
    selects = [*pickers.sample_selects(address), *pickers.people_selects(address, scope)]
    context = frame(request, address, "correlation", selects) | {"board": board}
    lost: list[str] = []
    panels = singly("Two languages beside each other", lambda: languages_page.panels_of(address, scope), lost.append)
    context |= {"languages": panels or [], "lost": lost, "typed": outside.typed_boards()}
    if allowed(address.viewer, "write-bank"):
        context["form"] = OutsideForm(sent_by="personal", auto_id="typed-%s")
    parts = (
        ("pairs", "These rows", board.rows),
        ("ranks", "Ranks", board.ranks),
        ("repeats", "Repeats", board.repeats),
        ("languages", "Languages", context["languages"]),
    )
    context["downloads"] = []
    for part, words, shown in parts:
        if shown:
            context["downloads"] += table_files("correlation", address, rows=words, part=part)
    if board.rows or board.repeats:
        context["page"] = correlation_page.build_correlation_page(board)
        context["plot"] = address.plot("correlation")
    return context


def frozen(address: Address, snapshot: Snapshot, made: dict[str, Any]) -> SafeString:
    """A snapshot as its board's own template draws it, with what ``made`` it. Empty if it was made before boards were
    kept whole, or if what its page needs is gone.
    """
    if "board" not in snapshot.tables:
        return SafeString()
    try:
        scope = replace(board_scope(address, snapshot.what), staff=False)
    except BadScope:
        return SafeString()
    sight = Sight(scope, frozen=True)
    kinds: dict[str, tuple[type[Board[Any]], str, Callable[..., dict[str, Any]]]] = {
        "models": (makers_of(scope.kind).shape, "_scored.html", _scored_context),
        "judges": (JudgesBoard, "_judges.html", _judges_context),
        "bias": (BiasBoard, "_bias.html", _bias_context),
        "agreement": (AgreementBoard, "_agreement.html", _agreement_context),
    }
    shape, template, context = kinds[snapshot.what]
    if issubclass(shape, PairsBoard):
        template, context = "_models_table.html", _models_context
    board = whole_from_text(shape, snapshot.tables["board"])
    board = replace(board, key=snapshot.fingerprint, computed_at=snapshot.computed_at)
    if snapshot.what == "models":
        context = partial(context, known=known_models(row.model for row in board.rows))
    if "beside" in snapshot.tables:
        context = partial(context, beside=whole_from_text(PairsBoard, snapshot.tables["beside"]))
    if Run.objects.filter(pk__in=board.runs).count() < len(board.runs):
        return SafeString()
    drawn = context(address, sight, board) | {"address": address, "frozen": True, "made": made, "plot": ""}
    return mark_safe(render_to_string(f"leaderboard/{template}", drawn))  # noqa: S308 (by the template engine)


def _agreement(request: HttpRequest, address: Address) -> dict[str, Any]:
    sight = address.sight()
    scope, board = sight.scope, seen.agreement_of(sight.scope)
    selects = [
        *([agreement_page.metric_select(address)] if board.rows else []),
        *pickers.sample_selects(address),
        *pickers.people_selects(address, scope),
    ]
    context = frame(request, address, "agreement", selects) | {"board": board}
    context |= standing_of(address, scope, beside_people=True)
    if not any(row.value.value is not None for row in board.rows):
        context["empty"] = empty.why_no_agreement(scope)
    else:
        of_voters = _agreement_context(address, sight, board)
        context |= _whole("agreement", "_agreement", address, scope, board, of_voters)
    return context


def _agreement_context(address: Address, sight: Sight, board: AgreementBoard) -> dict[str, Any]:
    scope = sight.scope
    page = agreement_page.build_agreement_page(address, board, single=sees_labels(address.viewer))
    return {
        "page": page,
        "plot": address.plot("agreement"),
        "rule": provenance.rule_of(scope),
        "counted": agreement_page.counted(board),
        "notes": [
            *without_interval(row.value for row in board.rows if row.metric == page.metric),
        ],
        "board": board,
        "key": agreement_page.KEY if scope.names else agreement_page.KEY_OF_PSEUDONYMS,
    }


def _matrix(request: HttpRequest, address: Address) -> dict[str, Any]:
    source = source_of(address)
    board = matrix_page.board_of(address, source.scope)
    selects = [*pickers.verdict_selects(address, source), *matrix_page.selects(address, board)]
    context = frame(request, address, "models", selects)
    context["note"] = source.note
    context |= standing_of(address, source.scope)
    if not board.of:
        context["empty"] = empty.why_no_models(source.scope)
    else:
        context |= {
            "page": matrix_page.build_matrix_page(address, source.scope, board),
            "plot": address.plot("matrix"),
            "verdicts_by": provenance.source_of(source.scope, board, address.viewer),
        }
    return context


def _together(request: HttpRequest, address: Address) -> dict[str, Any]:
    scope = address.scope()
    run = standin.run_beside(scope)
    board = standin.together(scope, run) if run is not None else None
    judges = [standin_page.judge_select(scope, run)] if run is not None else []
    selects = [*judges, *pickers.sample_selects(address), *pickers.people_selects(address, scope)]
    context = frame(request, address, "models", selects)
    if board is not None and any(row.people.value is not None for row in board.rows):
        context["table"] = standin_page.together_table(address, scope, board)
        context |= {"together": board, "measure": scope.kind.shape.main.label}
        context["levels"] = table_or_words("By level", partial(standin_page.levels_table, scope, board))
        context["facts"] = provenance.runs_facts(board.runs, address.viewer)
        context["downloads"] = [
            *table_files("people-and-judge", address, run=str(run)),
            *table_files("people-and-judge", address, rows="Ranks", run=str(run), part="ranks"),
            *table_files("people-and-judge", address, rows="By level", run=str(run), part="levels"),
        ]
    return context


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a board. ``path``: its address below the benchmark's; ``parameters``: what its address may say;
    ``main``: what its template shows; ``title`` (before the benchmark's), ``says`` and the first of ``pictures`` that
    there is stand for the page elsewhere; ``alone``: whether it shows nothing of other benchmarks.
    """

    path: str
    parameters: Sequence[str]
    main: Callable[[HttpRequest, Address], dict[str, Any]]
    title: str
    says: str
    pictures: Sequence[str] = ()
    alone: bool = True


OF_RANKING = (*OF_VOTES, "elo", "sort", "depth", SHOW, *models_page.FILTERS)
OF_JUDGES = (*OF_VERDICTS, *JUDGED, "metric", "reference", "sort", "epsilon", SHOW)
OF_VOTERS = (*SAMPLES, *OF_PEOPLE, "metric", "who", "all", "page")
PAGES = {
    "models": Page(
        *("models", OF_RANKING, _models),
        title="Models on",
        says="Which models are better, with ranges of ranks and 95% intervals.",
        pictures=pictures.OF_MODELS,
    ),
    "matrix": Page(
        *("models/matrix", (*OF_VOTES, *matrix_page.BLOCKS), _matrix),
        title="Each model against each other on",
        says="How often each model wins against each other one.",
        pictures=pictures.OF_MODELS,
    ),
    "together": Page(
        *("models/together", OF_VOTES, _together),
        title="Models, by people and a judge together, on",
        says="What people say of models and what a judge says of many more items, as one number.",
        pictures=pictures.OF_MODELS,
    ),
    "judges": Page(
        *("judges", OF_JUDGES, _judges),
        title="Judges beside people on",
        says="How well judges decide as people do, beside one more person.",
        pictures=pictures.OF_JUDGES,
    ),
    "correlation": Page(
        *("correlation", OF_VERDICTS, _correlation),
        title="How rankings go together: people, judges and",
        says="How much the rankings of models by people and by judges are alike.",
        alone=False,
    ),
    "bias": Page(
        *("bias", OF_VERDICTS, _bias),
        title="What sways judges on",
        says="How far order, length and their own family sway judges, beside people.",
        pictures=pictures.OF_BIAS,
    ),
    "agreement": Page(
        *("agreement", OF_VOTERS, _agreement),
        title="Who agrees with whom on",
        says="How often every two people and judges decide alike.",
    ),
}


@requires("read-public")
def board(request: HttpRequest, name: str, what: str) -> HttpResponse:
    """A board with its frame. Its HTML is kept until something changes that it may show."""
    page = PAGES[what]

    def draw() -> HttpResponse:
        return _board(request, name, what)

    return answered(request, draw, takes=page.parameters, named=name, alone=page.alone, by_role=True)


def _board(request: HttpRequest, name: str, what: str) -> HttpResponse:
    page = PAGES[what]
    address = read_address(request, f"leaderboard:{what}", name, parameters=page.parameters)
    of_benchmark = address.benchmark.pk if page.alone else None
    key = (address.page, name, class_of(request.user), tuple(sorted(address.params.items())))
    key += hourly.state(address.benchmark.pk)

    def drawn() -> str:
        return render_to_string(f"leaderboard/{what}.html", page.main(request, address), request)

    def shared() -> pictures.Picture | None:
        return pictures.shared(address, page.pictures)

    try:
        html = until_changed(key, drawn, benchmark=of_benchmark)
        picture = until_changed((*key, "picture"), shared, benchmark=of_benchmark)
    except BadScope as error:
        return refused(request, address, error)
    context = {
        "section": "leaderboards",
        "heading": f"{what.capitalize()} on {address.benchmark.title}",
        "shared_as": f"{page.title} {address.benchmark.titled}",
        "says": f"{page.says} {picture.under}." if picture else page.says,
        "main": mark_safe(html),  # noqa: S308 (from templates)
    }
    if picture:
        context |= {"social": picture.png, "social_alt": picture.alt}
    return render(request, "leaderboard/board.html", context)
