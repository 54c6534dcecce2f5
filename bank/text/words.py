"""Texts cut short, and tables of words, kept as text beside the code that reads them."""

from pathlib import Path


def cut(text: str, most: int) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= most else f"{text[:most]} …"


def words_of(module: str, table: str) -> dict[str, tuple[str, ...]]:
    """The words behind each word of a table beside a module: ``word: other, other`` a line; # begins a remark."""
    lines = Path(module).with_name(f"{table}.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":", 1) for line in lines if line and not line.startswith("#"))
    return {word.strip(): tuple(each.strip() for each in others.split(",")) for word, others in pairs}


def meanings_of(module: str, table: str) -> dict[str, str]:
    """The same the other way round: by each of the words behind it, the word that they mean."""
    return {other: word for word, others in words_of(module, table).items() for other in others}
