"""The session engine: Django's own, over rows whose key is a hash (``accounts.models.Session``)."""

from django.contrib.sessions.backends import db

from accounts.models import Session


class SessionStore(db.SessionStore):
    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session
