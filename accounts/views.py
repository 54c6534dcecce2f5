"""Signing in and out, settings, password and tokens; people and the audit log for administrators."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import (
    LoginView,
    LogoutView,
    PasswordChangeView,
    PasswordResetConfirmView,
    PasswordResetView,
)
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import override
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.generic import FormView

from accounts import actions, attempts, audit, csv, mail, notices, rights, second_factor
from accounts.forms import (
    MAY,
    CodeForm,
    NewAccount,
    NewMember,
    NewToken,
    Preferences,
    ResetForm,
    SignInForm,
    bound_keys,
)
from accounts.http import (
    PageRequest,
    client_address,
    done,
    filters_of,
    form_page,
    of_this_site,
    page_of,
    person,
    posted,
    typed,
    way_on,
)
from accounts.middleware import language_of
from accounts.models import AuditEntry, Notice, Role, SavedView, Team, Token, User
from accounts.rules import before_second_factor, requires
from accounts.sign_on import connects
from accounts.tokens import make_token

PAGE_SIZE = 100
YEAR = 365 * 24 * 3600
MAX_TOKENS = 10
MAX_VIEWS = 50
MAX_PATH = 2_000
WAITS = "sign-in"  # in the session: whose password was right, until the code is
WAITS_FOR = 600  # seconds
LONGEST_NUMBER = 19  # a column holds any shorter one
FILTERS = ("person", "action", "since", "until")
HEAD = ("number", "time", "action", "who", "about", "address", "details", "digest")
INVALID_DAY = "Write days like 2026-03-31. This filter was ignored."


class SignIn(LoginView):
    template_name = "accounts/sign-in.html"
    authentication_form = SignInForm
    extra_context = {"sso": settings.SSO_ISSUER and settings.SSO_NAME}

    def get_default_redirect_url(self) -> str:
        return way_on(self.request, person(self.request), "")

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        person = form.get_user()
        if second_factor.of(person) is None:
            return _signed_in(self.request, person, super().form_valid(form))
        self.request.session.flush()
        # The hash ends it with the password that was typed.
        waits = {"person": person.pk, "hash": person.get_session_auth_hash(), "at": time.time()}
        self.request.session[WAITS] = waits | {"next": self.get_redirect_url()}
        return redirect("accounts:code")


def _signed_in(request: HttpRequest, person: User, response: HttpResponse) -> HttpResponse:
    attempts.remember(request, response, person.get_username())
    audit.record("sign-in", by=person, address=client_address(request))
    return response


@requires("read-public")
@never_cache
@form_page
def code(request: HttpRequest) -> HttpResponse:
    """The second step of signing in, for who has set up codes."""
    waits = request.session.get(WAITS, {})
    person = User.objects.filter(pk=waits.get("person"), is_active=True).first()
    is_over = time.time() - waits.get("at", 0) > WAITS_FOR
    if person is None or is_over or not constant_time_compare(waits["hash"], person.get_session_auth_hash()):
        return render(request, "accounts/code.html")
    form = CodeForm(posted(request))
    if form.is_valid() and form.takes(person, request):
        login(request, person, backend="django.contrib.auth.backends.ModelBackend")
        request.session.pop(WAITS, None)
        return _signed_in(request, person, redirect(way_on(request, person, waits["next"])))
    return render(request, "accounts/code.html", {"form": form})


@before_second_factor
@requires("be-signed-in")
@never_cache
@form_page
def codes(request: HttpRequest) -> HttpResponse:
    """Setting up two-factor authentication; new recovery codes; ending it. Each takes a code."""
    user = person(request)
    factor, required = second_factor.of(user), second_factor.is_required_of(user)
    form = CodeForm(posted(request))
    context: dict[str, Any] = {"form": form, "required": required}
    if factor is None:
        factor = second_factor.begin(user)
        if form.is_valid() and form.takes(user, request, confirm=True):
            return render(request, "accounts/codes.html", {"recovery": form.recovery})
        context |= {"secret": factor.secret, "address": second_factor.address_of(factor, request.get_host())}
        context["picture"] = second_factor.picture_of(context["address"])
    elif form.is_valid() and form.takes(user, request):
        if request.POST.get("do") == "remove" and not required:
            second_factor.remove(user, by=user, besides=request.session.session_key)
            return redirect("accounts:settings")
        return render(request, "accounts/codes.html", {"recovery": second_factor.new_recovery_codes(user)})
    else:
        context["left"] = len(factor.recovery)
    return render(request, "accounts/codes.html", context)


class SignOut(LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.user.is_authenticated:
            audit.record("sign-out", by=request.user, address=client_address(request))
        return super().post(request, *args, **kwargs)


class SetsPassword(FormView):
    """A page on which people set their password. API tokens, whoever holds them, end with the old one."""

    done: Promise

    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        for field in form.fields.values():
            field.widget.attrs["class"] = "input"
            field.help_text = ""
        form.fields["new_password1"].help_text = _("At least 10 characters.")
        return form

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            form.user.end_tokens()
            about = form.user.get_username()
            audit.record("password-changed", by=form.user, about=about, address=client_address(self.request))
        messages.success(self.request, str(self.done))
        return response


class NewPassword(SetsPassword, PasswordChangeView):
    """Asks for the old password. Signs other devices out."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("accounts:settings")
    done = lazy("Your password is changed. Other devices are signed out, and tokens for the API have ended.")


