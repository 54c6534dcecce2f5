"""API routes of judging, below /api/v1/."""

from rest_framework.routers import SimpleRouter

from judging.api import judges, judgments, runs, webhooks

router = SimpleRouter()
router.register("judges", judges.Judges, basename="api-judge")
router.register("runs", runs.Runs, basename="api-run")
router.register("juries", runs.Juries, basename="api-jury")
router.register("judgments", judgments.Judgments, basename="api-judgment")
router.register("prompts", judges.Templates, basename="api-prompt")
router.register("webhooks", webhooks.Webhooks, basename="api-webhook")
urlpatterns = router.urls
