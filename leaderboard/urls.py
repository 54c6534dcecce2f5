"""Pages of leaderboard; ``<name>`` is ``SLUG`` or ``SLUG@VERSION``."""

from django.urls import path

from leaderboard import views
from leaderboard.views import boards, editions, plots, rows, snapshots, submissions, versus

app_name = "leaderboard"
urlpatterns = [
    path("find/", views.find, name="find"),
    path("method/", views.method, name="method"),
    path("leaderboards/", views.index, name="index"),
    path("leaderboards/<str:name>/", views.benchmark, name="benchmark"),
    path("leaderboards/<str:name>/models/", boards.models, name="models"),
    path("leaderboards/<str:name>/models/editions/new/", editions.edition_new, name="edition-new"),
    path("leaderboards/<str:name>/models/matrix/", plots.matrix, name="matrix"),
    path("leaderboards/<str:name>/models/profile/", plots.profile, name="profile"),
    path("leaderboards/<str:name>/models/together/", plots.together, name="together"),
    path("leaderboards/<str:name>/plots/<slug:what>.svg", plots.plot, name="plot"),
    path("leaderboards/<str:name>/models/compare/", versus.models, name="models-compare"),
    path("leaderboards/<str:name>/judges/compare/", versus.judges, name="judges-compare"),
    path("leaderboards/<str:name>/judges/", boards.judges, name="judges"),
    path("leaderboards/<str:name>/correlation/", boards.correlation, name="correlation"),
    path("leaderboards/<str:name>/bias/", boards.bias, name="bias"),
    path("leaderboards/<str:name>/agreement/", boards.agreement, name="agreement"),
    path("leaderboards/<str:name>/<slug:what>/rows.<slug:shape>", snapshots.board_file, name="board-file"),
    path("leaderboards/<str:name>/<slug:what>/freeze/", snapshots.snapshot_new, name="snapshot-new"),
    path("leaderboards/<str:name>/snapshots/", snapshots.snapshot_list, name="snapshot-list"),
    path("snapshots/<slug:code>/", snapshots.snapshot_detail, name="snapshot-detail"),
    path("snapshots/<slug:code>/rows.<slug:shape>", snapshots.snapshot_file, name="snapshot-file"),
    path("snapshots/<slug:code>/changes/<slug:other>/", snapshots.snapshot_changes, name="snapshot-changes"),
    path("leaderboards/<str:name>/answers/", rows.answers, name="answers"),
    path("leaderboards/<str:name>/votes/", rows.votes, name="votes"),
    path("leaderboards/<str:name>/compare/", rows.compare, name="compare"),
    path("leaderboards/<str:name>/items/<int:pk>/", rows.item, name="item"),
    path("submissions/", submissions.submission_list, name="submission-list"),
    path("submissions/new/", submissions.submission_new, name="submission-new"),
    path("submissions/export.csv", submissions.submission_export, name="submission-export"),
    path("submissions/template/<str:name>/", submissions.submission_template, name="submission-template"),
    path("submissions/rules/<str:name>/", submissions.submission_rules, name="submission-rules"),
    path("submissions/<int:pk>/", submissions.submission_detail, name="submission-detail"),
    path("submissions/<int:pk>/problems.csv", submissions.submission_problems, name="submission-problems"),
    path("submissions/<int:pk>/answers.csv", submissions.submission_marks, name="submission-marks"),
    path("submissions/<int:pk>/withdraw/", submissions.submission_withdraw, name="submission-withdraw"),
    path("submissions/<int:pk>/restore/", submissions.submission_restore, name="submission-restore"),
    path("submissions/<int:pk>/release/", submissions.submission_release, name="submission-release"),
    path("submissions/<int:pk>/rescore/", submissions.submission_rescore, name="submission-rescore"),
]
