"""The API of judging, a module for each kind of resource."""

from typing import Any, TypeVar

from django.db.models import Model
from rest_framework import mixins, status, viewsets
from rest_framework.response import Response

M = TypeVar("M", bound=Model)


class Resource(mixins.ListModelMixin, viewsets.GenericViewSet[M]):
    """A resource that everybody reads who may read judging."""

    request: Any  # of somebody who has signed in
    access_rule = "read-judging"
    lookup_value_regex = "[0-9]+"

    def responded(self, row: M, *, made: bool = False) -> Response:
        """The row that an action changed, or made."""
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED if made else status.HTTP_200_OK)
