"""Forms for signing in, accounts and preferences."""

import json
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordResetForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from accounts import attempts, audit, mail, second_factor
from accounts.http import client_address
from accounts.models import Right, Role, Scope, Team, User
from accounts.rules import scopes_of

MAY = {
    Role.GUEST: "labels where an invitation or a right lets them, and sees what visitors see",
    Role.ANNOTATOR: "labels answers in the browser",
    Role.RESEARCHER: "reads leaderboards, runs and labels, submits responses",
    Role.CURATOR: "bank, criteria, campaigns, judges and runs",
    Role.ADMINISTRATOR: "everything, and people",
}
LONGEST_ADDRESS = User._meta.get_field("email").max_length  # else PostgreSQL refuses the row
# The actions that keys can be bound to; static/js/labelling.js carries them out.
ACTIONS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tie", "undecided"),
    *("skip", "flag", "comment", "guidelines", "help", "zoom", "turn", "both", "mark", "whole"),
)


class Styled(forms.Form):
    """A form whose controls look as the style sheet draws them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for field in self.fields.values():
            ticks = isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple | forms.RadioSelect)
            field.widget.attrs.setdefault("class", "check" if ticks else "input")


class SignInForm(Styled, AuthenticationForm):
    """Name and password. ``accounts.attempts`` limits the attempts."""

    error_messages = AuthenticationForm.error_messages | {"invalid_login": lazy("The name or password is wrong.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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
            raise ValidationError(attempts.TOO_MANY)
        try:
            cleaned = super().clean()
        except ValidationError:
            audit.record("sign-in-failed", name=name, address=address)
            raise
        attempt.succeeded()
        return cleaned


class CodeForm(Styled):
    """A code from the app, or a recovery code."""

    code = forms.CharField(
        label=lazy("Code"),
        max_length=20,
        help_text=lazy("Six digits from your app, or a recovery code."),
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True}),
    )
    recovery: Sequence[str] = ()  # of codes that were just set up

    def takes(self, person: User, request: HttpRequest, *, confirm: bool = False) -> bool:
        """Whether the code is right; else the form says why not."""
        code = self.cleaned_data["code"]
        try:
            if confirm:
                self.recovery = second_factor.confirm(person, request=request, code=code)
            else:
                second_factor.check(person, request=request, code=code)
        except ValidationError as error:
            self.add_error("code", error)
            return False
        return True


class ResetForm(Styled, PasswordResetForm):
    """Asks for the address to which a link for a new password goes. It tells nobody whether an account has it."""

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        self.fields["email"].label = _("E-mail address")

    def clean(self) -> dict[str, Any] | None:
        email = self.cleaned_data.get("email", "")
        if email and not attempts.begin(self.request, f"password of {email}").allowed:
            raise ValidationError(attempts.TOO_MANY)
        return super().clean()

    def send_mail(
        self,
        subject_template_name: str,
        email_template_name: str,
        context: dict[str, Any],
        from_email: str | None,
        to_email: str,
        html_email_template_name: str | None = None,
    ) -> None:
        # Under the site's own name where that is known: whoever asks for another's password chooses the host asked.
        mail.queue_password_link(context["user"], host=f"{context['protocol']}://{context['domain']}")


class NewAccount(Styled):
    name = forms.CharField(max_length=150, help_text="Letters, digits and @ . + - _")
    role = forms.ChoiceField(choices=[(role, f"{role}: {may}") for role, may in MAY.items() if role != Role.GUEST])
    email = forms.EmailField(
        max_length=LONGEST_ADDRESS,
        required=False,
        label="E-mail address",
    )
    password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 10 characters. Empty: one is generated and shown once.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        linked = "Without a password below, a link for choosing one is mailed there."
        unset = "For notices, once mail is set up. Nothing is mailed now."
        self.fields["email"].help_text = linked if mail.is_set_up() else unset


class NewGrant(Styled):
    """A right for a benchmark, and the person or team that it is for (``to``)."""

    person = forms.CharField(label="Person", required=False, max_length=150, help_text="The name of an account.")
    team = forms.ModelChoiceField(label="Or a team", queryset=Team.objects.all(), required=False, empty_label="none")
    right = forms.ChoiceField(label="May", choices=Right.choices, widget=forms.RadioSelect, initial=Right.VIEW)

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        name, team = data.get("person", ""), data.get("team")
        if bool(name) == bool(team):
            raise ValidationError("Name a person or a team.")
        data["to"] = team or _account(name)
        return data


class NewMember(Styled):
    """Who comes into a team."""

    person = forms.CharField(label="Person", max_length=150, help_text="The name of an account.")

    def clean_person(self) -> User:
        return _account(self.cleaned_data["person"])


def _account(name: str) -> User:
    account = User.objects.filter(username__iexact=name, is_active=True).first()
    if account is None:
        raise ValidationError(f"There is no account {name!r} that is switched on.")
    return account


class NewToken(Styled):
    """What a token may do, and when it ends."""

    PERIODS = (30, 90, 365)  # days
    UNTIL = "day"

    name = forms.CharField(label=lazy("What it is for"), required=False, max_length=60)
    scopes = forms.MultipleChoiceField(
        label=lazy("It may"),
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ],
        error_messages={"required": lazy("Choose what the token may do.")},
    )
    ends = forms.ChoiceField(label=lazy("It ends"))
    day = forms.DateField(
        label=lazy("Last day"), required=False, widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})
    )

    def __init__(self, *args: Any, person: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        most = settings.TOKEN_MAX_DAYS
        scopes, ends = cast(Any, self.fields["scopes"]), cast(Any, self.fields["ends"])
        scopes.choices = [(scope.value, scope.label) for scope in scopes_of(person)]
        periods = sorted({days for days in self.PERIODS if days < most} | {most})
        in_days = [(str(days), _("in {days} days").format(days=days)) for days in periods]
        ends.choices = [*in_days, (self.UNTIL, _("after the last day below"))]
        ends.initial = str(self.PERIODS[1] if self.PERIODS[1] in periods else most)

    def clean(self) -> dict[str, Any]:
        """How long it lasts (``lasts``): the days chosen, or up to the end of the day."""
        data = self.cleaned_data
        if data.get("ends") != self.UNTIL:
            data["lasts"] = timedelta(days=int(data.get("ends") or 0))
        elif data.get("day"):
            data["lasts"] = timezone.make_aware(datetime.combine(data["day"], time.max)) - timezone.now()
        elif "day" in data:
            self.add_error("day", _("Name the last day, such as 2027-03-31."))
        return data


class Preferences(Styled):
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
    email = forms.EmailField(
        max_length=LONGEST_ADDRESS,
        label=lazy("E-mail address"),
        required=False,
        help_text=lazy("For notices, and for a new password."),
    )
    password = forms.CharField(
        label=lazy("Your password"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        help_text=lazy("Only to change the address."),
    )
    mail = forms.ChoiceField(
        label=lazy("Notices by mail"),
        required=False,
        choices=[("", lazy("As they come")), ("daily", lazy("Once a day")), ("never", lazy("Never"))],
    )

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        language: Any = self.fields["language"]
        language.choices = [("", _("Same as the browser")), *settings.LANGUAGES]

    def clean(self) -> dict[str, Any]:
        """Links for a new password go to the address: whoever finds an open browser must not change it."""
        data, person = self.cleaned_data, self.request.user
        if "email" in data and data["email"] != self.initial.get("email"):
            attempt = attempts.begin(self.request, person.get_username())
            if not attempt.allowed:
                self.add_error("password", ValidationError(attempts.TOO_MANY))
            elif person.check_password(data.get("password", "")):
                attempt.succeeded()
            else:
                self.add_error("password", _("Type your password to change the address."))
        return data


def bound_keys(text: str) -> dict[str, str]:
    """Keyboard bindings from JSON, by action: one character each, none twice. Raises ValueError."""
    saved = json.loads(text or "{}")
    if not isinstance(saved, dict) or set(saved) - set(ACTIONS):
        raise ValueError("not a set of keys")
    keys = list(saved.values())
    if len(set(map(str, keys))) < len(keys) or not all(isinstance(key, str) and len(key) == 1 for key in keys):
        raise ValueError("a key is one character and means one thing")
    return cast(dict[str, str], saved)