class ResetPassword(PasswordResetView):
    """Mails a link for a new password; where no mail is set up, says who can help."""

    template_name = "accounts/password-reset.html"
    form_class = ResetForm
    subject_template_name = "accounts/password-reset-subject.txt"
    email_template_name = "accounts/password-reset-mail.txt"
    success_url = reverse_lazy("accounts:sign-in")
    extra_context = {"mails": mail.is_set_up}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(
            self.request,
            _(
                "If an account has this address, a link for a new password is on its way there. "
                "It works for three days."
            ),
        )
        return super().form_valid(form)


class ChoosePassword(SetsPassword, PasswordResetConfirmView):
    """Where the mailed link leads."""

    template_name = "accounts/password-choose.html"
    success_url = reverse_lazy("accounts:sign-in")
    done = lazy("Your password is set. Sign in with it.")


@requires("be-signed-in")
@form_page
def notice_list(request: HttpRequest) -> HttpResponse:
    """What the person was told, newest first. Opening one marks it as read."""
    own = Notice.objects.filter(person=person(request))
    if request.method == "POST":
        number = request.POST.get("open", "")
        known = len(number) < LONGEST_NUMBER and number.isascii() and number.isdigit()
        opened = own.filter(pk=number).first() if known else None
        notices.mark_read([opened] if opened else own)
        return redirect(opened.link if opened else "accounts:notices")
    page = page_of(request, own, PAGE_SIZE)
    return render(request, "accounts/notices.html", {"page": page})


@requires("be-signed-in")
@form_page
def saved_views(request: HttpRequest) -> HttpResponse:
    """The person's views, which the list of leaderboards loads. By POST a page with its filters is kept under a name,
    or forgotten; the same name again replaces the page.
    """
    if request.method != "POST":
        if "HX-Request" not in request.headers:
            return redirect("leaderboard:index")  # the page that they stand on
        return render(request, "accounts/_views.html", {"views": person(request).saved_views.all()})
    user, path = person(request), request.POST.get("path", "").replace("\x00", "")
    name = " ".join(typed(request.POST, "name").split())[:80]
    if not path.startswith("/leaderboards/") or len(path) > MAX_PATH:
        messages.error(request, "This page cannot be saved as a view.")
        return redirect("home")
    if request.POST.get("do") == "forget":
        SavedView.objects.filter(person=user, path=path).delete()
        return redirect("leaderboard:index")
    elif not name:
        messages.error(request, "Give the view a name.")
    elif SavedView.objects.filter(person=user).exclude(name=name).count() >= MAX_VIEWS:
        messages.error(request, f"You keep {MAX_VIEWS} views already: forget one first.")
    else:
        SavedView.objects.update_or_create(person=user, name=name, defaults={"path": path})
        messages.success(request, f"Saved as “{name}”: it is in the list of views, and found by the search.")
    return redirect(path)


@requires("be-signed-in")
@form_page
def tokens(request: HttpRequest) -> HttpResponse:
    """API tokens. A new one is shown once, because only its hash is stored."""
    user, address = person(request), client_address(request)
    own = Token.objects.filter(user=user).order_by("-created")
    context: dict[str, Any] = {"most": MAX_TOKENS}
    if request.method == "POST" and "revoke" in request.POST:
        start = typed(request.POST, "revoke")
        if start and own.filter(token_key=start).delete()[0]:
            audit.record("token-ended", by=user, about=start, address=address)
            messages.success(request, _("The token is revoked. Scripts that send it are refused from now on."))
        return redirect("accounts:tokens")
    form = NewToken(posted(request), person=user)
    if form.is_bound and own.count() < MAX_TOKENS and form.is_valid():
        chosen = form.cleaned_data
        try:
            context["made"] = make_token(
                person=user,
                scopes=chosen["scopes"],
                lasts=chosen["lasts"],
                name=chosen["name"],
                by=user,
                address=address,
            )[1]
        except ValidationError as error:
            form.add_error("day", error)
        else:
            form = NewToken(person=user)
    context |= {"tokens": own, "form": form, "now": timezone.now()}
    return render(request, "accounts/tokens.html", context)


