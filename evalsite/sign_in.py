"""Signing in."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.utils.translation import gettext as _

from accounts import attempts


class Form(AuthenticationForm):
    """Name and password; how often it may be tried stands in ``accounts.attempts``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"
        self.fields["username"].label = _("Name")

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username")
        if self.request is None or not name or not self.cleaned_data.get("password"):
            return super().clean()
        attempt = attempts.begin(self.request, name)
        if not attempt.allowed:
            raise ValidationError(_("Too many attempts. Wait a quarter of an hour, then try again."))
        cleaned = super().clean()
        attempt.succeeded()
        return cleaned


class SignIn(LoginView):
    template_name = "accounts/sign-in.html"
    authentication_form = Form

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        attempts.remember(self.request, response, form.get_user().get_username())
        return response
