"""API routes of judging, below /api/v1/."""

from rest_framework.routers import SimpleRouter

from judging import api

router = SimpleRouter()
router.register("judges", api.Judges, basename="api-judge")
router.register("runs", api.Runs, basename="api-run")
router.register("juries", api.Juries, basename="api-jury")
router.register("judgments", api.Judgments, basename="api-judgment")
router.register("prompts", api.Templates, basename="api-prompt")
urlpatterns = router.urls