@requires("be-signed-in")
@form_page
def preferences(request: PageRequest) -> HttpResponse:
    """The person's own settings. The labelling page submits only its own part of them."""
    user = person(request)
    back = request.POST.get("next") or request.GET.get("next", "")
    back = of_this_site(request, back) if back.startswith("/") else ""
    if request.method == "POST" and request.htmx:
        try:
            keys = {"keyboard": bound_keys(request.POST["keys"])} if "keys" in request.POST else {}
        except (ValueError, RecursionError):
            return JsonResponse({"error": _("These keys cannot be kept.")}, status=400)
        at_once = {"at_once": bool(request.POST["at_once"])} if "at_once" in request.POST else {}
        _keep(user, keys | at_once)
        return JsonResponse({"saved": True})
    initial = user.preferences | {"email": user.email}
    form = Preferences(posted(request), initial=initial, request=request)
    if request.method == "POST" and form.is_valid():
        form.cleaned_data.pop("password")
        actions.set_email(person=user, email=form.cleaned_data.pop("email"), by=user)
        _keep(user, form.cleaned_data)
        with override(language_of(request)):
            messages.success(request, _("Your settings are saved."))
        response = redirect(back or "accounts:settings")
        if form.cleaned_data["theme"]:
            response.set_cookie("theme", form.cleaned_data["theme"], max_age=YEAR, samesite="Lax")
        else:
            response.delete_cookie("theme")
        return response
    context: dict[str, Any] = {"form": form, "next": back}
    if settings.SSO_ISSUER:
        context |= {"sso": settings.SSO_NAME, "connected": user.sign_ons.exists(), "connects": connects(request)}
    return render(request, "accounts/settings.html", context)


def _keep(user: User, values: dict[str, Any]) -> None:
    user.preferences = {name: value for name, value in (user.preferences | values).items() if value}
    user.save(update_fields=["preferences"])


@requires("administer")
@form_page
def people(request: HttpRequest) -> HttpResponse:
    """All accounts, and a form for a new one. A generated password is shown only once."""
    context: dict[str, Any] = {"section": "people"}
    form = NewAccount(posted(request))
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            account = data | {"password": data["password"] or None}
            made, password = actions.make_account(**account, by=person(request))
        except ValidationError as error:
            form.add_error(None, error)
        else:
            if data["password"]:
                return done(request, f"{made.username} can sign in now, as {made.role}.", "people")
            if made.email and mail.is_set_up():
                actions.mail_password_link(person=made)
                return done(
                    request, f"{made.username} is {made.role}. A link for choosing a password is mailed.", "people"
                )
            context["made"] = (made, password)
            form = NewAccount()
    given = filters_of(request, ("q", "role"), 150)
    accounts = User.objects.annotate(tokens=Count("auth_token_set")).order_by("username")
    if "q" in given:
        accounts = accounts.filter(Q(username__icontains=given["q"]) | Q(email__icontains=given["q"]))
    if given.get("role") in Role.values:
        accounts = accounts.filter(role=given["role"])
    context |= {
        "form": form,
        "page": page_of(request, accounts, PAGE_SIZE),
        "given": given,
        "roles": Role.values,
        "query": urlencode(given),
    }
    return render(request, "accounts/people.html", context, status=400 if form.errors else 200)


@requires("administer")
@form_page
def account(request: HttpRequest, pk: int) -> HttpResponse:
    """One account: its role, a new password, switching it off and on, erasing who it is of."""
    account, by = get_object_or_404(User, pk=pk), person(request)
    context: dict[str, Any] = {"section": "people", "person": account, "own": account == by, "roles": MAY.items()}
    if request.method == "POST":
        try:
            result = _apply(request.POST, account, by, context)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return redirect("person", pk)
        if result:
            return done(request, result, reverse("person", args=[pk]))
    context |= {"tokens": Token.objects.filter(user=account).count(), "mails": mail.is_set_up()}
    context |= {"codes": second_factor.of(account), "sign_ons": account.sign_ons.exists()}
    return render(request, "accounts/person.html", context)


@requires("administer")
@form_page
def teams(request: HttpRequest) -> HttpResponse:
    """All teams, and a form for a new one. What each may do stands at the benchmarks."""
    if request.method == "POST":
        try:
            made = rights.make_team(name=typed(request.POST, "name"), by=person(request))
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return redirect("teams")
        return redirect("team", made.pk)
    context = {"section": "people", "teams": Team.objects.annotate(people=Count("members"))}
    return render(request, "accounts/teams.html", context)


