"""In which language a page speaks.

Pages that annotators meet are translated whole and speak the person's language, else the browser's. All others speak
English: a page half translated is worse than one in a language that its reader did not choose.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers

TRANSLATED = ("/annotate/", "/accounts/", "/invitations/")


def speak(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Activate the page's language for the time of the request."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(TRANSLATED):
            return get_response(request)
        with translation.override(language_of(request)):
            response = get_response(request)
        patch_vary_headers(response, ("Accept-Language",))
        return response

    return middleware


def language_of(request: HttpRequest) -> str:
    """What the person chose, else what the browser asks for, else English."""
    chosen = getattr(request.user, "preferences", {}).get("language")
    if chosen in dict(settings.LANGUAGES):
        return str(chosen)
    return translation.get_language_from_request(request)
