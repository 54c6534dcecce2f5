"""The rows behind a number: lists of items, and one item with everybody's verdict."""

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

import bank.criteria
from accounts.rules import requires
from bank.models import Item, Sample
from leaderboard import votes as verdicts
from leaderboard.boards import seen
from leaderboard.boards.base import cached
from leaderboard.boards.behind import answers_page as single_answers
from leaderboard.boards.behind import disagreements as apart
from leaderboard.boards.behind import item_page as one_item
from leaderboard.boards.behind import votes_page
from leaderboard.boards.behind.single_labels import sees_labels
from leaderboard.boards.behind.voters import MAJORITY, MATCHES, NoSuchVoter, listed, side_by_side, voter
from leaderboard.boards.behind.votes import ONLY, SIDES, VoteList, VoteTable, vote_table, votes_of
from leaderboard.boards.empty import why_no_models
from leaderboard.hidden import sealed_from
from leaderboard.kept.pages import prepared
from leaderboard.lookups import has_answered, known_models, names_of
from leaderboard.scope import SAMPLES, BadScope, Scope
from leaderboard.show import pickers, provenance
from leaderboard.show.pickers import pick
from leaderboard.view import OF_PEOPLE, OF_VOTES, RULES_IN_WORDS, Address, source_of
from leaderboard.views.frame import frame, of_benchmark, paged, table_files

OF_LIST = (*OF_VOTES, "model", "other", "outcome", "only", "q")


@requires("read-public")
@prepared()
@of_benchmark("votes", *OF_LIST, "page")
def votes(request: HttpRequest, address: Address) -> HttpResponse:
    """The items behind a model's number, and how each went."""
    source = source_of(address)
    board = _vote_table(source.scope, address)
    names = board.models
    model = address.params.get("model", "")
    vote_list = None
    context: dict[str, Any] = {
        "model": model,
        "known": model in names,
        "invented": known_models([model])[model].simulated,
        "note": source.note,
    }
    if model in names:
        vote_list = _votes_of(board, source.scope, address)
        with_people = bool(vote_list.table[list(SIDES)].to_numpy().any())
        page, query = paged(request, address, vote_list.table["sample"].unique().tolist(), votes_page.SAMPLES)
        groups = votes_page.pairs_by_sample(address, vote_list.table, list(page.object_list), board.judges)
        context |= {
            "found": vote_list,
            "segments": votes_page.outcome_segments(address, vote_list),
            "only": votes_page.only_segments(address, vote_list),
            "groups": groups,
            "judges": board.judges,
            "pictures": votes_page.has_pictures(groups),
            "with_people": with_people,
            "page": page,
            "query": query,
            "division": votes_page.division_of_wins(source.scope, vote_list),
            "rated": votes_page.rated(seen.models(source.scope), model),
            "pairs": len(vote_list.table),
            "columns": 2 + len(board.judges) + with_people,
            "words": address.params.get("q", ""),
            "outcomes": votes_page.outcomes_in_words(vote_list),
        }
    elif model:
        context["empty"] = why_no_models(source.scope)
    selects = [
        votes_page.model_select(address, names),
        *(votes_page.opponent_select(address, vote_list.others) if vote_list else []),
        pickers.source_select(address, source.scope),
        *pickers.run_select(source),
        *pickers.sample_selects(address),
    ]
    context |= frame(request, address, "models", selects)
    context["clear"] = address.link(**{key: None for key in address.params if key != "model"})
    context["back"] = address.to(
        "leaderboard:models", **{key: address.params.get(key) for key in OF_VOTES if key != "level"}
    )
    context["hidden"] = address.kept("outcome", "only", *OF_PEOPLE, "anchor")
    return render(request, "leaderboard/votes.html", context)


