"""manage.py outside_scores [BOARD FILE --source WORDS]"""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from bank.errors import BadInput
from leaderboard.boards.correlation import outside
from leaderboard.models import OutsideScore
from leaderboard.show.files import csv_text


class Command(InstallationCommand):
    help = (
        "Scores of a benchmark that is not held here, for rankings over several benchmarks. Without FILE, what there "
        "is as CSV. A file replaces the board's scores; an empty one removes it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("board", nargs="?", help="the benchmark's name")
        parser.add_argument("file", nargs="?", type=Path, help="CSV of model,score")
        parser.add_argument("--source", default="", help="where they were published")
        parser.add_argument("--lower-is-better", action="store_true")

    def handle(
        self, *, board: str | None, file: Path | None, source: str, lower_is_better: bool, **options: Any
    ) -> None:
        if board is None or file is None:
            rows = OutsideScore.objects.filter(**({"board": board} if board else {})).values(*outside.HEAD)
            self.stdout.write(csv_text(list(rows)), ending="")
            return
        try:
            scores = outside.read_scores(file.read_text(encoding="utf-8-sig"))
            number = outside.set_scores(board=board, scores=scores, source=source, lower_is_better=lower_is_better)
        except (BadInput, OSError, UnicodeDecodeError) as error:
            raise CommandError(str(error), returncode=2) from None
        self.stdout.write(f"{board}: {number:,} scores.")
