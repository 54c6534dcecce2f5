"""Another password of one's own."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.db import transaction
from django.http import HttpResponse
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from knox.models import AuthToken

from accounts import audit
from accounts.address import client_address


class NewPassword(PasswordChangeView):
    """The old one is asked for; other devices are signed out and tokens for the API end, for whoever has them."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("accounts:settings")

    def get_form(self, form_class: Any = None) -> PasswordChangeForm:
        form: PasswordChangeForm = super().get_form(form_class)
        for field in form.fields.values():
            field.widget.attrs["class"] = "input"
            field.help_text = ""
        form.fields["new_password1"].help_text = _("At least 10 characters.")
        return form

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            AuthToken.objects.filter(user=form.user).delete()
            about = form.user.get_username()
            audit.record("password-changed", by=form.user, about=about, address=client_address(self.request))
        messages.success(
            self.request,
            _("Your password is changed. Other devices are signed out, and tokens for the API have ended."),
        )
        return response
