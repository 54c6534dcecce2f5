"""What resources of the API share, apart from what the framework itself needs to start (``base``)."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action

F = TypeVar("F", bound=Callable[..., Any])


def posted(takes: Any, answers: Any, **how: Any) -> Callable[[F], F]:
    """An action on one row by POST: what is sent, and what is answered, as the document of the API has them."""

    def made(act: F) -> F:
        acting = action(detail=True, methods=["post"], **how)(act)
        return cast(F, extend_schema(request=takes, responses=answers)(acting))

    return made


class Visible:
    """A resource with the rows that the caller may see."""

    request: Any
    queryset: Any

    def get_queryset(self) -> Any:
        return self.queryset.visible_to(self.request.user)
