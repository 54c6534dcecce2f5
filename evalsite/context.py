"""What every page's frame needs."""

from typing import Any

from django.http import HttpRequest

from accounts.rules import allowed


def chrome(request: HttpRequest) -> dict[str, Any]:
    """Which parts of the main navigation this viewer may open."""
    user = getattr(request, "user", None)
    if user is None:
        return {}
    return {
        "preferences": getattr(user, "preferences", {}),
        "may": {
            "administer": allowed(user, "administer"),
            "bank": allowed(user, "read-bank"),
            "label": allowed(user, "label"),
            "campaigns": allowed(user, "read-judging"),
            "judging": allowed(user, "read-judging"),
            "submit": allowed(user, "submit"),
            "manage_submissions": allowed(user, "manage-submissions"),
            "write_judging": allowed(user, "write-judging"),
            "labels": allowed(user, "read-labels"),
        },
    }
