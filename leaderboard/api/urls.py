"""API routes of leaderboard, below /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from leaderboard import api
from leaderboard.api import comparisons, outside, recipes, snapshots, submissions

router = SimpleRouter()
router.register("submissions", submissions.Submissions, basename="api-submission")
router.register("recipes", recipes.Recipes, basename="api-recipe")
router.register("evaluations", recipes.Evaluations, basename="api-evaluation")
router.register("outside-scores", outside.OutsideScores, basename="api-outside-score")
router.register("snapshots", snapshots.Snapshots, basename="api-snapshot")
urlpatterns = [
    *router.urls,
    path("leaderboards/recipes/", recipes.RecipeRows.as_view(), name="api-leaderboard-recipes"),
    path("leaderboards/desiderata/", recipes.Desiderata.as_view(), name="api-leaderboard-desiderata"),
    path("leaderboards/models/", api.Models.as_view(), name="api-leaderboard-models"),
    path("leaderboards/judges/", api.Judges.as_view(), name="api-leaderboard-judges"),
    path("leaderboards/bias/", api.Bias.as_view(), name="api-leaderboard-bias"),
    path("leaderboards/agreement/", api.Agreement.as_view(), name="api-leaderboard-agreement"),
    path("leaderboards/stand-in/", comparisons.StandIn.as_view(), name="api-leaderboard-stand-in"),
    path(
        "leaderboards/people-and-judge/",
        comparisons.PeopleAndJudge.as_view(),
        name="api-leaderboard-people-and-judge",
    ),
    path("leaderboards/ceiling/", comparisons.Ceiling.as_view(), name="api-leaderboard-ceiling"),
    path("leaderboards/reviews/", comparisons.Reviews.as_view(), name="api-leaderboard-reviews"),
    path("leaderboards/campaign/", comparisons.CampaignAgreement.as_view(), name="api-leaderboard-campaign"),
    path("leaderboards/letters/", comparisons.Letters.as_view(), name="api-leaderboard-letters"),
    path("leaderboards/places/", comparisons.Places.as_view(), name="api-leaderboard-places"),
    path("leaderboards/extraction/", comparisons.Extraction.as_view(), name="api-leaderboard-extraction"),
    path("leaderboards/compare/", comparisons.Compare.as_view(), name="api-leaderboard-compare"),
    path("leaderboards/correlation/", comparisons.Correlation.as_view(), name="api-leaderboard-correlation"),
    path("leaderboards/models/compare/", comparisons.CompareModels.as_view(), name="api-compare-models"),
    path("leaderboards/judges/compare/", comparisons.CompareJudges.as_view(), name="api-compare-judges"),
]
