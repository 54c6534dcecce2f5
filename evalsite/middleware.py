"""Headers that Django and django-csp do not set."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()"


def headers(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Keep other origins from embedding what we send, and signed-in pages out of every cache."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        response.setdefault("Permissions-Policy", PERMISSIONS)
        user = getattr(request, "user", None)
        if user is not None and user.is_authenticated:
            # Scripts may ask again by ETag; a page seen signed in is kept nowhere.
            api = request.path.startswith("/api/")
            response.setdefault("Cache-Control", "private, no-cache" if api else "no-store")
        return response

    return middleware
