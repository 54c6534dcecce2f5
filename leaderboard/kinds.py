"""Which kinds of boards a benchmark can fill."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.db.models import Exists, OuterRef

from annotations.models import Campaign, Label
from bank.models import Benchmark, Item, Response
from bank.submissions.keyed import counted
from judging.models import Judgment, Run
from leaderboard.scope import KINDS
from leaderboard.unchanged import until_written
from leaderboard.votes import PROTOCOLS, withheld_runs
from stats.said import answer_in

TITLES = {
    "pair": "Pairs",
    "score": "Scores",
    "batch": "Rankings",
    "components": "Components",
    "choice": "Multiple choice",
    "yes-no": "Yes or no",
}
COLUMNS = {
    "pair": "choice",
    "score": "score",
    "batch": "ranking",
    "components": "parts",
    "choice": "option",
    "yes-no": "answer",
}
OF_BIAS = ("pair", "score", "components")
LOOKED_AT = 20  # answers read to see whether a question is one of yes or no


def of_models(benchmark: Benchmark, *, staff: bool) -> list[str]:
    """The kinds of boards of models that have something to show, in the order of ``KINDS``."""
    ways: dict[str, Callable[[], bool]] = {
        kind: partial(has_verdicts, benchmark, kind, staff=staff) for kind in ("pair", "score", "components")
    }
    ways |= {"choice": partial(_has_choices, benchmark), "yes-no": partial(_has_yes_no, benchmark)}
    return [kind for kind in KINDS if kind in ways and ways[kind]()]


def of_judges(benchmark: Benchmark, *, staff: bool) -> list[str]:
    """The kinds of verdicts that people or judges have given on the benchmark."""
    return [kind for kind in KINDS if has_verdicts(benchmark, kind, staff=staff)]


def default_of(benchmark: Benchmark, what: str, *, staff: bool) -> str:
    """The kind of the board that opens first; pairs where there is nothing yet."""
    if what == "agreement":
        return "pair"
    found = known_of(benchmark, what, staff=staff)
    if what == "bias":
        found = [kind for kind in found if kind in OF_BIAS]
    return found[0] if found else "pair"


def known_of(benchmark: Benchmark, what: str, *, staff: bool) -> list[str]:
    """Of models or of judges, as last found if nothing was written since."""
    find = of_models if what == "models" else of_judges
    return until_written(("kinds", find.__name__, benchmark.pk, staff), lambda: find(benchmark, staff=staff))


def has_verdicts(benchmark: Benchmark, kind: str, *, staff: bool) -> bool:
    """Whether somebody labelled or judged in this kind, as far as this viewer may see it."""
    asked = until_written(("asked on", benchmark.pk, staff), lambda: _asked_on(benchmark, staff=staff))
    if asked.campaigns:
        labels = Label.objects.filter(campaign__in=asked.campaigns, **{f"{COLUMNS[kind]}__isnull": False})
        if (labels.filter(parts__isnull=True) if kind == "score" else labels).exists():
            return True
    runs = [run for run, protocol in asked.runs if protocol in PROTOCOLS[kind]]
    return bool(runs) and Judgment.objects.filter(run__in=runs, status=Judgment.Status.OK).exists()


@dataclass(frozen=True)
class Asked:
    """Who was asked on a benchmark: the campaigns, and the runs of judges with their protocols."""

    campaigns: list[int]
    runs: list[tuple[int, str]]


def _asked_on(benchmark: Benchmark, *, staff: bool) -> Asked:
    """Each kind would ask for both again, and most benchmarks have one or the other."""
    runs = Run.objects.filter(benchmark=benchmark, kind=Run.Kind.JUDGMENTS).exclude(pk__in=withheld_runs(staff=staff))
    campaigns = Campaign.objects.filter(benchmark=benchmark).order_by("pk").values_list("pk", flat=True)
    return Asked(list(campaigns), list(runs.order_by("pk").values_list("pk", "protocol")))


def has_items(benchmark: Benchmark, kind: str) -> bool:
    """Whether there is anything of this kind to label or judge."""
    return Item.objects.filter(sample__benchmark=benchmark, kind=kind).exists()


# Whether there are keys is hidden, too: what is offered goes by the questions and the answers alone.


def _has_choices(benchmark: Benchmark) -> bool:
    return Response.objects.filter(counted(), sample__benchmark=benchmark).exclude(sample__options={}).exists()


def _has_yes_no(benchmark: Benchmark) -> bool:
    """Questions without options, most of whose answers say yes or no: by the first that have an answer."""
    answers = Response.objects.filter(counted()).exclude(text="")
    asked = benchmark.samples.filter(Exists(answers.filter(sample=OuterRef("pk"))), options={})
    first = list(asked.order_by("position", "pk").values_list("pk", flat=True)[:LOOKED_AT])
    texts = answers.filter(sample__in=first).order_by("sample__position", "pk").values_list("text", flat=True)
    said = [answer_in(text) for text in texts[:LOOKED_AT]]
    return bool(said) and sum(one is not None for one in said) * 2 > len(said)
