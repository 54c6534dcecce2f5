"""The real data of the demo: people's and two judges' votes on answers of 59 models to 13 prompts.

*Large Language Model Feedback Analysis and Optimization*, Dmitry Ustalov (CC BY 4.0); see ``data/llmfao/README.md``.
"""

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

from bank.intake.formats import llmfao
from bank.intake.imports.engine import run_import
from bank.models import Benchmark
from judging.models import Run

FOLDER = Path(__file__).with_name("data") / "llmfao"
SLUG = "llmfao"
JUDGES = {"gpt3": "GPT-3.5 Turbo Instruct", "gpt4": "GPT-4"}  # by the names of their files
DESCRIPTION = (
    "Nineteen prompts to text models of 2023; 124 people voted on the answers to thirteen of them. Large Language "
    "Model Feedback Analysis and Optimization by Dmitry Ustalov, CC BY 4.0; prompts, models and answers by llmonitor."
)


def is_here() -> bool:
    """Whether all of it came in: the judges' votes are the last part."""
    judged = Run.objects.filter(benchmark__slug=SLUG, judge__name__in=JUDGES.values())
    return judged.count() == len(JUDGES)


def load_llmfao() -> None:
    """Bring in what is missing; what is there stays as it is."""
    with TemporaryDirectory() as name:
        folder = unpacked(Path(name))
        parts = ["samples", "responses", "labels"]
        # Its notes say what a right answer holds, and are published with it.
        run_import(
            path=folder,
            format=llmfao,
            parts=parts,
            slug=SLUG,
            title="LLMFAO",
            visibility="public",
            open_keys=True,
            saw_nothing=True,
        )
        for file, judge in JUDGES.items():
            votes = folder / f"{file}-crowd-comparisons.csv"
            run_import(path=votes, format=llmfao, parts=["judgments"], slug=SLUG, judge=judge, saw_nothing=True)
    Benchmark.objects.filter(slug=SLUG).update(description=DESCRIPTION, licence="CC BY 4.0")


def unpacked(folder: Path) -> Path:
    """The released files, written into this folder."""
    for path in FOLDER.glob("*.gz"):
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder
