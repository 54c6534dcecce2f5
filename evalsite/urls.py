"""Every address of the site. Each view behind one carries its access rule; see accounts.rules."""

from django.urls import include, path
from django.views.generic import RedirectView

from accounts.rules import requires
from accounts.urls import people
from evalsite import health, metrics, styleguide, views
from leaderboard.views import home

api = [
    path("", include("bank.api.urls")),
    path("", include("judging.api.urls")),
    path("", include("annotations.api.urls")),
    path("", include("leaderboard.api.urls")),
]

urlpatterns = [
    path("", home, name="home"),
    path("accounts/", include("accounts.urls")),
    path("people/", include(people)),
    path("bank/", include("bank.urls")),
    path("judging/", include("judging.urls")),
    path("", include("annotations.urls")),  # /annotate/ and /campaigns/
    path("", include("leaderboard.urls")),  # / and /leaderboards/
    path("api/v1/", include(api)),
    path("api/schema/", views.api_schema, name="api-schema"),
    path("api/docs/", views.api_docs, name="api-docs"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("favicon.ico", requires("read-public")(RedirectView.as_view(url="/static/favicon.svg")), name="favicon"),
]

handler400 = "evalsite.views.bad_request"
handler403 = "evalsite.views.forbidden"
handler404 = "evalsite.views.not_found"
handler500 = "evalsite.views.server_error"
