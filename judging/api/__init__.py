"""The API of judging, a module for each kind of resource."""

from rest_framework import exceptions, status

from bank.errors import BadInput


class Conflict(exceptions.APIException):
    """409, with the reason as text."""

    status_code = status.HTTP_409_CONFLICT


def validation_error(error: BadInput) -> exceptions.ValidationError:
    return exceptions.ValidationError({error.field or "detail": str(error).split("\n")})
