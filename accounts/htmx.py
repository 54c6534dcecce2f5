"""Requests as pages get them: django-htmx's middleware says of each whether a part of a page is asked for."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class PageRequest(HttpRequest):
    htmx: HtmxDetails  # true where htmx asks, or a script of ours in its name (HX-Request)
