"""Submissions: a model's responses that a researcher sends in as one file, checked, counted and scored at once.

``check`` compares the file with the benchmark, ``quota`` counts, ``scoring`` compares the responses with the keys and
decides which of the numbers may be shown, ``marked_responses`` prepares responses for boards, and ``actions`` are the
writes.
"""


class Refused(Exception):
    """The submission is refused as it stands."""


class Closed(Refused):
    """The benchmark accepts no submissions."""


class NameTaken(Refused):
    """The name belongs to another model; ``proposal`` is free."""

    def __init__(self, name: str, proposal: str, why: str) -> None:
        super().__init__(f"The name {name!r} {why}. Choose another, for example {proposal!r}.")
        self.proposal = proposal


class Exceeded(Refused):
    """A limit is reached; retry after ``retry_after`` seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
