"""The demo accounts. Their password is public: they are for local installations only."""

from accounts.models import User

PASSWORD = "evalsite-demo"  # noqa: S105 (printed at the start of a local installation, which listens to localhost only)
SIGN_INS = {
    "admin": "administrator: everything, and people",
    "curator": "bank, criteria, campaigns, judges and runs",
    "annotator": "labels answers in the browser",
    "researcher": "reads leaderboards, runs and labels, submits responses",
}
ROLES = {"admin": "administrator", "curator": "curator", "annotator": "annotator", "researcher": "researcher"}


def make_account(name: str) -> User:
    return User.objects.create_user(name, password=PASSWORD, role=ROLES[name])


def still_open() -> list[User]:
    """Active accounts that still have the demo password."""
    users = User.objects.filter(username__in=SIGN_INS, is_active=True).order_by("username")
    return [person for person in users if person.check_password(PASSWORD)]
