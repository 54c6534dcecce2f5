"""Filters and tags available in every template."""

import re
from functools import lru_cache
from typing import Any, cast

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import get_language

import bank.text.rendering
from accounts.rules import Named, allowed
from bank.text.durations import lasting
from evalsite import templates
from stats import figures

register = template.Library()
for writes in (lasting, figures.dollars, figures.two, figures.whole_percent, figures.whole_percent_sign):
    register.filter(writes)


@register.filter
def written(value: float | None, how: str) -> str:
    """``{{ share.value|written:"percent" }}``: a number as a function of ``stats.figures`` writes it."""
    return str(getattr(figures, how)(value))


@register.filter
def ends(number: figures.WithEnds, how: str) -> str:
    """``{{ share|ends:"percent" }}``: both ends of its interval; empty where there is none."""
    return figures.ends(number, getattr(figures, how))


@register.filter
def in_brackets(number: figures.WithEnds, how: str) -> str:
    """The same as "[91.7, 96.2]", for pages in several languages."""
    return figures.in_brackets(number, getattr(figures, how))


@register.simple_tag(takes_context=True, name="allowed")
def allowed_for(context: Any, rule: str, benchmark: Named) -> bool:
    """``{% allowed "publish" benchmark as publishes %}``: whether the viewer has the rule for the benchmark."""
    return allowed(context["request"].user, rule, of=benchmark)


@register.simple_tag
@lru_cache(maxsize=512)
def icon(name: str, size: str = "") -> SafeString:
    """An icon of the sprite, drawn by reference."""
    return format_html(
        '<svg class="i {}" aria-hidden="true"><use href="{}#{}"/></svg>', size, static("icons.svg"), name
    )


@register.simple_tag
@lru_cache(maxsize=512)
def cap(key: str, name: str = "") -> SafeString:
    """The cap of a key beside what it does; ``name``: of what can be given another key."""
    bound = format_html(' data-cap="{}"', name) if name else ""
    return format_html('<kbd class="cap" aria-hidden="true"{}>{}</kbd>', bound, key)


class Fixed(template.Node):
    """What is the same on every page in one language, or wherever the variables that it names have these values: drawn
    once, and with no other variable of the page. Their values are plain data that can be hashed."""

    MOST = 256  # drawings kept

    def __init__(self, nodelist: template.NodeList, names: list[str]) -> None:
        self.nodelist = nodelist
        self.names = names
        self.drawn: dict[tuple[object, ...], SafeString] = {}

    def render(self, context: template.Context) -> SafeString:
        values = {name: context.get(name) for name in self.names}
        key = (get_language(), *values.values())
        drawn = self.drawn.get(key)
        if drawn is None:
            bare = template.Context(values)
            with bare.bind_template(cast(template.Template, context.template)):
                drawn = self.nodelist.render(bare)
            if len(self.drawn) >= self.MOST:
                self.drawn.clear()
            self.drawn[key] = drawn
        return drawn


class Tight(template.Node):
    """What it holds, as it is."""

    def __init__(self, nodelist: template.NodeList) -> None:
        self.nodelist = nodelist

    def render(self, context: template.Context) -> SafeString:
        return self.nodelist.render(context)


INDENTED = re.compile(r"\s*\n\s*")


@register.tag
def fixed(parser: template.base.Parser, token: template.base.Token) -> Fixed:
    """``{% fixed [variable ...] %}...{% endfixed %}``: see ``Fixed``. For the frame and each step of a work."""
    nodelist = parser.parse(("endfixed",))
    parser.delete_first_token()
    return Fixed(nodelist, token.split_contents()[1:])


@register.tag
def tight(parser: template.base.Parser, token: template.base.Token) -> Tight:
    """``{% tight %}...{% endtight %}``: the indentation of the template, which a table would repeat in each of its
    cells, is a space. Not around text whose lines count.
    """
    nodelist = parser.parse(("endtight",))
    parser.delete_first_token()
    for node in nodelist.get_nodes_by_type(template.base.TextNode):
        written = cast(template.base.TextNode, node)
        written.s = INDENTED.sub(" ", written.s)
    return Tight(nodelist)


CHIPS = {
    "approved": "line good",
    "draft": "line",
    "rejected": "bad",
    "fine": "line good",
    "revise": "warn",
    "reject": "bad",
}
TONES = {
    **dict.fromkeys(("done", "finished", "scored"), "good"),
    **dict.fromkeys(("paused", "waiting"), "warn"),
    "failed": "bad",
    **dict.fromkeys(("cancelled", "withdrawn", "closed", "draft"), "dim3"),
}


@register.filter
def chip(status: str) -> str:
    """The class of the chip that tells a sample's status or a review's verdict."""
    return CHIPS.get(status, "on")


@register.filter
def tone(state: str) -> str:
    """The class of the dot beside a state of a run, an upload, a submission or a campaign."""
    return TONES.get(state, "")


@register.filter
def markdown(text: str | None, links: str = "") -> SafeString:
    """Text that a model wrote, as safe HTML; see bank.text. ``|markdown:"links"`` for what staff write."""
    return bank.text.rendering.markdown(text or "", links=links == "links")


@register.filter
def formulas(text: str | None) -> SafeString:
    """Text that stays as it is but for its formulas; see bank.text."""
    return bank.text.rendering.formulas(text or "")


@register.simple_tag
def rebind(name: str, cap: str, what: str, also: str = "") -> SafeString:
    """A row of the list of keys: a button that takes another key, and what the key does."""
    beside = format_html(' <kbd class="cap">{}</kbd>', also) if also else ""
    return format_html(
        '<div><dt><button class="cap" type="button" data-rebind="{}" data-cap="{}" data-what="{}">{}</button>{}</dt>'
        "<dd>{}</dd></div>",
        *(name, name, what, cap, beside, what),
    )


@register.simple_tag
def script_words() -> SafeString:
    """The scripts' texts in the language of the page, as JSON that they read."""
    return json_script(templates.of_scripts(get_language() or "en"), "script-words")
