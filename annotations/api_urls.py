"""API routes of annotations, below /api/v1/. A campaign's name may hold anything, slashes too."""

from django.urls import path

from annotations import api

urlpatterns = [
    path("campaigns/", api.Campaigns.as_view({"get": "list"}), name="api-campaign-list"),
    path("campaigns/<path:name>/next/", api.Next.as_view(), name="api-campaign-next"),
    path("campaigns/<path:name>/returned/", api.ReturnedLabels.as_view(), name="api-campaign-returned"),
    path("campaigns/<path:name>/labels/", api.CampaignLabels.as_view(), name="api-campaign-labels"),
    path("campaigns/<path:name>/", api.Campaigns.as_view({"get": "retrieve"}), name="api-campaign-detail"),
    path("assignments/<int:pk>/images/<int:position>/", api.AssignmentImage.as_view(), name="api-assignment-image"),
    path("labels/", api.Labels.as_view({"get": "list", "post": "create"}), name="api-label-list"),
    path("labels/<int:pk>/", api.OneLabel.as_view(), name="api-label-detail"),
]
