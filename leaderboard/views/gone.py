"""Addresses of pages that there are no more: 410 Gone, in words, with a link to where their numbers are now."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from accounts.rules import requires

# By the name of the route: what was there, where its numbers are, and the page to go to with the same arguments.
GONE = {
    "beside-today": (
        "A snapshot beside today, row by row",
        "What changed since, with its causes, is a page of its own.",
        "leaderboard:snapshot-changes",
    ),
    "corruptions": (
        "Corruptions on a picture",
        "docs/corruptions.md shows each of them with its parameters. A recipe that uses them is tried here:",
        "leaderboard:recipes",
    ),
    "outside-scores": (
        "Scores of other benchmarks",
        "They are typed, and their sources stand, below the correlations of each benchmark.",
        "leaderboard:index",
    ),
    "profile": (
        "Models beside each other, level by level",
        "The board of models has a column for each level, and a model's page shows its levels with their intervals.",
        "leaderboard:models",
    ),
    "runs-compare": (
        "Two runs beside each other",
        "Two judges compared, on a benchmark, shows them: how far they agree, what is set otherwise, where they part.",
        "leaderboard:index",
    ),
}


@requires("read-public")
def gone(request: HttpRequest, what: str, **arguments: Any) -> HttpResponse:
    title, words, page = GONE[what]
    context = {"title": title, "words": words, "link": reverse(page, kwargs=arguments)}
    return render(request, "errors/410.html", context, status=410)
