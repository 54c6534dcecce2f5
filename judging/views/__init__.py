"""Pages of judging: runs, judges, judgments."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.middleware import HtmxDetails

from accounts.models import User
from bank.errors import BadInput

PAGE = 30


class SignedInRequest(HttpRequest):
    """A request of somebody who has signed in: the rule of its page sees to it."""

    user: User
    htmx: HtmxDetails


def page(request: HttpRequest, template: str, context: dict[str, Any], *, refused: bool = False) -> HttpResponse:
    """A page of judging; with 422 where a form was ``refused``."""
    return render(request, template, {"section": "judging"} | context, status=422 if refused else 200)


def act(request: HttpRequest, action: Callable[..., Any], success: str = "{}", **values: Any) -> bool:
    """Do what a button asks for, and say what came of it; whether it was done. ``{}`` is what the action returns."""
    try:
        result = action(**values)
    except BadInput as error:
        messages.error(request, str(error))
        return False
    messages.success(request, success.format(result))
    return True
