"""The lowest app: accounts, access rules and encryption."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in

        from accounts.middleware import note_language

        user_logged_in.connect(note_language)