@requires("read-public")
@prepared()
@of_benchmark("answers", *OF_VOTES, "model", "mark", "sort", "page")
def answers(request: HttpRequest, address: Address) -> HttpResponse:
    """The answers behind a model's score: what each scored, and for staff whether it is right."""
    model = address.params.get("model", "")
    scope = source_of(address).scope
    if scope.kind.rows_page != "leaderboard:answers":
        raise BadScope("Behind boards of pairs are votes, not scores: open a number of such a board.")
    if model and not has_answered(scope.benchmark, model, request.user):
        raise Http404("no such model here")
    table, sealed = single_answers.of_model(scope, model, request.user)
    counts = {"right": int((table["right"] == True).sum()), "wrong": int((table["right"] == False).sum())}  # noqa: E712
    mark = address.params.get("mark", "")
    if mark in counts:
        table = table[table["right"] == (mark == "right")]
    if address.params.get("sort") in ("value", "-value"):
        table = table.sort_values("value", ascending=address.params["sort"] == "value", kind="stable")
    page, query = paged(request, address, table)
    context = frame(request, address, "models", pickers.sample_selects(address)) | {
        "model": model,
        "value_head": "" if scope.kind.keyed else scope.kind.shape.main.label,
        "n": len(table),
        "division": votes_page.division_of_answers(scope, seen.models(scope), model),
        "sealed": sealed,
        "marks": counts if any(counts.values()) else {},
        "segments": votes_page.mark_segments(address, counts),
        "rows": votes_page.answer_rows(address, page.object_list, model, scope.kind),
        "sort": address.params.get("sort", ""),
        "by_value": address.link(sort="value" if address.params.get("sort") == "-value" else "-value", page=None),
        "page": page,
        "query": query,
        "back": address.to("leaderboard:models", **{key: address.params.get(key) for key in OF_VOTES}),
    }
    context["hidden"] = address.kept("model", *(name for name in OF_VOTES if name not in SAMPLES))
    context["clear"] = address.link(**dict.fromkeys((*SAMPLES, "mark", "sort", "page")))
    context["pictures"] = votes_page.has_pictures(context["rows"])
    return render(request, "leaderboard/answers.html", context)


def _vote_table(scope: Scope, address: Address) -> VoteTable:
    model = address.params.get("model", "")
    return cached(scope, f"votes of {model}", lambda scope: vote_table(scope, model))


def _votes_of(board: VoteTable, scope: Scope, address: Address) -> VoteList:
    outcome, only = address.params.get("outcome", ""), address.params.get("only", "")
    return votes_of(
        board,
        scope,
        other=address.params.get("other", ""),
        outcome=outcome if outcome in votes_page.OUTCOME_WORDS else "",
        only=only if only in ONLY else "",
        words=address.params.get("q", ""),
    )


@requires("read-public")
@prepared()
@of_benchmark("compare", *SAMPLES, *OF_PEOPLE, "kind", "a", "b", "only", "match", "page")
def compare(request: HttpRequest, address: Address) -> HttpResponse:
    """Two voters on the items that both gave a verdict on: the majority, a judge's run, an annotator."""
    scope = address.scope()
    try:
        first, second = (voter(scope, address.params.get(side, ""), request.user) for side in ("a", "b"))
    except NoSuchVoter:
        raise Http404("no such voter") from None
    table = side_by_side(first, second)
    if decided := address.params.get("only") == "decided":
        table = table[table["first"].isin(("first", "second"))]
    every, table = table, listed(scope, table)
    matches = MATCHES.get(address.params.get("match", ""), MATCHES[""])
    page, query = paged(request, address, table[matches(table)])
    rows = votes_page.compared_rows(address, page.object_list)
    context = frame(request, address, "agreement", pickers.sample_selects(address)) | {
        "first": first,
        "second": second,
        "n": len(table),
        "division": votes_page.division(scope, every, decided=decided),
        "segments": votes_page.compared_segments(address, table, reads_options=scope.kind.rotates),
        "sealed": bool(sealed_from(scope)),
        "disagreements": _said_about(address, first.key, second.key),
        "rows": rows,
        "page": page,
        "query": query,
        "hidden": address.kept("kind", "a", "b", "only", "match", *OF_PEOPLE),
        "clear": address.link(**dict.fromkeys((*SAMPLES, "match", "page"))),
    }
    return render(request, "leaderboard/compare.html", context)


def _said_about(address: Address, first: str, second: str) -> str:
    """Where what people wrote is beside a judge's disagreements with them, for those who may read it."""
    if first != MAJORITY or not second.startswith("run-") or not sees_labels(address.viewer):
        return ""
    return address.to("leaderboard:disagreements", **address.view(), run=second.removeprefix("run-"))


