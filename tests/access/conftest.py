"""The world of the access tests, and clients of every role by session and by token."""

import pytest

from accounts.tokens import make_token

ROLES = ("anonymous", "guest", "annotator", "researcher", "curator", "administrator")


@pytest.fixture
def tokens(people):
    """Header of a token by role."""
    made = {role: {"HTTP_AUTHORIZATION": f"Token {make_token(person=user)[1]}"} for role, user in people.items()}
    return made | {"anonymous": {}}
