"""Runs the parts named on the command line, or all: ``python -m tests.bench [methods] [imports] [pages] [bank] ..``."""

import os
import sys
import tempfile

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-bench-"))

import django

django.setup()

from tests.bench import bank, boards, corruptions, crowd, judges, judging, labelling, methods, parts, verdicts  # noqa: E402 (needs the settings)


def main() -> int:
    known = (
        {"methods": methods.methods}
        | parts.PARTS
        | {
            "bank": bank.bank,
            "boards": boards.boards,
            "judges": judges.judges,
            "corruptions": corruptions.corrupted,
            "crowd": crowd.crowd,
            "judging": judging.judging,
            "labelling": labelling.labelling,
            "many": judges.many,
            "verdicts": verdicts.verdicts,
        }
    )
    wanted = sys.argv[1:] or list(known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"No such part: {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    print(f"{'work':<58}{'reference':>12}{'ours':>12}{'ratio':>9}   to reach")
    missed = 0
    for name in wanted:
        for result in known[name]():
            print(result)
            missed += not result.reached
    print("All reached." if not missed else f"{missed} not reached.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
