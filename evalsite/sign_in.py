"""Signing in and out. Each is in the audit log; of refused attempts the first of a quarter of an hour."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import attempts, audit
from accounts.address import client_address


class Form(AuthenticationForm):
    """Name and password; how often it may be tried stands in ``accounts.attempts``."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": gettext_lazy("Name or password is wrong. Forgotten? An administrator can give you a new one.")
    }

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
        address = client_address(self.request)
        if not attempt.allowed:
            if attempt.first_refused:
                audit.record("sign-in-failed", name=name, address=address, locked=True)
            raise ValidationError(_("Too many attempts. Wait a quarter of an hour, then try again."))
        try:
            cleaned = super().clean()
        except ValidationError:
            audit.record("sign-in-failed", name=name, address=address)
            raise
        attempt.succeeded()
        return cleaned


class SignIn(LoginView):
    template_name = "accounts/sign-in.html"
    authentication_form = Form

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        person = form.get_user()
        attempts.remember(self.request, response, person.get_username())
        audit.record("sign-in", by=person, address=client_address(self.request))
        return response


class SignOut(LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.user.is_authenticated:
            audit.record("sign-out", by=request.user, address=client_address(request))
        return super().post(request, *args, **kwargs)
