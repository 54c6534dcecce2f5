"""What the tests of statistics share: real votes."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings

settings.register_profile("stats", settings.get_profile("suite"), max_examples=40, deadline=None, derandomize=True)
settings.load_profile("stats")


@pytest.fixture(scope="session")
def llmfao(llmfao_folder: Path) -> pd.DataFrame:
    """8,931 human votes on 59 models: columns a, b (codes), y, prompt, item, worker; `attrs["models"]` the
    names.
    """
    rows = pd.read_csv(llmfao_folder / "crowd-comparisons.csv")
    names = sorted(set(rows["left"]) | set(rows["right"]))
    code = {name: position for position, name in enumerate(names)}
    votes = pd.DataFrame(
        {
            "a": rows["left"].map(code),
            "b": rows["right"].map(code),
            "y": rows["winner"].map({"left": 1.0, "tie": 0.5, "right": 0.0}),
            "choice": rows["winner"].map({"left": "first", "tie": "tie", "right": "second"}),
            "prompt": rows["prompt"],
            "item": rows["id"],
            "worker": rows["worker"],
        }
    )
    votes.attrs["models"] = names
    return votes
