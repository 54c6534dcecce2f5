"""Signing in at the OpenID provider SSO_ISSUER, with allauth's client for it; loaded only where that is set.

Nothing else of allauth is used: no page, no route and no table of its own. Its callback checks the state, fetches the
token from the provider itself (so TLS vouches for it: OpenID Connect Core, 3.1.3.7), checks its issuer, audience and
end, and hands the claims to ``Adapter``, which answers.
"""

import logging
import secrets
from hashlib import sha256
from typing import Any, cast

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts import audit, second_factor, sign_on
from accounts.http import client_address, done, way_on
from accounts.models import User
from accounts.rules import requires

log = logging.getLogger(__name__)
AIMS = "sign-on"  # in the session: what was asked for, until the provider answers
CONFIGURATION_LASTS = 600  # seconds


class Provider(OpenIDConnectProvider):
    def get_oauth2_adapter(self, request: HttpRequest) -> "Adapter":
        return Adapter(request, self.app.provider_id)


class Adapter(OpenIDConnectOAuth2Adapter):
    def get_provider(self) -> Provider:
        # Its name follows from the issuer, so that a state made for another one is none.
        app = SocialApp(
            provider=Provider.id,
            provider_id=sha256(settings.SSO_ISSUER.encode()).hexdigest()[:16],
            name=settings.SSO_NAME,
            client_id=settings.SSO_CLIENT_ID,
            secret=settings.SSO_CLIENT_SECRET,
            settings={"server_url": settings.SSO_ISSUER.rstrip("/"), "oauth_pkce_enabled": True},
        )
        return Provider(self.request, app=app)

    @property
    def openid_config(self) -> dict[str, Any]:
        """What the provider says of itself, which must be who it was set to be."""
        key = f"openid:{settings.SSO_ISSUER}"
        if (config := cache.get(key)) is None:
            config = super().openid_config
            if config["issuer"] != settings.SSO_ISSUER:
                raise OAuth2Error("The provider calls itself by another name than SSO_ISSUER.")
            cache.set(key, config, CONFIGURATION_LASTS)
        return cast(dict[str, Any], config)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return request.build_absolute_uri(reverse("accounts:sso-callback"))

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> Any:
        """Answer in place of allauth, which would look into tables of its own."""
        app.settings["fetch_userinfo"] = "userinfo_endpoint" in self.openid_config
        try:
            said = super().complete_login(request, app, token, **kwargs).account.extra_data
            claims = _checked(said, request.session.pop(AIMS, {}))
        except (KeyError, TypeError, ValueError) as error:  # an answer of another shape
            raise OAuth2Error("The provider's answer is incomplete.") from error
        raise ImmediateHttpResponse(_signed_in(request, *claims))


class Hooks(DefaultSocialAccountAdapter):
    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        raise ImmediateHttpResponse(_refused(request, str(exception or error)))


@requires("read-public")
@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Send somebody to the provider. By a link: no form may lead to another site."""
    aims = {
        "nonce": secrets.token_urlsafe(24),
        "next": request.GET.get("next", ""),
        "connect": request.user.pk if request.GET.get("connect") == sign_on.connects(request) else None,
    }
    request.session[AIMS] = aims
    adapter = Adapter(request, "")
    try:
        parameters = {"nonce": aims["nonce"]}
        return cast(HttpResponse, adapter.get_provider().redirect(request, process="login", auth_params=parameters))
    except (OSError, OAuth2Error, KeyError) as error:  # it does not answer, or something else
        return _refused(request, str(error))


@requires("read-public")
@never_cache
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Where the provider sends people back to."""
    return cast(HttpResponse, OAuth2CallbackView.adapter_view(Adapter(request, ""))(request))


def _checked(said: dict[str, Any], aims: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The claims, and what was asked for. Raises OAuth2Error for an answer to another question."""
    token, more = said["id_token"], said.get("userinfo") or {}
    if not aims or not secrets.compare_digest(str(token["nonce"]), aims["nonce"]):
        raise OAuth2Error("The answer is to another request.")
    if token.get("azp", settings.SSO_CLIENT_ID) != settings.SSO_CLIENT_ID:
        raise OAuth2Error("The token is for another application.")
    if more and more["sub"] != token["sub"]:
        raise OAuth2Error("Token and user info are about different people.")
    return more | token, aims


def _signed_in(request: HttpRequest, claims: dict[str, Any], aims: dict[str, Any]) -> HttpResponse:
    connect = request.user if isinstance(request.user, User) and request.user.pk == aims["connect"] else None
    try:
        person = sign_on.come(claims, connect=connect)
    except ValidationError as error:
        logout(request)  # of a session that may have been ended
        return _refused(request, "not let in", " ".join(error.messages))
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    request.session[second_factor.SESSION] = sign_on.HOW  # whether it asks for one is the provider's to say
    if connect:
        return done(request, _("Your account is connected."), "accounts:settings")
    audit.record("sign-in", by=person, address=client_address(request), how=sign_on.HOW)
    return redirect(way_on(request, person, aims["next"]))


def _refused(request: HttpRequest, why: str, words: str = "") -> HttpResponse:
    """Back to the page for signing in, which says that it did not work; why stands in the audit log."""
    audit.record("sign-in-failed", address=client_address(request), how=sign_on.HOW, why=why[:200])
    log.warning("Signing in at %s did not work: %s", settings.SSO_ISSUER, why[:500])
    messages.error(request, words or _("Signing in there did not work. Try again, or ask whoever keeps this site."))
    return redirect("accounts:settings" if request.user.is_authenticated else "accounts:sign-in")
