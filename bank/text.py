"""Text that models and people wrote, made fit to show: Markdown with code and LaTeX, and models' names hidden.

Nothing that a text holds is executed, fetched or followed: HTML is shown as text, pictures become their words, links
are inert in answers. The result of ``markdown`` passes through an allow-list of tags as a second wall.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
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

LONGEST = 40_000  # characters; a longer text is shown as it is, unformatted
LONGEST_TEX = 2_000  # characters between two delimiters: keeps the search for the closing one linear
LONGEST_TEX_LINES = 60

HIDDEN = "model name hidden"
PLACEHOLDER = f"[{HIDDEN}]"
MARK = (
    "\ue000"  # stands for a hidden name until the HTML is made; a private character, removed from any text that has it
)
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

    ``links`` makes links to http and https pages live: for what staff write, never for answers. ``masked`` says that
    the text comes from ``mask(..., placeholder=MARK)``. ``pictures``: what ``![words](address)`` shows, by address;
    never for answers.
    """
    shown = tuple(sorted((pictures or {}).items()))
    return _markdown(text if masked else text.replace(MARK, ""), links, shown)


def raw(text: str, *, masked: bool = False) -> SafeString:
    """The text as it is, escaped, with hidden names marked."""
    plain = escape(text if masked else text.replace(MARK, ""))
    return mark_safe(plain.replace(MARK, _MASK_HTML))  # noqa: S308 (escaped one line above)


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
    """Hidden names between tags become the chip, inside a tag the bare words."""
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


