"""Pages of the bank."""

from django.urls import path

from bank import images
from bank.views import access_log, benchmarks, capabilities, drafts, items, models, people, reviews, samples, uploads

app_name = "bank"
urlpatterns = [
    path("", benchmarks.index, name="index"),
    path("access-log/", access_log.page, name="access-log"),
    path("access-log/export/", access_log.export, name="access-log-export"),
    path("images/<str:sha256>.<str:kind>", images.image, name="image"),
    path("reviews/", reviews.queue, name="review-queue"),
    path("reviews/<int:pk>/", reviews.review, name="review"),
    path("rounds/<int:pk>/close/", reviews.round_close, name="round-close"),
    path("samples/<int:pk>/", samples.sample_detail, name="sample-detail"),
    path("samples/<int:pk>/criteria/", samples.criteria, name="criteria"),
    path("samples/<int:pk>/criteria/history/", samples.criteria_history, name="criteria-history"),
    path("samples/<int:pk>/history/", samples.sample_history, name="sample-history"),
    path("samples/<int:pk>/edit/", samples.sample_edit, name="sample-edit"),
    path("samples/<int:pk>/check/", reviews.sample_check, name="sample-check"),
    path("benchmarks/new/", benchmarks.benchmark_new, name="benchmark-new"),
    path("benchmarks/<str:name>/", benchmarks.benchmark_detail, name="benchmark-detail"),
    path("benchmarks/<str:name>/edit/", benchmarks.benchmark_edit, name="benchmark-edit"),
    path("benchmarks/<str:name>/publish/", benchmarks.benchmark_publish, name="benchmark-publish"),
    path("benchmarks/<str:name>/people/", people.benchmark_people, name="benchmark-people"),
    path("benchmarks/<str:name>/export/", benchmarks.benchmark_export, name="benchmark-export"),
    path("benchmarks/<str:name>/drafts/", drafts.benchmark_drafts, name="benchmark-drafts"),
    path("benchmarks/<str:name>/split/", benchmarks.benchmark_split, name="benchmark-split"),
    path("benchmarks/<str:name>/check/", benchmarks.benchmark_check, name="benchmark-check"),
    path("benchmarks/<str:name>/capabilities/", capabilities.capabilities, name="capabilities"),
    path("benchmarks/<str:name>/models/", models.benchmark_models, name="benchmark-models"),
    path("benchmarks/<str:name>/items/", items.benchmark_items, name="benchmark-items"),
    path("benchmarks/<str:name>/items/count/", items.items_count, name="items-count"),
    path("benchmarks/<str:name>/reviews/", reviews.benchmark_reviews, name="benchmark-reviews"),
    path("benchmarks/<str:name>/samples/new/", samples.sample_new, name="sample-new"),
    path("benchmarks/<str:name>/samples/change/", samples.samples_change, name="samples-change"),
    path("uploads/", uploads.upload_list, name="upload-list"),
    path("uploads/dismiss/", uploads.upload_dismiss, name="upload-dismiss"),
    path("uploads/templates/<slug:part>.<slug:shape>", uploads.upload_template, name="upload-template"),
    path("uploads/<int:pk>/", uploads.upload_detail, name="upload-detail"),
    path("uploads/<int:pk>/progress/", uploads.upload_progress, name="upload-progress"),
    path("uploads/<int:pk>/columns/", uploads.upload_columns, name="upload-columns"),
    path("uploads/<int:pk>/confirm/", uploads.upload_confirm, name="upload-confirm"),
    path("uploads/<int:pk>/cancel/", uploads.upload_cancel, name="upload-cancel"),
    path("uploads/<int:pk>/problems.csv", uploads.upload_problems, name="upload-problems"),
    path("uploads/<int:pk>/images/<int:position>", uploads.upload_image, name="upload-image"),
]
