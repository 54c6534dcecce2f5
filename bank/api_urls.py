"""API routes of the bank, below /api/v1/."""

from rest_framework.routers import SimpleRouter

from bank import api
from bank.uploads.api import Uploads

router = SimpleRouter()
router.register("benchmarks", api.Benchmarks, basename="api-benchmark")
router.register("samples", api.Samples, basename="api-sample")
router.register("models", api.Models, basename="api-model")
router.register("responses", api.Responses, basename="api-response")
router.register("items", api.Items, basename="api-item")
router.register("uploads", Uploads, basename="api-upload")
urlpatterns = router.urls
