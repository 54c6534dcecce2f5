"""API routes of the bank, below /api/v1/."""

from rest_framework.routers import SimpleRouter

from bank.api import viewsets
from bank.api.exports import Exports
from bank.api.uploads import Uploads

router = SimpleRouter()
router.register("benchmarks", viewsets.Benchmarks, basename="api-benchmark")
router.register("samples", viewsets.Samples, basename="api-sample")
router.register("models", viewsets.Models, basename="api-model")
router.register("responses", viewsets.Responses, basename="api-response")
router.register("recipe-responses", viewsets.RecipeResponses, basename="api-recipe-response")
router.register("items", viewsets.Items, basename="api-item")
router.register("drafts", viewsets.Drafts, basename="api-draft")
router.register("uploads", Uploads, basename="api-upload")
router.register("exports", Exports, basename="api-export")
urlpatterns = router.urls
