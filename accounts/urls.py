"""Pages for signing in and out, settings, password and tokens; ``people`` are pages for administrators."""

from django.conf import settings
from django.urls import path

from accounts import views
from accounts.rules import before_second_factor, requires

app_name = "accounts"
urlpatterns = [
    path("sign-in/", requires("read-public")(views.SignIn.as_view()), name="sign-in"),
    path("code/", views.code, name="code"),
    path("codes/", views.codes, name="second-factor"),
    path("settings/", views.preferences, name="settings"),
    path("password/", requires("be-signed-in")(views.NewPassword.as_view()), name="password"),
    path("password/reset/", requires("read-public")(views.ResetPassword.as_view()), name="password-reset"),
    path(
        "password/reset/<uidb64>/<token>/",
        requires("read-public")(views.ChoosePassword.as_view()),
        name="password-choose",
    ),
    path("notices/", views.notice_list, name="notices"),
    path("views/", views.saved_views, name="views"),
    path("tokens/", views.tokens, name="tokens"),
    path(
        "sign-out/",
        before_second_factor(requires("be-signed-in")(views.SignOut.as_view())),
        name="sign-out",
    ),
]
if settings.SSO_ISSUER:
    from accounts import sso

    urlpatterns += [
        path("sso/", sso.start, name="sso"),
        path("sso/callback/", sso.callback, name="sso-callback"),
    ]
people = [
    path("", views.people, name="people"),
    path("audit/", views.audit_log, name="audit"),
    path("audit/export/", views.audit_export, name="audit-export"),
    path("teams/", views.teams, name="teams"),
    path("teams/<int:pk>/", views.team, name="team"),
    path("<int:pk>/", views.account, name="person"),
]
