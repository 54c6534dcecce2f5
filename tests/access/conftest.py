"""The world of the access tests, and clients of every role by session and by token."""

import pytest
from knox.models import AuthToken

ROLES = ("anonymous", "annotator", "researcher", "curator", "administrator")


@pytest.fixture
def tokens(people):
    """Header of a token by role."""
    made = {role: {"HTTP_AUTHORIZATION": f"Token {AuthToken.objects.create(user)[1]}"} for role, user in people.items()}
    return made | {"anonymous": {}}
