"""Make the sync client from the async one: ``python docs/client/make_sync.py [--check]``."""

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "src" / "evalsite_client"
HEAD = '"""The sync client, made from ``asynchronous.py`` by ``make_sync.py``: change that."""'
CHANGES = (
    (r'^""".*?"""', HEAD),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncIterator, Iterable\b", "Iterable, Iterator"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\(await (.+?)\)\.", r"\1."),
    (r"\bawait ", ""),
    (r"\basyncio\b", "time"),
)


def sync(text: str) -> str:
    for pattern, replacement in CHANGES:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def main() -> int:
    made = sync((FOLDER / "asynchronous.py").read_text(encoding="utf-8"))
    target = FOLDER / "synchronous.py"
    if "--check" in sys.argv:
        return int(target.read_text(encoding="utf-8") != made)
    target.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
