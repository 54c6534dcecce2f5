"""The components that pages are made of, each in light and dark with the markup to write: a page for those who write
pages, where DEBUG is on."""

from dataclasses import dataclass

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import Context, Engine

from accounts.rules import requires

WORDS = {
    "columns": "where things stand: columns, a stack in each",
    "panel": "a header, parts with the panel's margin, a foot",
    "facts": "terms with what they are; figures under their names",
    "chips": "a word in a frame; a state with its dot",
    "buttons": "one solid action a page",
    "form": "fields with their hints, ticks",
    "filters": "a switch, a select, a search box in one row",
    "table": "n a figure, c centred, wrap a sentence, heat with q0 to q4; rows that group, and to compare with",
    "list": "rows of a list with hair lines",
    "notice": "what the site says of a page",
    "steps": "done, now, later",
    "fold": "says what it holds",
    "plot": "marks by class, whichever plot they stand in, and their keys",
    "reply": "text of models and people",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A component as it looks, and what is written for it."""

    name: str
    words: str
    drawn: str
    markup: str

    @classmethod
    def of(cls, name: str, words: str) -> "Part":
        template = Engine.get_default().get_template(f"styleguide/{name}.html")
        return cls(name, words, template.render(Context()), template.source)


@requires("read-public")
def styleguide(request: HttpRequest) -> HttpResponse:
    if not settings.DEBUG:
        raise Http404
    return render(request, "styleguide.html", {"parts": [Part.of(*part) for part in WORDS.items()]})
