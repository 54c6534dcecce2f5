"""Renders text by models and people for display: Markdown with code and LaTeX.

Nothing in a text is executed, fetched or followed: HTML is shown as text, pictures become their alternative text, links
in answers are inert. The result of ``markdown`` also passes through an allow-list of tags.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bank.text.masking import HIDDEN, MARK

LONGEST = 40_000  # characters; a longer text is shown as it is, unformatted
LONGEST_TEX = 2_000  # characters between two delimiters: keeps the search for the closing one linear
LONGEST_TEX_LINES = 60

_MASK_HTML = f'<span class="mask">{HIDDEN}</span>'

TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "span", "div", "a"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"a": {"href", "target"}, "ol": {"start"}, "span": {"title", "data-display"}, "div": {"data-display"}}
CLASSES = {
    "span": {"tex", "url", "pictext"},
    "div": {"tex", "scroll"},
    "th": {"n", "c"},
    "td": {"n", "c"},
}


class Picture(NamedTuple):
    """A picture of this site that a text may show."""

    address: str
    width: int
    height: int


def markdown(
    text: str, *, links: bool = False, masked: bool = False, pictures: Mapping[str, Picture] | None = None
) -> SafeString:
    """The text as safe HTML, headings from h3 on. LaTeX stays its source in ``.tex``, for static/js/tex.js to draw.

    ``links`` makes http and https links live: for what staff write, never for answers. ``masked`` says that the text
    comes from ``bank.text.masking.mask(..., placeholder=MARK)``. ``pictures``: what ``![words](address)`` shows, by
    address; never for answers.
    """
    shown = tuple(sorted((pictures or {}).items()))
    return _markdown(text if masked else text.replace(MARK, ""), links, shown)


def raw(text: str, *, masked: bool = False) -> SafeString:
    """The text as it is, escaped, with hidden names marked."""
    plain = escape(text if masked else text.replace(MARK, ""))
    return mark_safe(plain.replace(MARK, _MASK_HTML))  # noqa: S308 (escaped one line above)


def formulas(text: str) -> SafeString:
    """The text as it is, escaped, except its LaTeX, which goes into ``.tex``: for options, where a star is a star."""
    html = nh3.clean(_PLAIN.renderInline(text.replace(MARK, "")), tags={"span"}, attributes={}, allowed_classes=CLASSES)
    return mark_safe(html)  # noqa: S308 (nh3 cleaned it)


# Answers never change and are shown to several annotators: rendered once per process.
@lru_cache(maxsize=1024)
def _markdown(text: str, links: bool, pictures: tuple[tuple[str, Picture], ...]) -> SafeString:
    if len(text) > LONGEST:
        return mark_safe(f'<pre class="plain">{raw(text, masked=True)}</pre>')  # noqa: S308 (raw escapes)
    html = nh3.clean(
        (_LIVE if links else _INERT).render(text, {"pictures": dict(pictures)}),
        tags=TAGS | {"img"} if pictures else TAGS,
        attributes=ATTRIBUTES | {"img": {"src", "alt", "width", "height", "loading"}} if pictures else ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(_shown_marks(html))  # noqa: S308 (nh3 cleaned it)


def _shown_marks(html: str) -> str:
    """Hidden names become the chip between tags, and plain words inside a tag."""
    if MARK not in html:
        return html
    return re.sub(
        rf"(<[^<>]*>)|{MARK}",
        lambda found: found[1].replace(MARK, HIDDEN) if found[1] else _MASK_HTML,
        html,
    )


# ---- Markdown


def _build(*, links: bool) -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False, "breaks": True})
    md.enable(["table", "strikethrough"])
    # Indented lines are rarely code in an answer, and a link definition would vanish from sight.
    md.disable(["code", "reference"])
    md.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]
    md.inline.ruler.before("escape", "tex", _tex_inline)
    md.block.ruler.before("fence", "tex_block", _tex_block, {"alt": ["paragraph", "blockquote", "list"]})
    md.core.ruler.push("tame", _tame)
    for name, rule in _RENDER.items():
        md.add_render_rule(name, rule)
    if not links:
        md.add_render_rule("link_open", _inert_link_open)
        md.add_render_rule("link_close", lambda *_: "</span>")
    return md


def _tame_headings(tokens: Sequence[Token]) -> None:
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    levels = sorted({token.tag for token in headings})
    for token in headings:
        token.tag = f"h{min(6, levels.index(token.tag) + 3)}"


def _tame_tables(tokens: Sequence[Token]) -> None:
    for before, inline, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.type == "th_open" and not inline.content.strip():
            before.tag = after.tag = "td"
    for token in tokens:
        if token.type in ("th_open", "td_open"):
            style = str(token.attrs.pop("style", ""))
            if style.endswith(("right", "center")):
                token.attrs["class"] = "n" if style.endswith("right") else "c"


def _tame(state: StateCore) -> None:
    """Headings below the page's own, none left out between them; cell alignment as a class; an empty head is no head;
    links open a new tab.
    """
    _tame_headings(state.tokens)
    _tame_tables(state.tokens)
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs.pop("title", None)
                child.attrs["target"] = "_blank"


def _inert_link_open(self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    address = str(tokens[index].attrs.get("href", "")).replace("%EE%80%80", "…")
    return f'<span class="url" title="{escape(address)}">'


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    words = self.renderInlineAsText(tokens[index].children or [], options, env)
    if picture := env.get("pictures", {}).get(str(tokens[index].attrs.get("src", ""))):
        size = f'width="{picture.width}" height="{picture.height}"'
        return f'<img src="{escape(picture.address)}" alt="{escape(words)}" {size} loading="lazy">'
    return f'<span class="pictext">[picture{": " if words else ""}{escape(words)}]</span>'


def _tex(self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    token = tokens[index]
    display = " data-display" if token.info else ""
    line = "\n" if token.block else ""
    return f'<{token.tag} class="tex"{display}>{escape(token.content)}</{token.tag}>{line}'


_RENDER = {
    "image": _image,
    "tex": _tex,
    "table_open": lambda *_: '<div class="scroll"><table>\n',
    "table_close": lambda *_: "</table></div>\n",
}

# ---- LaTeX: $x$, $$x$$, \(x\), \[x\]

_CLOSING = {"$$": "$$", "\\(": "\\)", "\\[": "\\]", "$": "$"}
_SURELY_TEX = re.compile(r"[\\^_={}+*/<>]")


def _opening(source: str, at: int) -> str:
    two = source[at : at + 2]
    return two if two in _CLOSING else "$" if two[:1] == "$" else ""


def _find_closing(source: str, closing: str, start: int, end: int) -> int:
    """The position of the closing delimiter, unescaped, within the length of a formula; -1 if there is none."""
    end = min(end, start + LONGEST_TEX)
    at = source.find(closing, start, end)
    while at > start and source[at - 1] == "\\":
        at = source.find(closing, at + 1, end)
    return at


def _is_money(source: str, content: str, after: int) -> bool:
    """Whether the text between two dollar signs is not a formula: "$5 and $10", "5$ or 6$"."""
    if content[0].isspace() or content[-1].isspace() or source[after : after + 1].isdigit():
        return True
    return content[0].isdigit() and not _SURELY_TEX.search(content)


def _tex_inline(state: StateInline, silent: bool) -> bool:
    source, at = state.src, state.pos
    if source[at] not in "$\\" or not (opening := _opening(source, at)):
        return False
    start = at + len(opening)
    closing = _CLOSING[opening]
    end = _find_closing(source, closing, start, state.posMax)
    if end < 0 or not (content := source[start:end]).strip():
        return False
    if opening == "$" and _is_money(source, content, end + 1):
        return False
    if not silent:
        token = state.push("tex", "span", 0)
        token.content = content.strip()
        token.info = "display" if opening in ("$$", "\\[") else ""
    state.pos = end + len(closing)
    return True


def _tex_block(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A formula that starts one line and ends another, within one list item or quotation."""
    start = state.bMarks[first] + state.tShift[first]
    opening = state.src[start : start + 2]
    if opening not in ("$$", "\\[") or state.is_code_block(first):
        return False
    formula = _formula(state, first, last, _CLOSING[opening])
    if formula is not None and not silent:
        _push_formula(state, *formula, first)
    return formula is not None


