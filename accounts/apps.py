"""The lowest app: accounts, access rules and encryption."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
