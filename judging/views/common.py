"""What the pages of judging share."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect

from accounts.models import User
from judging.actions import BadInput
from judging.models import Run

PAGE = 30
HERE = {"section": "judging"}


def begun(form: forms.Form, begin: Callable[..., Run], *, by: User, **given: Any) -> HttpResponse | None:
    """Start a run with what a form says of it and go to its page; None, with the fault in the form, where it cannot."""
    data = form.cleaned_data
    shared = {name: data[name] for name in ("benchmark", "limit", "budget", "new", "reuse", "batched")}
    try:
        run = begin(by=by, **shared, **given)
    except BadInput as error:
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return None
    return redirect("judging:run-detail", run.pk)
