"""The lowest app: accounts, access rules and encryption."""

from datetime import timedelta

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in

        from accounts import jobs
        from accounts.middleware import note_language
        from accounts.models import Role

        jobs.register("send_mail", "accounts.mail.send_waiting", every=timedelta(minutes=1))
        jobs.register("mail_daily", "accounts.notices.mail_daily", every=timedelta(minutes=10))
        jobs.register("tell_of_ends", "accounts.tokens.tell_of_ends", every=timedelta(minutes=10))
        user_logged_in.connect(note_language)
        for role in (*settings.SSO_ROLES.values(), settings.SSO_DEFAULT_ROLE or Role.ANNOTATOR):
            if role not in Role.values:
                raise ImproperlyConfigured(f"SSO_ROLES or SSO_DEFAULT_ROLE names the role {role!r}, which is none.")