@requires("read-labels")
@prepared()
@of_benchmark("disagreements", *SAMPLES, *OF_PEOPLE, "kind", "run")
def disagreements(request: HttpRequest, address: Address) -> HttpResponse:
    """Where a judge's run decides otherwise than most people do, grouped by what people ticked and wrote there."""
    groups = verdicts.judge_groups(replace(address.scope(), run=None))
    run = address.params.setdefault("run", str(groups[0][-1].pk) if groups else "")
    rows = apart.disagreements(address.scope(), request.user)
    judges = {str(runs[-1].pk): f"{runs[-1].judge}, run {runs[-1].pk}" for runs in groups}
    selects = [pick("run", "Judge", judges, run, on=True), *pickers.sample_selects(address)]
    context = frame(request, address, "judges", selects) | {
        "groups": votes_page.disagreement_groups(address, rows),
        "beside": address.to("leaderboard:compare", **address.view(), a=MAJORITY, b=f"run-{run}"),
        "downloads": table_files("disagreements", address) if rows else [],
    }
    return render(request, "leaderboard/disagreements.html", context)


@requires("read-public")
@prepared()
@of_benchmark("item", *OF_LIST)
def item(request: HttpRequest, address: Address, pk: int) -> HttpResponse:
    """One item: picture, instruction, its answers, and everybody's verdict, as far as the viewer may see it."""
    samples = Sample.objects.verdicts_visible_to(request.user).filter(benchmark=address.benchmark)
    items = Item.objects.filter(sample__in=samples)
    pair = get_object_or_404(items.select_related("sample__capability").prefetch_related("sample__images"), pk=pk)
    names = names_of(pair, request.user)
    scored = pair.kind != Item.Kind.PAIR
    rule = address.params.get("majority", "") or address.benchmark.majority
    people = one_item.people_on(pair, request.user, rule=rule if rule in RULES_IN_WORDS else "plurality")
    judges = one_item.judges_on([pair], request.user)[pair.pk]
    if not (judges or people.votes or items.visible_to(request.user).filter(pk=pk).exists()):
        raise Http404("names a model that waits for its release")
    context = {
        "section": "leaderboards",
        "address": address,
        "item": pair,
        "sample": pair.sample,
        "criteria": bank.criteria.for_public(samples=[pair.sample], viewer=request.user).get(pair.sample_id, []),
        "names": names,
        "title": " against ".join(names) if len(names) < 3 else f"{len(names)} answers",
        "scored": scored,
        "answers": pair.readable_responses(request.user),
        "people": people,
        "people_verdict": votes_page.sentence(people.verdict, names) if people.verdict and not people.split else "",
        "people_counts": votes_page.counts_in_words(people, names),
        "adjudicated": votes_page.verdict_words(people.adjudicated, names) if people.adjudicated else "",
        "lines": votes_page.people_lines(people, names),
        "judges": votes_page.judge_lines(
            judges,
            names,
            people=None if scored else people.compared,
            run_link=lambda run: provenance.run_link(request.user, run),
        ),
        **_neighbours(address, pair.pk),
    }
    return render(request, "leaderboard/item.html", context)


def _neighbours(address: Address, pk: int) -> dict[str, str]:
    """Where the list that the page was opened from goes on, and the way back to it."""
    if "model" not in address.params:
        return {"back": "", "before": "", "after": ""}
    back = address.to("leaderboard:votes", **address.params)
    try:
        scope = source_of(address).scope
        board = _vote_table(scope, address)
    except BadScope:
        return {"back": back, "before": "", "after": ""}
    ids = _votes_of(board, scope, address).table["item"].tolist()
    place = ids.index(pk) if pk in ids else None
    before = ids[place - 1] if place else None
    after = ids[place + 1] if place is not None and place + 1 < len(ids) else None
    return {
        "back": back,
        "place": f"{place + 1} of {len(ids)}" if place is not None else "",
        "before": address.to("leaderboard:item", before, **address.params) if before else "",
        "after": address.to("leaderboard:item", after, **address.params) if after else "",
    }
