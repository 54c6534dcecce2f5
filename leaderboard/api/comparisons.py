"""API of leaderboard: what pages show beside the four boards, see ``leaderboard.tables``."""

from dataclasses import replace

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema

from bank.models import Benchmark
from leaderboard import tables
from leaderboard.api import PARAMETERS, BoardView, Parameters
from leaderboard.kinds import Kind
from leaderboard.rows import JSON
from leaderboard.scope import Scope
from leaderboard.tables import TABLES, Asked, Table

WORDS = {
    "epsilon": f"by how much a judge may do worse than a person, 0 to 1; default {tables.standin.EPSILON:g}",
    "a": "one: a model's name, or of judges a run as run-3",
    "b": "the other",
}
PARTS = {"correlation": tables.RANKINGS, "compare": tables.MEASURES}


def parameters_of(name: str) -> list[OpenApiParameter]:
    """The parameters of a table for the schema."""
    table = TABLES[name]
    words = WORDS | {"part": f"{', '.join(PARTS.get(name, ()))}; default the first"}
    own = [
        OpenApiParameter(word, str, OpenApiParameter.QUERY, required=word in ("a", "b"), description=words[word])
        for word in table.takes
    ]
    return [parameter for parameter in PARAMETERS if parameter.name in ("benchmark", *table.view)] + own


class TableView(BoardView):
    """The rows of a table."""

    table: Table

    @property
    def accepted(self) -> tuple[str, ...]:
        return ("benchmark", *self.table.view, *self.table.takes)

    def default_kind(self, benchmark: Benchmark, parameters: Parameters, *, staff: bool) -> Kind:
        return self.table.default_kind(benchmark, self._asked(parameters), staff=staff)

    def rows(self, scope: Scope, parameters: Parameters) -> list[JSON]:
        return self.table.make(scope, self._asked(parameters)).rows

    def _asked(self, parameters: Parameters) -> Asked:
        return Asked(
            viewer=self.request.user,
            epsilon=tables.checked_epsilon(parameters.get("epsilon", tables.standin.EPSILON)),
            part=parameters.get("part", ""),
            a=parameters.get("a", ""),
            b=parameters.get("b", ""),
        )


@extend_schema(parameters=parameters_of("stand-in"), responses=OpenApiTypes.OBJECT)
class StandIn(TableView):
    """The alternative annotator test of each judge: winning rate, advantage, and each annotator left out (unnamed)."""

    table = TABLES["stand-in"]


@extend_schema(parameters=parameters_of("people-and-judge"), responses=OpenApiTypes.OBJECT)
class PeopleAndJudge(TableView):
    """Each model by people alone, and by people and a judge together (PPI++).

    The judge is that of ``run`` or ``source``, else that of the newest run.
    """

    table = TABLES["people-and-judge"]


@extend_schema(parameters=parameters_of("ceiling"), responses=OpenApiTypes.OBJECT)
class Ceiling(TableView):
    """People against people by every metric of judges, overall and by level or data set."""

    table = TABLES["ceiling"]


@extend_schema(parameters=parameters_of("reviews"), responses=OpenApiTypes.OBJECT)
class Reviews(TableView):
    """What people say of each judge's verdicts in reviews: agreement and hallucination by the consensus of three, the
    mean grade, and the mean absolute deviation of grades within a sample; by data set.
    """

    table = TABLES["reviews"]


@extend_schema(parameters=parameters_of("campaign"), responses=OpenApiTypes.OBJECT)
class CampaignAgreement(TableView):
    """Agreement within campaigns: matching labels, Krippendorff's alpha, Fleiss' kappa, by capability, and of every two
    annotators, by pseudonym below curators.
    """

    access_rule = "read-judging"
    table = TABLES["campaign"]


@extend_schema(parameters=parameters_of("letters"), responses=OpenApiTypes.OBJECT)
class Letters(TableView):
    """Multiple choice: the share of each option among those that a model chose, and among the right ones."""

    table = TABLES["letters"]


@extend_schema(parameters=parameters_of("extraction"), responses=OpenApiTypes.OBJECT)
class Extraction(TableView):
    """Multiple choice: for how many answers of each model the option was found in which way."""

    table = TABLES["extraction"]


@extend_schema(parameters=parameters_of("places"), responses=OpenApiTypes.OBJECT)
class Places(TableView):
    """Pairs: each model's win rate where its answer was shown first, and where second, each verdict by itself."""

    table = TABLES["places"]


@extend_schema(parameters=parameters_of("correlation"), responses=OpenApiTypes.OBJECT)
class Correlation(TableView):
    """How far rankings of the same models agree: people's, judges', other benchmarks' and versions'.

    Pairs: Spearman with its interval, Kendall, permutation p, n models. Ranks: the models that every ranking holds.
    Repeats: mean and standard deviation of the win rate over a judge's repeats. Languages (multiple choice, yes or no):
    each model's accuracy in two languages of a benchmark, and the paired difference over the questions that correspond.
    """

    table = TABLES["correlation"]


@extend_schema(parameters=parameters_of("compare"), responses=OpenApiTypes.OBJECT)
class Compare(TableView):
    """Two models on samples both answered, or two judges' runs against people on items that both have judged.

    Each measure with the interval of the difference, p and the test.
    """

    table = TABLES["compare"]


@extend_schema(parameters=parameters_of("compare"), responses=OpenApiTypes.OBJECT)
class CompareModels(TableView):
    """Two models on samples both answered: each measure with the interval of the difference, p and the test."""

    table = replace(TABLES["compare"], make=tables.compare_models)


@extend_schema(parameters=parameters_of("compare"), responses=OpenApiTypes.OBJECT)
class CompareJudges(TableView):
    """Two judges compared with people on the items that both have judged."""

    table = replace(TABLES["compare"], make=tables.compare_judges, board="judges")
