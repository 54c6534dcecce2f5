"""Drawing a dev and a test split by stratified sampling (MMBench, 3.3: 4 to 6 within each leaf ability)."""

from collections import defaultdict
from dataclasses import dataclass

from django.db import transaction

from accounts.models import User
from bank.errors import BadInput
from bank.models import Benchmark, Sample
from bank.samples.editor import change_many
from bank.text.digests import keyed_digest

DEV, TEST = "dev", "test"
SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Drawn:
    """The samples of each split; ``by_leaf``: (capability, dev, test)."""

    dev: list[int]
    test: list[int]
    by_leaf: list[tuple[str, int, int]]


def draw(*, benchmark: Benchmark, share: float = SHARE, seed: int = 0) -> Drawn:
    """Draw ``share`` of the samples of each capability for dev, the rest for test; samples of a group stay together.

    The same seed draws the same. Raises BadInput.
    """
    if not 0 < share < 1:
        raise BadInput("The share of dev is more than 0 and less than 1.", "share")
    rows = Sample.objects.filter(benchmark=benchmark).in_use().select_related("capability").order_by("key")
    leaves: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    home: dict[str, str] = {}  # a group over several capabilities is drawn with the first
    for sample in rows:
        path = home.setdefault(sample.cluster, sample.capability_path)
        leaves[path][sample.cluster].append(sample.pk)
    if not leaves:
        raise BadInput(f"{benchmark} has no samples in use.", "benchmark")
    dev: list[int] = []
    test: list[int] = []
    by_leaf = []
    owed = 0.0  # what rounding took from the leaves before
    for path, groups in sorted(leaves.items()):
        total = sum(map(len, groups.values()))
        wanted = share * total + owed
        chosen: list[int] = []
        rest: list[int] = []
        for name in sorted(groups, key=lambda name: keyed_digest(seed, name)):
            fits = len(chosen) + len(groups[name]) / 2 <= wanted
            (chosen if fits else rest).extend(groups[name])
        owed = wanted - len(chosen)
        dev += chosen
        test += rest
        by_leaf.append((path, len(chosen), len(rest)))
    return Drawn(dev, test, by_leaf)


@transaction.atomic
def set_splits(*, benchmark: Benchmark, drawn: Drawn, by: User | None = None, dev: str = DEV, test: str = TEST) -> int:
    """Write the splits, with a revision a sample; returns how many changed. Raises BadInput.

    A hidden split is never drawn anew: what was hidden, or shown, would change sides.
    """
    if not dev or not test or dev == test or max(len(dev), len(test)) > 40:
        raise BadInput("Name two different splits, of at most 40 characters.", "dev")
    ids = [*drawn.dev, *drawn.test]
    if benchmark.samples.filter(pk__in=ids, split__in=benchmark.hidden_splits).exclude(split="").exists():
        hidden = ", ".join(benchmark.hidden_splits)
        raise BadInput(f"{benchmark} has hidden splits already ({hidden}): they are not drawn again.", "benchmark")
    note = "drawn by stratified sampling"
    changed = 0
    for name, chosen in ((dev, drawn.dev), (test, drawn.test)):
        for begin in range(0, len(chosen), 500):
            some = Sample.objects.filter(pk__in=chosen[begin : begin + 500])
            changed += change_many(by=by, samples=some, values={"split": name}, note=note)
    return changed
