"""The people who sign in, for administrators: accounts, roles, passwords."""

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods
from knox.models import AuthToken

from annotations import actions
from bank.access import requires
from bank.actions import BadInput
from bank.forms import Styled
from bank.models import User
from bank.models.people import Role

A_PAGE = 100
MAY = {
    Role.ANNOTATOR: "labels answers in the browser",
    Role.RESEARCHER: "reads leaderboards, runs and labels, submits responses",
    Role.CURATOR: "bank, criteria, campaigns, judges and runs",
    Role.ADMINISTRATOR: "everything, and people",
}


class NewAccount(Styled):
    name = forms.CharField(max_length=150, help_text="Letters, digits and @ . + - _")
    role = forms.ChoiceField(choices=[(role, f"{role}: {may}") for role, may in MAY.items()])
    password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 10 characters. Empty: one is made up and shown once.",
    )


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    """Every account, and a form for another one. A password that was made up stands in this one answer."""
    context: dict[str, Any] = {"section": "people"}
    form = NewAccount(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made, password = actions.make_account(
                name=given["name"], role=given["role"], password=given["password"] or None, by=cast(User, request.user)
            )
        except BadInput as error:
            form.add_error(None, str(error))
        else:
            if given["password"]:
                messages.success(request, f"{made.username} can sign in now, as {made.role}.")
                return redirect("people")
            context["made"] = (made, password)
            form = NewAccount()
    search, role = request.GET.get("q", "").strip()[:150], request.GET.get("role", "")
    found = User.objects.annotate(tokens=Count("auth_token_set")).order_by("username")
    if search:
        found = found.filter(username__icontains=search)
    if role in Role.values:
        found = found.filter(role=role)
    context |= {
        "form": form,
        "page": Paginator(found, A_PAGE).get_page(request.GET.get("page")),
        "search": search,
        "role": role,
        "roles": Role.values,
        "query": urlencode({name: value for name, value in (("q", search), ("role", role)) if value}),
    }
    return render(request, "accounts/people.html", context, status=400 if form.errors else 200)


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
def person(request: HttpRequest, pk: int) -> HttpResponse:
    """One account: its role, another password, off and on."""
    found, by = get_object_or_404(User, pk=pk), cast(User, request.user)
    context: dict[str, Any] = {"section": "people", "person": found, "own": found == by, "roles": MAY.items()}
    if request.method == "POST":
        try:
            said = _done(request.POST.get("do", ""), request.POST.get("role", ""), found, by, context)
        except BadInput as error:
            messages.error(request, str(error))
            return redirect("person", pk)
        if said:
            messages.success(request, said)
            return redirect(reverse("person", args=[pk]))
    context["tokens"] = AuthToken.objects.filter(user=found).count()
    return render(request, "accounts/person.html", context)


def _done(do: str, role: str, found: User, by: User, context: dict[str, Any]) -> str:
    """What was done, in words; empty where the answer itself shows it. Raises BadInput."""
    match do:
        case "role":
            actions.set_role(person=found, role=role, by=by)
            return f"{found.username} is {found.role} now."
        case "password":
            if found == by:
                raise BadInput("Your own password is changed in your settings.")
            context["password"] = actions.new_password(person=found, by=by)
            return ""
        case "off" | "on":
            actions.set_active(person=found, active=do == "on", by=by)
            return f"{found.username} can {'sign in again' if do == 'on' else 'no longer sign in'}."
    raise BadInput("There is nothing of that name to do.")
