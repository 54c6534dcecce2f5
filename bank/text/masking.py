"""Hides models' names in texts from annotators."""

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

HIDDEN = "model name hidden"
PLACEHOLDER = f"[{HIDDEN}]"
# Stands for a hidden name until the HTML is made; a private character, removed from any text that has it.
MARK = "\ue000"

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
    """The names to hide: for each first word (lower-case) the patterns that may follow it, longest first."""

    def __init__(self) -> None:
        self.anywhere: dict[str, list[re.Pattern[str]]] = defaultdict(list)
        self.speaking_of_oneself: dict[str, list[re.Pattern[str]]] = defaultdict(list)
        for word in KNOWN:
            self._add(self.anywhere, word, word + _VERSION, re.I)
        self._add(self.anywhere, "claude", _CLAUDE, re.I)

    def add_name(self, name: str) -> None:
        """A model's full name, its beginning up to the version, and its first word.

        "gpt-4-1106-vision-preview" hides "GPT-4" and "gpt 4 vision"; "Wren 3B" hides "wren-3b", but "Wren" alone only
        where the text speaks about itself.
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
        """A family's name, or a name's first word: everywhere if its capitals mark it as a name, else by context."""
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
        """Where names occur in the text, in order, without overlaps."""
        spans: list[tuple[int, int]] = []
        for word in _WORD.finditer(text):
            start = word.start()
            if spans and start < spans[-1][1]:
                continue
            if end := self._end_of_name(text, start, word[0].lower()):
                spans.append((start, end))
        return spans

    def _end_of_name(self, text: str, start: int, word: str) -> int:
        """Where a name ends that begins here with this word; 0 if none does."""
        end = max((m.end() for p in self.anywhere.get(word, ()) if (m := p.match(text, start))), default=0)
        for pattern in () if end else self.speaking_of_oneself.get(word, ()):
            match = pattern.match(text, start)
            if match and _speaks_of_itself(text, start, match.end()):
                end = max(end, match.end())
        return end


_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+|(?<![^\W_])\d+[^\W\d_]+")


def _first_word(token: str) -> str:
    """The word that ``_WORD`` finds at the start of the token: its letters up to the first digit."""
    match = _WORD.match(token)
    return match[0].lower() if match else ""


def _flexible(token: str) -> str:
    """A token as people write it: separators between letters and digits, the v of a version added or left out."""
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
    """The names to hide for these models, each ``(name, family, organisation)``."""
    names = Names()
    for name, family, organisation in models:
        names.add_name(name)
        if family:
            names.add_word(family) if re.fullmatch(r"[^\W_]+", family) else names.add_name(family)
        if organisation:
            names.add_organisation(organisation)
    return names


def mask(text: str, names: Names | Iterable[str], *, placeholder: str = PLACEHOLDER) -> str:
    """The text with the names of models, families and makers replaced.

    Full names and their beginnings with a version ("GPT-4", "LLaVA 1.5") are hidden in any case and with any
    separators; so are words that are only ever a model's name. Ordinary words ("Gemini", "Wren", "Google") are hidden
    only where the text speaks of its author ("I am Gemini", "trained by Google"), so that an answer about birds keeps
    its wrens. Works on the source, before Markdown.
    """
    if not isinstance(names, Names):
        names = names_of(tuple((name, "", "") for name in names))
    text = text.replace(MARK, "")
    parts, last = [], 0
    for start, end in names.spans(text):
        parts += [text[last:start], placeholder]
        last = end
    return "".join([*parts, text[last:]])
