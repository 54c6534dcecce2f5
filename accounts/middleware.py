"""Middleware that depends on the user: the access rule of the view, and the language of the page."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.utils import translation
from django.utils.cache import patch_vary_headers

from accounts import second_factor
from accounts.models import User
from accounts.rules import admitted, labels_only, opened_by, rule_of

# Annotators' pages are fully translated, into the language of the person or else the browser. All other pages are in
# English, and say so: a half-translated page is worse than one in a language the reader did not choose.
TRANSLATED = ("/annotate/", "/accounts/", "/invitations/")
HOME_OF_ANNOTATORS = ("/", "/boards-fed/")


def speak(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Activate the page's language for the request."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with translation.override(language_of(request) if is_translated(request) else settings.LANGUAGE_CODE):
            response = get_response(request)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            patch_vary_headers(response, ("Accept-Language",))
        return response

    return middleware


def is_translated(request: HttpRequest) -> bool:
    if request.path in HOME_OF_ANNOTATORS:
        return labels_only(request.user)
    return request.path.startswith(TRANSLATED)


def language_of(request: HttpRequest) -> str:
    """The language the person chose, else the one the browser asks for, else English."""
    chosen = getattr(request.user, "preferences", {}).get("language")
    if chosen in dict(settings.LANGUAGES):
        return str(chosen)
    return translation.get_language_from_request(request)


def note_language(sender: Any, *, request: HttpRequest, user: User, **_options: Any) -> None:
    """Keep the language of the browser with which somebody signs in, for what is told when they are away."""
    language = translation.get_language_from_request(request)
    if language != user.preferences.get("browser_language", settings.LANGUAGE_CODE):
        user.preferences |= {"browser_language": language}
        user.save(update_fields=["preferences"])


class AccessMiddleware:
    """Closes every view that declares no rule, and enforces the declared rule on pages. Staff who lack a second factor
    where they must have one meet the page that sets it up.

    API views authenticate later (by token); ``Declared`` applies the same table to them.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        rule = rule_of(view)
        if rule is None:
            raise Http404("undeclared")
        if second_factor.is_lacking(request) and not getattr(view, "before_second_factor", False):
            if hasattr(view, "cls"):
                return JsonResponse({"detail": "Set up your second factor first, in the browser."}, status=403)
            return redirect("accounts:second-factor")
        if hasattr(view, "cls") or admitted(rule, request.user, opened_by(view), kwargs):
            return None
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.get_full_path())
