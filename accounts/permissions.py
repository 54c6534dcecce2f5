"""The table of rules, as Django REST framework asks it."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.rules import allowed


class Declared(BasePermission):
    """The same table for API classes; an action may carry its own rule in ``access_rules``."""

    def has_permission(self, request: Request, view: Any) -> bool:
        own = getattr(view, "access_rules", {})
        actions = [getattr(view, "action", None)]
        if request.method == "OPTIONS":  # asks about the route: whoever may do something here may ask
            actions = list(getattr(view, "action_map", {}).values()) or actions
        rules = {own.get(action, getattr(view, "access_rule", None)) for action in actions}
        return any(rule is not None and allowed(request.user, rule) for rule in rules)
