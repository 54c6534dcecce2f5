"""How pages look and speak to a person: language, light or dark, size of text, layout of the labelling page, keys."""

import json
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import override
from django.views.decorators.http import require_http_methods

from bank.access import requires
from bank.models import User
from evalsite.language import language_of

# What a key may be bound to. The script knows what they do; see static/js/labelling.js.
ACTIONS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tie", "undecided"),
    *("skip", "flag", "comment", "guidelines", "help", "zoom", "turn", "both", "mark"),
)
YEAR = 365 * 24 * 3600


class Preferences(forms.Form):
    language = forms.ChoiceField(label=lazy("Language"), required=False)
    theme = forms.ChoiceField(
        label=lazy("Colours"),
        required=False,
        choices=[("", lazy("As the device has them")), ("light", lazy("Light")), ("dark", lazy("Dark"))],
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
    at_once = forms.BooleanField(label=lazy("Submit at once after the choice"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        language: Any = self.fields["language"]
        language.choices = [("", _("As the browser asks")), *settings.LANGUAGES]
        for name, field in self.fields.items():
            if name != "at_once":
                field.widget.attrs["class"] = "input"


def bound_keys(text: str) -> dict[str, str]:
    """Keys by action out of JSON: one character each, none twice. Raises ValueError."""
    given = json.loads(text or "{}")
    if not isinstance(given, dict) or set(given) - set(ACTIONS):
        raise ValueError("not a set of keys")
    keys = list(given.values())
    if len(set(map(str, keys))) < len(keys) or not all(isinstance(key, str) and len(key) == 1 for key in keys):
        raise ValueError("a key is one character and means one thing")
    return cast(dict[str, str], given)


@requires("be-signed-in")
@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """The person's own settings. The labelling page sends its own part of them alone."""
    user = cast(User, request.user)
    back = request.POST.get("next") or request.GET.get("next", "")
    back = (
        back
        if back.startswith("/") and url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
        else ""
    )
    if request.method == "POST" and request.headers.get("X-Fragment"):
        try:
            keys = {"keyboard": bound_keys(request.POST["keys"])} if "keys" in request.POST else {}
        except (ValueError, RecursionError):
            return JsonResponse({"error": _("These keys cannot be kept.")}, status=400)
        at_once = {"at_once": bool(request.POST["at_once"])} if "at_once" in request.POST else {}
        _keep(user, keys | at_once)
        return JsonResponse({"saved": True})
    form = Preferences(request.POST if request.method == "POST" else None, initial=user.preferences)
    if request.method == "POST" and form.is_valid():
        _keep(user, form.cleaned_data)
        with override(language_of(request)):
            messages.success(request, _("Your settings are kept."))
        response = redirect(back or "accounts:settings")
        if form.cleaned_data["theme"]:
            response.set_cookie("theme", form.cleaned_data["theme"], max_age=YEAR, samesite="Lax")
        else:
            response.delete_cookie("theme")
        return response
    return render(request, "accounts/settings.html", {"form": form, "next": back})


def _keep(user: User, values: dict[str, Any]) -> None:
    user.preferences = {name: value for name, value in (user.preferences | values).items() if value}
    user.save(update_fields=["preferences"])