def _formula(state: StateBlock, first: int, last: int, closing: str) -> tuple[str, int] | None:
    """The TeX up to its end, and the line after it."""
    lines = []
    for line in range(first, min(last, first + LONGEST_TEX_LINES)):
        if line > first and _leaves_block(state, line):
            return None
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
        text = text[2:] if line == first else text
        head, found, tail = text.partition(closing)
        lines.append(head)
        if found:
            if tail.strip(" \t.,;") or not "".join(lines).strip():
                return None
            return "\n".join(filter(str.strip, lines)).strip() + tail.strip(" \t;"), line + 1
    return None


def _leaves_block(state: StateBlock, line: int) -> bool:
    """Whether a line lies outside the list item or quotation."""
    return not state.isEmpty(line) and state.sCount[line] < state.blkIndent


def _push_formula(state: StateBlock, content: str, after: int, first: int) -> None:
    token = state.push("tex", "div", 0)
    token.block = True
    token.content = content
    token.info = "display"
    token.map = [first, after]
    state.line = after


_INERT = _build(links=False)
_LIVE = _build(links=True)

# Formulas and nothing else.
_PLAIN = MarkdownIt("zero")
_PLAIN.inline.ruler.before("escape", "tex", _tex_inline)
_PLAIN.add_render_rule("tex", _tex)
