"""Forms for signing in, accounts and preferences."""

import json
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from accounts import attempts, audit
from accounts.http import client_address
from accounts.models import Role

MAY = {
    Role.ANNOTATOR: "labels answers in the browser",
    Role.RESEARCHER: "reads leaderboards, runs and labels, submits responses",
    Role.CURATOR: "bank, criteria, campaigns, judges and runs",
    Role.ADMINISTRATOR: "everything, and people",
}
# The actions that keys can be bound to; static/js/labelling.js carries them out.
ACTIONS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tie", "undecided"),
    *("skip", "flag", "comment", "guidelines", "help", "zoom", "turn", "both", "mark"),
)


class Styled(forms.Form):
    """A form whose controls look as the style sheet draws them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for field in self.fields.values():
            ticks = isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple | forms.RadioSelect)
            field.widget.attrs.setdefault("class", "check" if ticks else "input")


class SignInForm(AuthenticationForm):
    """Name and password. ``accounts.attempts`` limits the attempts."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": lazy(
            "The name or password is wrong. If you forgot it, an administrator can give you a new one."
        )
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
            raise ValidationError(_("Too many attempts. Wait 15 minutes, then try again."))
        try:
            cleaned = super().clean()
        except ValidationError:
            audit.record("sign-in-failed", name=name, address=address)
            raise
        attempt.succeeded()
        return cleaned


class NewAccount(Styled):
    name = forms.CharField(max_length=150, help_text="Letters, digits and @ . + - _")
    role = forms.ChoiceField(choices=[(role, f"{role}: {may}") for role, may in MAY.items()])
    password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 10 characters. Empty: one is generated and shown once.",
    )


class Preferences(forms.Form):
    language = forms.ChoiceField(label=lazy("Language"), required=False)
    theme = forms.ChoiceField(
        label=lazy("Colours"),
        required=False,
        choices=[("", lazy("Same as the device")), ("light", lazy("Light")), ("dark", lazy("Dark"))],
    )
    text = forms.ChoiceField(
        label=lazy("Size of text"),
        required=False,
        choices=[("", lazy("Normal")), ("large", lazy("Large")), ("larger", lazy("Larger"))],
    )
    layout = forms.ChoiceField(
        label=lazy("Labelling page"),
        required=False,
        choices=[
            ("", lazy("Picture left, answers side by side")),
            ("right", lazy("Picture right, answers side by side")),
            ("stacked", lazy("Picture left, answers one below the other")),
        ],
    )
    at_once = forms.BooleanField(label=lazy("Submit right after choosing"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        language: Any = self.fields["language"]
        language.choices = [("", _("Same as the browser")), *settings.LANGUAGES]
        for name, field in self.fields.items():
            if name != "at_once":
                field.widget.attrs["class"] = "input"


def bound_keys(text: str) -> dict[str, str]:
    """Keyboard bindings from JSON, by action: one character each, none twice. Raises ValueError."""
    saved = json.loads(text or "{}")
    if not isinstance(saved, dict) or set(saved) - set(ACTIONS):
        raise ValueError("not a set of keys")
    keys = list(saved.values())
    if len(set(map(str, keys))) < len(keys) or not all(isinstance(key, str) and len(key) == 1 for key in keys):
        raise ValueError("a key is one character and means one thing")
    return cast(dict[str, str], saved)
