"""API routes of annotations, below /api/v1/. A campaign's name may hold anything, slashes too."""

from django.urls import path

from annotations.api import running
from annotations.api.views import (
    AssignmentImage,
    CampaignLabels,
    Campaigns,
    ConsentTo,
    Labels,
    Next,
    OneLabel,
    ReturnedLabels,
)

urlpatterns = [
    path("campaigns/", Campaigns.as_view({"get": "list", "post": "create"}), name="api-campaign-list"),
    path("campaigns/<path:name>/next/", Next.as_view(), name="api-campaign-next"),
    path("campaigns/<path:name>/consent/", ConsentTo.as_view(), name="api-campaign-consent"),
    path("campaigns/<path:name>/returned/", ReturnedLabels.as_view(), name="api-campaign-returned"),
    path("campaigns/<path:name>/state/", running.CampaignState.as_view(), name="api-campaign-state"),
    path("campaigns/<path:name>/open-finished/", running.OpenFinished.as_view(), name="api-campaign-open-finished"),
    path("campaigns/<path:name>/members/", running.Members.as_view(), name="api-campaign-members"),
    path("campaigns/<path:name>/members/<str:annotator>/", running.Member.as_view(), name="api-campaign-member"),
    path("campaigns/<path:name>/invitations/", running.Invitations.as_view(), name="api-campaign-invitations"),
    path(
        "campaigns/<path:name>/invitations/<int:pk>/", running.OneInvitation.as_view(), name="api-campaign-invitation"
    ),
    path("campaigns/<path:name>/labels/", CampaignLabels.as_view(), name="api-campaign-labels"),
    path(
        "campaigns/<path:name>/",
        Campaigns.as_view({"get": "retrieve", "patch": "partial_update"}),
        name="api-campaign-detail",
    ),
    path("assignments/<int:pk>/images/<int:position>/", AssignmentImage.as_view(), name="api-assignment-image"),
    path("labels/", Labels.as_view({"get": "list", "post": "create"}), name="api-label-list"),
    path("labels/<int:pk>/", OneLabel.as_view(), name="api-label-detail"),
]
