"""Signing in and out, one's own settings, password and tokens."""

from django.urls import path

from bank.access import requires
from evalsite.password import NewPassword
from evalsite.preferences import preferences
from evalsite.sign_in import SignIn, SignOut
from evalsite.tokens import tokens

app_name = "accounts"
urlpatterns = [
    path("sign-in/", requires("read-public")(SignIn.as_view()), name="sign-in"),
    path("settings/", preferences, name="settings"),
    path("password/", requires("be-signed-in")(NewPassword.as_view()), name="password"),
    path("tokens/", tokens, name="tokens"),
    path("sign-out/", requires("be-signed-in")(SignOut.as_view()), name="sign-out"),
]
