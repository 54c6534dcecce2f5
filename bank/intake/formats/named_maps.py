"""Other tools' files whose rows say everything by their columns: a map each in ``maps``, see ``mapping``."""

from pathlib import Path

from bank.intake.formats.mapping import Mapped, from_text

TITLES = {
    "promptfoo": "promptfoo (results as JSON)",
    "langfuse": "Langfuse (scores with their traces)",
    "helm": "HELM (scenario_state.json)",
}
FOLDER = Path(__file__).with_name("maps")
MAPS = tuple(
    Mapped(from_text((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")), NAME=name, TITLE=title)
    for name, title in TITLES.items()
)