def _tame(state: StateCore) -> None:
    """Headings two steps down, below the page's own; alignment of cells as a class; links to a new tab."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        elif token.type in ("th_open", "td_open"):
            style = str(token.attrs.pop("style", ""))
            if style.endswith(("right", "center")):
                token.attrs["class"] = "n" if style.endswith("right") else "c"
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
    """Where the closing delimiter stands, unescaped, not farther than a formula is long; -1 where there is none."""
    end = min(end, start + LONGEST_TEX)
    at = source.find(closing, start, end)
    while at > start and source[at - 1] == "\\":
        at = source.find(closing, at + 1, end)
    return at


def _is_money(source: str, content: str, after: int) -> bool:
    """Whether the text between two dollar signs is no formula: "$5 and $10", "5$ or 6$"."""
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
    """A formula that starts a line and ends one, within one list item or quotation."""
    start = state.bMarks[first] + state.tShift[first]
    opening = state.src[start : start + 2]
    if opening not in ("$$", "\\[") or state.is_code_block(first):
        return False
    closing = _CLOSING[opening]
    lines = []
    for line in range(first, min(last, first + LONGEST_TEX_LINES)):
        if line > first and not state.isEmpty(line) and state.sCount[line] < state.blkIndent:
            return False
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
        text = text[2:] if line == first else text
        head, found, tail = text.partition(closing)
        lines.append(head)
        if found:
            if tail.strip(" \t.,;") or not "".join(lines).strip():
                return False
            break
    else:
        return False
    if not silent:
        token = state.push("tex", "div", 0)
        token.block = True
        token.content = "\n".join(filter(str.strip, lines)).strip() + tail.strip(" \t;")
        token.info = "display"
        token.map = [first, line + 1]
        state.line = line + 1
    return True


_INERT = _build(links=False)
_LIVE = _build(links=True)

# ---- Names

# Names of models and makers that mean nothing else: hidden wherever they stand, whether or not they are in the bank.
KNOWN = frozenset(
    "anthropic chatglm chatgpt cogagent cogvlm deepmind deepseek gpt idefics instructblip internlm internvl llava "
    "minicpm minigpt mixtral mplug openai openflamingo qwen vicuna visualglm xcomposer".split()
)
_SEPARATOR = r"[-_./: ]{0,2}"
_VERSION = (
    r"(?:[-_ ]?v?\d+(?:\.\d+)*[A-Za-z]{0,2}\b)?(?:[-_](?!\s)[A-Za-z0-9.]*[A-Za-z0-9])*(?:\([a-z]+\))?"
    r"(?:\s(?-i:Chat|Instruct|Mini|Omni|Plus|Preview|Pro|Turbo|Vision)\b)*"
)
# A first name too: Claude Monet and Claude Debussy stay.
_CLAUDES = r"(?-i:Opus|Sonnet|Haiku|Instant)\b"
_CLAUDE = rf"(?<!-)claude(?!\s+(?!{_CLAUDES})(?-i:[A-Z])[a-z]){_VERSION}(?:\s{_CLAUDES})?"
# Words that speak of oneself: only beside them is an ordinary word ("Gemini", "Wren", "Google") taken for a name.
_I_AM = re.compile(
    r"(?:\bI am|\bI[’']m|\bmy name is|\bcall me)\s+(?:the\s+|an?\s+)?"
    r"(?:(?:(?:AI|large|language|vision|model|assistant|chatbot)\s+)+(?:called\s+|named\s+)?)?[\"“*_]*$",
    re.I,
)
_AS = re.compile(r"\bas\s+(?:an?\s+|the\s+)?[\"“*_]*$", re.I)
_THEN_I = re.compile(r"[\"”*_]*(?:,?\s+(?:I|my)\b|,\s+(?:an?|the|your)\b|\s+(?:AI|model|assistant|chatbot)\b)")
_THEN_MODEL = re.compile(r"[\"”*_]*\s+(?:here\b|AI\b|(?:vision |language )*(?:model|assistant|chatbot)s?\b)")
_MADE_BY = re.compile(
    r"(?:\bI\b|\bmy\b|\bme\b|\bmodel\b|\bassistant\b|\bAI\b)[^.!?\n]{0,80}?"
    r"\b(?:trained|developed|created|built|made|designed|from|by|at)\b(?:\s+(?:by|at|from|the|team|researchers|people))*\s+$",
    re.I,
)


class Names:
    """What to hide: for each first word (lower-case) the patterns that may follow from it, longest first."""

    def __init__(self) -> None:
        self.anywhere: dict[str, list[re.Pattern[str]]] = defaultdict(list)
        self.speaking_of_oneself: dict[str, list[re.Pattern[str]]] = defaultdict(list)
        for word in KNOWN:
            self._add(self.anywhere, word, word + _VERSION, re.I)
        self._add(self.anywhere, "claude", _CLAUDE, re.I)

    def add_name(self, name: str) -> None:
        """A model's name in full, its beginning up to the version, and its first word.

        "gpt-4-1106-vision-preview" hides "GPT-4" and "gpt 4 vision"; "Wren 3B" hides "wren-3b" but of "Wren" alone only
        what speaks of itself.
        """
        tokens = re.findall(r"[^\W_]+(?:\.\d+)*", name)
        if not tokens:
            return
        pieces = [_flexible(token) for token in tokens]
        self._add(self.anywhere, _first_word(tokens[0]), _SEPARATOR.join(pieces), re.I, sure=len(tokens) > 1)
        for count in range(len(tokens) - 1, 0, -1):
            if any(character.isdigit() for character in "".join(tokens[:count])):
                self._add(self.anywhere, _first_word(tokens[0]), _SEPARATOR.join(pieces[:count]), re.I)
            elif count > 1 and re.match(r"[^\W_]+[-_]", name):
                self._add(self.anywhere, _first_word(tokens[0]), r"[-_]".join(pieces[:count]) + _VERSION, re.I)
                titled = r"[-_ ]".join(piece[:1].upper() + piece[1:] for piece in pieces[:count])
                self._add(self.anywhere, _first_word(tokens[0]), titled + _VERSION, 0)
        self.add_word(tokens[0])

    def add_word(self, word: str) -> None:
        """A family's name, or a name's first word: anywhere where its capitals make it a name, else by context."""
        stem = _flexible(word)
        if re.search(r"\d|[a-z][A-Z]|[A-Z]{2,}[a-z]|^[A-Z]{3,}$", word) and len(word) > 2:
            self._add(self.anywhere, _first_word(word), stem + _VERSION, re.I if re.search(r"\d", word) else 0)
        elif len(word) > 2 and word.lower() not in KNOWN:
            self._add(self.speaking_of_oneself, _first_word(word), stem, 0)
            self._add(self.speaking_of_oneself, _first_word(word), stem.capitalize(), 0)

    def add_organisation(self, name: str) -> None:
        words = re.findall(r"[^\W_]+", name)
        if words:
            self._add(self.speaking_of_oneself, _first_word(words[0]), r"[-\s]+".join(map(re.escape, words)), re.I)

    def _add(
        self, table: dict[str, list[re.Pattern[str]]], word: str, pattern: str, flags: int, *, sure: bool = True
    ) -> None:
        if not word:
            return
        if not sure and not re.search(r"\d", pattern):  # one word without a version: decided by add_word
            return
        table[word].append(re.compile(rf"(?:{pattern})(?!\w)", flags))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the names stand in the text, in order, not overlapping."""
        found: list[tuple[int, int]] = []
        for word in _WORD.finditer(text):
            start = word.start()
            if found and start < found[-1][1]:
                continue
            key = word[0].lower()
            end = max((m.end() for p in self.anywhere.get(key, ()) if (m := p.match(text, start))), default=0)
            for pattern in () if end else self.speaking_of_oneself.get(key, ()):
                match = pattern.match(text, start)
                if match and _speaks_of_itself(text, start, match.end()):
                    end = max(end, match.end())
            if end:
                found.append((start, end))
        return found


