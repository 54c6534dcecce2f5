"""What an action refuses."""

from bank.imports import BadInput

__all__ = ["BadInput", "Stale"]


class Stale(BadInput):
    """Somebody else changed it since it was opened; nothing was written."""
