"""Forms of the accounts pages."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from bank.models import FailedSignIn

ATTEMPTS = 10
WINDOW = timedelta(minutes=15)


class SignIn(AuthenticationForm):
    """Name and password; after 10 failures for a name or from an address it waits a quarter of an hour."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"
        self.fields["username"].label = _("Name")

    def clean(self) -> dict[str, Any]:
        name = str(self.cleaned_data.get("username", ""))[:150]
        # The peer's own address: a forwarded one can be made up by anybody.
        address = self.request.META["REMOTE_ADDR"] if self.request else "127.0.0.1"
        recent = FailedSignIn.objects.filter(at__gt=timezone.now() - WINDOW)
        if recent.filter(Q(name=name) | Q(address=address)).count() >= ATTEMPTS:
            raise ValidationError(_("Too many attempts. Wait a quarter of an hour, then try again."))
        try:
            cleaned = super().clean()
        except ValidationError:
            FailedSignIn.objects.create(name=name, address=address)
            raise
        FailedSignIn.objects.filter(name=name).delete()
        return cleaned
