"""One's own tokens for the API: made in the browser, shown once, revoked."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods
from knox.models import AuthToken

from accounts import audit
from accounts.address import client_address
from bank.access import requires
from bank.models import User

MOST = 10
SHOWN = 8  # characters of a token that tell it from one's others


@requires("be-signed-in")
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """A new token stands in the answer that made it and never again, for only its hash is stored."""
    user = cast(User, request.user)
    own = AuthToken.objects.filter(user=user).order_by("-created")
    context: dict[str, Any] = {"most": MOST}
    if request.method == "POST" and "revoke" in request.POST:
        start = request.POST["revoke"]
        if len(start) == SHOWN and own.filter(token_key__startswith=start).delete()[0]:
            audit.record("token-ended", by=user, about=start, address=client_address(request))
            messages.success(request, _("The token is revoked. Scripts that send it are refused from now on."))
        return redirect("accounts:tokens")
    if request.method == "POST" and own.count() < MOST:
        made, context["made"] = AuthToken.objects.create(user)
        audit.record("token-made", by=user, about=made.token_key[:SHOWN], address=client_address(request))
    context["tokens"] = [(token.token_key[:SHOWN], token.created) for token in own]
    return render(request, "accounts/tokens.html", context)
