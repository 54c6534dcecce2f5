"""The lowest app: what guards people and hidden text."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
