"""Pages of annotations."""

from django.urls import path

from annotations.views import campaigns, data, items, labelling, making, people

app_name = "annotations"
urlpatterns = [
    path("annotate/", labelling.index, name="index"),
    path("annotate/<int:pk>/", labelling.work, name="work"),
    path("annotate/<int:pk>/go-on/", labelling.go_on, name="go-on"),
    path("annotate/<int:pk>/ahead/", labelling.ahead, name="ahead"),
    path("annotate/assignments/<int:pk>/", labelling.assignment_detail, name="assignment-detail"),
    path("annotate/assignments/<int:pk>/submit/", labelling.assignment_submit, name="assignment-submit"),
    path("annotate/assignments/<int:pk>/skip/", labelling.assignment_skip, name="assignment-skip"),
    path("annotate/assignments/<int:pk>/draft/", labelling.assignment_draft, name="assignment-draft"),
    path("annotate/assignments/<int:pk>/images/<int:position>/", labelling.assignment_image, name="assignment-image"),
    path("invitations/<str:token>/", people.invitation, name="invitation"),
    path("campaigns/", campaigns.campaign_list, name="campaign-list"),
    path("campaigns/new/", making.campaign_new, name="campaign-new"),
    path("campaigns/count/", making.campaign_count, name="campaign-count"),
    path("campaigns/guidelines/preview/", making.guidelines_preview, name="guidelines-preview"),
    path("campaigns/<int:pk>/", campaigns.campaign_detail, name="campaign-detail"),
    path("campaigns/<int:pk>/open/", campaigns.campaign_open, name="campaign-open"),
    path("campaigns/<int:pk>/pause/", campaigns.campaign_pause, name="campaign-pause"),
    path("campaigns/<int:pk>/close/", campaigns.campaign_close, name="campaign-close"),
    path("campaigns/<int:pk>/copy/", making.campaign_copy, name="campaign-copy"),
    path("campaigns/<int:pk>/settings/", making.campaign_settings, name="campaign-settings"),
    path("campaigns/<int:pk>/guidelines/", making.campaign_guidelines, name="campaign-guidelines"),
    path("campaigns/<int:pk>/pictures/<str:name>", making.guidelines_picture, name="guidelines-picture"),
    path("campaigns/<int:pk>/agreement/", items.campaign_agreement, name="campaign-agreement"),
    path("campaigns/<int:pk>/items/", items.campaign_items, name="campaign-items"),
    path("campaigns/<int:pk>/items/<int:place>/", items.item_detail, name="item-detail"),
    path("campaigns/<int:pk>/items/<int:place>/decide/", items.item_decide, name="item-decide"),
    path("campaigns/<int:pk>/labels/<int:label>/return/", items.label_return, name="label-return"),
    path("campaigns/<int:pk>/data/", data.campaign_data, name="campaign-data"),
    path("campaigns/<int:pk>/data/download/", data.campaign_download, name="campaign-download"),
    path("campaigns/<int:pk>/rule/", data.campaign_rule, name="campaign-rule"),
    path("campaigns/from/runs/<int:pk>/", data.run_doubts, name="run-doubts"),
    path("campaigns/from/runs/<int:pk>/add/", data.doubts_add, name="doubts-add"),
    path("campaigns/from/runs/<int:pk>/<slug:subset>.jsonl", data.run_subset, name="run-subset"),
    path("campaigns/from/judgments/", data.judgments_add, name="judgments-add"),
    path("campaigns/<int:pk>/annotators/add/", people.campaign_add, name="campaign-add"),
    path("campaigns/<int:pk>/annotators/<int:annotator>/remove/", people.campaign_remove, name="campaign-remove"),
    path("campaigns/<int:pk>/annotators/<int:annotator>/change/", people.annotator_change, name="annotator-change"),
    path("campaigns/<int:pk>/invite/", people.campaign_invite, name="campaign-invite"),
    path("campaigns/<int:pk>/invitations/<int:invitation>/revoke/", people.invitation_revoke, name="invitation-revoke"),
]