@requires("administer")
@form_page
def team(request: HttpRequest, pk: int) -> HttpResponse:
    """Who is in a team, and what is granted to it."""
    found, by = get_object_or_404(Team, pk=pk), person(request)
    form = NewMember(request.POST if "add" in request.POST else None)
    if "end" in request.POST:
        rights.end_team(team=found, by=by)
        return redirect("teams")
    if "remove" in request.POST:
        who = found.members.filter(username=typed(request.POST, "remove")).first()
        if who is not None:
            rights.set_member(team=found, person=who, member=False, by=by)
        return redirect("team", pk)
    if form.is_valid():
        rights.set_member(team=found, person=form.cleaned_data["person"], member=True, by=by)
        return redirect("team", pk)
    members, grants = found.members.order_by("username"), found.grants.all()
    context = {"section": "people", "team": found, "members": members, "grants": grants, "form": form}
    return render(request, "accounts/team.html", context, status=400 if form.errors else 200)


def _apply(posted: QueryDict, account: User, by: User, context: dict[str, Any]) -> str:
    """Carry out the action. Returns what was done, or "" if the page itself shows it. Raises ValidationError."""
    match do := posted.get("do", ""):
        case "email":
            actions.set_email(person=account, email=posted.get("email", "").strip(), by=by)
            return f"The address of {account.username} is saved."
        case "link":
            actions.mail_password_link(person=account)
            return f"A link for a new password is on its way to {account.email}."
        case "role":
            actions.set_role(person=account, role=posted.get("role", ""), by=by)
            return f"{account.username} is {account.role} now."
        case "password":
            if account == by:
                raise ValidationError("Change your own password in your settings.")
            context["password"] = actions.new_password(person=account, by=by)
            return ""
        case "codes":
            second_factor.remove(account, by=by)
            return f"{account.username} signs in by password alone until the codes are set up again."
        case "off" | "on":
            actions.set_active(person=account, active=do == "on", by=by)
            return f"{account.username} can {'sign in again' if do == 'on' else 'no longer sign in'}."
        case "erase":
            if posted.get("name") != account.username:
                raise ValidationError("Type the name of the account to erase it: that cannot be undone.")
            return f"Erased. What they did stays, under the name {actions.erase(person=account, by=by)}."
    raise ValidationError(f"Unknown action: {do[:40]!r}.")


@requires("administer")
@require_safe
def audit_log(request: HttpRequest) -> HttpResponse:
    """The entries, newest first, filtered by action, person and day."""
    entries, filters, problem = _entries(request)
    shown = page_of(request, entries, PAGE_SIZE)
    context = {
        "section": "audit",
        "page": shown,
        "rows": [(entry, audit.ACTIONS.get(entry.action, entry.action), _described(entry.details)) for entry in shown],
        "given": filters,
        "query": urlencode(filters),
        "actions": audit.ACTIONS.items(),
        "problem": problem,
    }
    return render(request, "accounts/audit.html", context)


@requires("administer")
@require_safe
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """The same entries as CSV, oldest first, with the digests that chain them."""
    entries, _, _ = _entries(request)
    return csv.download("audit-log.csv", HEAD, _rows(entries.order_by("number")))


def _described(details: dict[str, Any]) -> list[tuple[str, str]]:
    """Each detail in short, with the full text if the short one leaves something out."""
    return [
        (f"{len(value)} {name}", ", ".join(map(str, value))) if isinstance(value, list) else (f"{name} {value}", "")
        for name, value in details.items()
        if value is not False
    ]


def _rows(entries: "QuerySet[AuditEntry]") -> Iterator[list[object]]:
    for entry in entries.iterator():
        details = " ".join(f"{name}={value}" for name, value in entry.details.items())
        when = entry.at.isoformat(timespec="seconds")
        yield [
            entry.number,
            when,
            entry.action,
            entry.name or entry.command,
            entry.about,
            entry.address,
            details,
            entry.digest,
        ]


def _entries(request: HttpRequest) -> tuple["QuerySet[AuditEntry]", dict[str, str], str]:
    """The entries for the filters in the URL, the filters, and an error message."""
    filters, problem = filters_of(request, FILTERS, 150), ""
    if filters.get("action") not in audit.ACTIONS:
        filters.pop("action", None)
    entries = AuditEntry.objects.select_related("who").order_by("-number")
    if "person" in filters:
        entries = entries.filter(Q(name=filters["person"]) | Q(command=filters["person"]) | Q(about=filters["person"]))
    if "action" in filters:
        entries = entries.filter(action=filters["action"])
    for name, lookup, days in (("since", "at__gte", 0), ("until", "at__lt", 1)):
        if name in filters:
            try:
                day = date.fromisoformat(filters[name]) + timedelta(days=days)
                entries = entries.filter(**{lookup: datetime.combine(day, time_of_day.min, tzinfo=UTC)})
            except (ValueError, OverflowError):
                problem = INVALID_DAY
    return entries, filters, problem