_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+|(?<![^\W_])\d+[^\W\d_]+")


def _first_word(token: str) -> str:
    """What ``_WORD`` finds where the token begins: its letters up to the first digit."""
    found = _WORD.match(token)
    return found[0].lower() if found else ""


def _flexible(token: str) -> str:
    """A token as people write it: separators between letters and digits, the v of a version left out or added."""
    chunks = re.findall(r"[^\W\d_]+|\d+", token)
    if len(chunks) > 1 and chunks[0].lower() == "v":
        return r"v?" + r"\.?".join(chunks[1:])
    pattern = chunks[0] if chunks else ""
    for before, chunk in pairwise(chunks):
        joint = r"\." if before.isdigit() and chunk.isdigit() else r"[- ]?"
        pattern += joint + chunk
    return pattern


def _speaks_of_itself(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 120) : start], text[end : end + 40]
    if _I_AM.search(before) or _THEN_MODEL.match(after) or _MADE_BY.search(before):
        return True
    return bool(_AS.search(before) and _THEN_I.match(after))


@lru_cache(maxsize=8)
def names_of(models: tuple[tuple[str, str, str], ...]) -> Names:
    """What to hide for these models, each ``(name, family, organisation)``."""
    names = Names()
    for name, family, organisation in models:
        names.add_name(name)
        if family:
            names.add_word(family) if re.fullmatch(r"[^\W_]+", family) else names.add_name(family)
        if organisation:
            names.add_organisation(organisation)
    return names


def mask(text: str, names: Names | Iterable[str], *, placeholder: str = PLACEHOLDER) -> str:
    """The text with the names of models, families and makers that it mentions replaced.

    Names in full and their beginnings with a version ("GPT-4", "LLaVA 1.5") are hidden in any case of letters and with
    any separators; so are words that are nothing but a model's name. Ordinary words ("Gemini", "Wren", "Google") are
    hidden only where the text speaks of its author ("I am Gemini", "trained by Google"), so that an answer about birds
    keeps its wrens. Works on the source, before Markdown.
    """
    if not isinstance(names, Names):
        names = names_of(tuple((name, "", "") for name in names))
    text = text.replace(MARK, "")
    parts, last = [], 0
    for start, end in names.spans(text):
        parts += [text[last:start], placeholder]
        last = end
    return "".join([*parts, text[last:]])
