"""Submissions: a model's responses that a researcher sends in as one file, checked, counted and scored at once.

``check`` reads the file against the benchmark, ``quota`` counts, ``scoring`` holds the responses against the keys,
``told`` says which of the numbers may be told, ``halves`` which half of a hidden split a sample is in, and ``actions``
are the writes.
"""


class Refused(Exception):
    """The submission is not taken as it stands."""


class Closed(Refused):
    """The benchmark takes no submissions."""


class NameTaken(Refused):
    """The name belongs to another model; ``proposal`` is free."""

    def __init__(self, name: str, proposal: str, why: str) -> None:
        super().__init__(f"The name {name!r} {why}. Choose another, for example {proposal!r}.")
        self.proposal = proposal


class Exceeded(Refused):
    """A limit is reached; ``retry_after`` seconds from now it is worth asking again."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
