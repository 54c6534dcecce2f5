"""Signing in and out, one's own settings, password and tokens; for administrators people and the audit log."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext as _
from django.utils.translation import override
from django.views.decorators.http import require_http_methods, require_safe
from knox.models import AuthToken

from accounts import actions, attempts, audit, csv
from accounts.forms import MAY, NewAccount, Preferences, SignInForm, bound_keys
from accounts.http import PageRequest, client_address
from accounts.middleware import language_of
from accounts.models import AuditEntry, Role, User
from accounts.rules import requires

A_PAGE = 100
YEAR = 365 * 24 * 3600
MOST_TOKENS = 10
SHOWN = 8  # characters of a token that tell it from one's others
FILTERS = ("person", "action", "since", "until")
HEAD = ("number", "time", "action", "who", "about", "address", "details", "digest")
NOT_A_DAY = "Days are written like 2026-03-31; this filter was left out."


class SignIn(LoginView):
    template_name = "accounts/sign-in.html"
    authentication_form = SignInForm

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


@requires("be-signed-in")
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """A new token stands in the answer that made it and never again, for only its hash is stored."""
    user = cast(User, request.user)
    own = AuthToken.objects.filter(user=user).order_by("-created")
    context: dict[str, Any] = {"most": MOST_TOKENS}
    if request.method == "POST" and "revoke" in request.POST:
        start = request.POST["revoke"]
        if len(start) == SHOWN and own.filter(token_key__startswith=start).delete()[0]:
            audit.record("token-ended", by=user, about=start, address=client_address(request))
            messages.success(request, _("The token is revoked. Scripts that send it are refused from now on."))
        return redirect("accounts:tokens")
    if request.method == "POST" and own.count() < MOST_TOKENS:
        made, context["made"] = AuthToken.objects.create(user)
        audit.record("token-made", by=user, about=made.token_key[:SHOWN], address=client_address(request))
    context["tokens"] = [(token.token_key[:SHOWN], token.created) for token in own]
    return render(request, "accounts/tokens.html", context)


@requires("be-signed-in")
@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: PageRequest) -> HttpResponse:
    """The person's own settings. The labelling page sends its own part of them alone."""
    user = cast(User, request.user)
    back = request.POST.get("next") or request.GET.get("next", "")
    back = (
        back
        if back.startswith("/") and url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
        else ""
    )
    if request.method == "POST" and request.htmx:
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
        except ValidationError as error:
            form.add_error(None, error)
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
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return redirect("person", pk)
        if said:
            messages.success(request, said)
            return redirect(reverse("person", args=[pk]))
    context["tokens"] = AuthToken.objects.filter(user=found).count()
    return render(request, "accounts/person.html", context)


def _done(do: str, role: str, found: User, by: User, context: dict[str, Any]) -> str:
    """What was done, in words; empty where the answer itself shows it. Raises ValidationError."""
    match do:
        case "role":
            actions.set_role(person=found, role=role, by=by)
            return f"{found.username} is {found.role} now."
        case "password":
            if found == by:
                raise ValidationError("Your own password is changed in your settings.")
            context["password"] = actions.new_password(person=found, by=by)
            return ""
        case "off" | "on":
            actions.set_active(person=found, active=do == "on", by=by)
            return f"{found.username} can {'sign in again' if do == 'on' else 'no longer sign in'}."
    raise ValidationError("There is nothing of that name to do.")


@requires("administer")
@require_safe
def audit_log(request: HttpRequest) -> HttpResponse:
    """What was done, newest first, by action, person and day."""
    found, given, problem = _entries(request)
    shown = Paginator(found, A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "audit",
        "page": shown,
        "rows": [(entry, audit.ACTIONS.get(entry.action, entry.action), _told(entry.details)) for entry in shown],
        "given": given,
        "query": urlencode(given),
        "actions": audit.ACTIONS.items(),
        "problem": problem,
    }
    return render(request, "accounts/audit.html", context)


@requires("administer")
@require_safe
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """The same entries as CSV, all of them, oldest first, with the digests that chain them."""
    found, _, _ = _entries(request)
    return csv.download("audit-log.csv", HEAD, _rows(found.order_by("number")))


def _told(details: dict[str, Any]) -> list[tuple[str, str]]:
    """Each detail in short, and in full where that leaves something out."""
    return [
        (f"{len(value)} {name}", ", ".join(map(str, value))) if isinstance(value, list) else (f"{name} {value}", "")
        for name, value in details.items()
        if value is not False
    ]


def _rows(found: "QuerySet[AuditEntry]") -> Iterator[list[object]]:
    for one in found.iterator():
        details = " ".join(f"{name}={value}" for name, value in one.details.items())
        when = one.at.isoformat(timespec="seconds")
        yield [one.number, when, one.action, one.name or one.command, one.about, one.address, details, one.digest]


def _entries(request: HttpRequest) -> tuple["QuerySet[AuditEntry]", dict[str, str], str]:
    """The entries that the address asks for, its filters, and what is wrong with them in words."""
    given = {name: request.GET.get(name, "").strip().replace("\x00", "")[:150] for name in FILTERS}
    given, problem = {name: value for name, value in given.items() if value}, ""
    if given.get("action") not in audit.ACTIONS:
        given.pop("action", None)
    found = AuditEntry.objects.select_related("who").order_by("-number")
    if "person" in given:
        found = found.filter(Q(name=given["person"]) | Q(command=given["person"]) | Q(about=given["person"]))
    if "action" in given:
        found = found.filter(action=given["action"])
    for name, lookup, days in (("since", "at__gte", 0), ("until", "at__lt", 1)):
        if name in given:
            try:
                day = date.fromisoformat(given[name]) + timedelta(days=days)
                found = found.filter(**{lookup: datetime.combine(day, time.min, tzinfo=UTC)})
            except (ValueError, OverflowError):
                problem = NOT_A_DAY
    return found, given, problem
