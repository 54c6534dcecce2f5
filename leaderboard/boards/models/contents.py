"""What a benchmark asks and shows, in counts (MLLM-Bench, 2311.13951, Figure 4; MIA-Bench, 2407.01509, Figure 5)."""

from collections import Counter
from dataclasses import dataclass

from accounts.rules import Viewer
from bank import guard
from bank.models import Sample, SampleImage
from bank.samples import contents
from judging.models import Collected, Run
from leaderboard.rows import Row
from leaderboard.scope import Scope
from leaderboard.votes import samples_in

PARTS = ("verbs", "words", "objects")


@dataclass(frozen=True, kw_only=True)
class ContentRow(Row):
    """How many instructions (or pictures, of ``objects``), ``of`` so many, have this verb with its objects, this first
    word, or this object.
    """

    part: str
    name: str
    n: int
    of: int


@guard.working()
def contents_of(scope: Scope, viewer: Viewer) -> list[ContentRow]:
    """Of the view's samples that the viewer sees, each part the most frequent first. Verbs and objects are those that
    endpoints named, where any was asked.
    """
    visible = Sample.objects.visible_to(viewer)
    samples = samples_in(scope).filter(pk__in=visible.values("pk")).order_by()
    asked = Collected.objects.filter(run__kind=Run.Kind.VERBS, status=Collected.Status.OK, last=True)
    # Of an instruction that was asked about twice, what was said last.
    verbs = dict(asked.filter(sample__in=samples.values("pk")).order_by("pk").values_list("sample", "text"))
    words = list(samples.values_list("instruction", flat=True))
    lists = SampleImage.objects.filter(sample__in=samples.values("pk")).exclude(objects_found=[]).order_by()
    objects = list(lists.values_list("objects_found", flat=True))
    return [
        *_rows("verbs", contents.verbs(verbs.values()), len(verbs)),
        *_rows("words", contents.first_words(words), len(words)),
        *_rows("objects", contents.objects(objects), len(objects)),
    ]


def _rows(part: str, counts: Counter[str], of: int) -> list[ContentRow]:
    in_order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [ContentRow(part=part, name=name, n=n, of=of) for name, n in in_order]
