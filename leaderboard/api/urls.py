"""API routes of leaderboard, below /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from leaderboard.api import editions, held_out, outside, recipes, snapshots, submissions, view_of
from leaderboard.registry import COMPARE_JUDGES, COMPARE_MODELS, TABLES


def _title(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-")) + "Rows"


router = SimpleRouter()
router.register("submissions", submissions.Submissions, basename="api-submission")
router.register("recipes", recipes.Recipes, basename="api-recipe")
router.register("evaluations", recipes.Evaluations, basename="api-evaluation")
router.register("outside-scores", outside.OutsideScores, basename="api-outside-score")
router.register("editions", editions.Editions, basename="api-edition")
router.register("held-out", held_out.HeldOut, basename="api-held-out")
router.register("snapshots", snapshots.Snapshots, basename="api-snapshot")
urlpatterns = [
    *router.urls,
    path("leaderboards/recipes/", recipes.RecipeRows.as_view(), name="api-leaderboard-recipes"),
    path("leaderboards/desiderata/", recipes.Desiderata.as_view(), name="api-leaderboard-desiderata"),
    *(
        path(f"leaderboards/{name}/", view_of(_title(name), table), name=f"api-leaderboard-{name}")
        for name, table in TABLES.items()
    ),
    path("leaderboards/models/compare/", view_of("ComparedRows", COMPARE_MODELS), name="api-compare-models"),
    path("leaderboards/judges/compare/", view_of("ComparedRows", COMPARE_JUDGES), name="api-compare-judges"),
]
