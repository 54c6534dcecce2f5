"""API routes of leaderboard, below /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from leaderboard import api, api_submissions

router = SimpleRouter()
router.register("submissions", api_submissions.Submissions, basename="api-submission")
urlpatterns = [
    *router.urls,
    path("leaderboards/models/", api.Models.as_view(), name="api-leaderboard-models"),
    path("leaderboards/judges/", api.Judges.as_view(), name="api-leaderboard-judges"),
    path("leaderboards/bias/", api.Bias.as_view(), name="api-leaderboard-bias"),
    path("leaderboards/agreement/", api.Agreement.as_view(), name="api-leaderboard-agreement"),
]
