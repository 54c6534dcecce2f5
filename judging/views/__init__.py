"""Pages of judging: runs, judges, judgments."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.http import PageRequest
from accounts.models import User

PAGE = 30


class SignedInRequest(PageRequest):
    """A request of somebody who has signed in: the rule of its page sees to it."""

    user: User


def page(request: HttpRequest, template: str, context: dict[str, Any], *, refused: bool = False) -> HttpResponse:
    """A page of judging; with 422 where a form was ``refused``."""
    return render(request, template, {"section": "judging"} | context, status=422 if refused else 200)
