"""The session engine: Django's own, over rows whose key is a hash (``accounts.models.Session``)."""

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db

from accounts.models import Session, User


class SessionStore(db.SessionStore):
    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session


def end(person: User, *, besides: str | None = None) -> None:
    """End the sessions of a person, all ``besides`` one. Whose one is stands inside it, so that each is read."""
    for session in Session.objects.exclude(session_key=besides or "").iterator():
        if session.get_decoded().get(SESSION_KEY) == str(person.pk):
            session.delete()
