"""What makes the boards of each kind of verdict."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from judging.models import Run
from leaderboard.boards.base import ModelsBoard
from leaderboard.boards.biases import board as bias
from leaderboard.boards.biases.board import BiasBoard
from leaderboard.boards.judges import board as judge_board
from leaderboard.boards.judges.board import JudgesBoard
from leaderboard.boards.models import keyed, pairs, scores
from leaderboard.boards.versus import board as versus
from leaderboard.boards.versus.board import Versus
from leaderboard.kinds import Kind
from leaderboard.scope import Scope

NO_PEOPLE = "People give no marks of this kind, so no judge can be compared with them."


def _no_judges(scope: Scope) -> JudgesBoard:
    return JudgesBoard([], [NO_PEOPLE])


def _marks(scope: Scope) -> ModelsBoard:
    return scores.with_exact_matches(scope, scores.models(scope))


@dataclass(frozen=True, kw_only=True)
class Makers:
    """``models``: the live board of models, of class ``shape``; ``judges``, ``biases``: live boards; two models on the
    samples that both have answered; the runs of two judges on the items that both have judged. By default, of scores.
    """

    shape: type[ModelsBoard] = scores.ScoresBoard
    models: Callable[[Scope], ModelsBoard] = scores.models
    judges: Callable[[Scope], JudgesBoard] = judge_board.by_scores
    biases: Callable[[Scope], BiasBoard] = bias.of_scores
    two_models: Callable[[Scope, str, str], Versus] = versus.models_by_scores
    two_judges: Callable[[Scope, list[Run], list[Run]], Versus] = versus.judges_by_scores


_OF_KEYS = Makers(models=keyed.models, two_models=versus.models_by_keys, two_judges=versus.judges_by_readings)
MAKERS = {
    "pair": Makers(
        shape=pairs.PairsBoard,
        models=pairs.by_pairs,
        judges=judge_board.by_pairs,
        biases=bias.of_pairs,
        two_models=versus.models_by_pairs,
        two_judges=versus.judges_by_pairs,
    ),
    "score": Makers(),
    "batch": Makers(biases=bias.of_rankings, two_judges=versus.judges_by_rankings),
    "components": Makers(shape=scores.ComponentsBoard, models=partial(scores.models, row_class=scores.ComponentsRow)),
    "choice": replace(_OF_KEYS, shape=keyed.ChoiceBoard),
    "yes-no": replace(_OF_KEYS, shape=keyed.YesNoBoard),
    "nominal": Makers(two_judges=versus.judges_by_readings),
    "reference": Makers(shape=scores.MarksBoard, models=_marks, judges=_no_judges),
    "reasoning": Makers(judges=_no_judges),
}


def makers_of(kind: Kind) -> Makers:
    return MAKERS[kind.name]
