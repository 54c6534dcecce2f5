"""The pages of the documentation, read as a person follows them: files to write, commands to run, what they print,
and steps in the browser.

Of a page's code blocks ``bash`` is run, ``text`` is what the commands above it print (… stands for anything), and a
block with a ``title`` is a file. ``console`` is for the reader's own machine and is not run. Each sentence of a
numbered list is a step in the browser.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PART = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<code>.*?)^```$"
    r"|^\d+\. (?P<step>.+?)(?=\n\n|\n\d+\. |\Z)",
    re.MULTILINE | re.DOTALL,
)
SENTENCE = re.compile(r"(?<=[.!]) (?=[A-Z])")


@dataclass(frozen=True)
class Part:
    kind: str  # file, run, printed, step
    text: str
    name: str = ""  # of the file


def parts(page: str) -> list[Part]:
    """What ``docs/tutorials/PAGE.md`` asks for, in its order."""
    found = []
    for match in PART.finditer((DOCS / "tutorials" / f"{page}.md").read_text(encoding="utf-8")):
        if match["step"]:
            found += [Part("step", text) for text in SENTENCE.split(" ".join(match["step"].split()))]
        elif match["title"]:
            found.append(Part("file", match["code"], match["title"]))
        elif kind := {"bash": "run", "text": "printed"}.get(match["language"]):
            found.append(Part(kind, match["code"]))
    return found


def differs(printed: str, shown: str) -> bool:
    """Whether a command printed something else than the page shows; columns may be wider or narrower."""
    pattern = r".*?".join(re.escape(part) for part in re.split(" ?… ?", " ".join(shown.split())))
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is None
