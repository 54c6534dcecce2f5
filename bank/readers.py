"""What those that read criteria must tell about themselves; the readers are in ``bank.criteria``."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from accounts.models import User
    from bank.models import Sample


class JudgingRun(Protocol):
    """What a run must tell about itself to read criteria."""

    pk: Any

    @property
    def reads_criteria(self) -> bool: ...


class AssignmentOfCampaign(Protocol):
    """What an assignment must tell about itself to read criteria."""

    pk: Any

    @property
    def shows_criteria(self) -> bool: ...

    @property
    def sample(self) -> "Sample": ...

    @property
    def reader(self) -> "User": ...


class KeyedSubmission(Protocol):
    """What a submission must tell about itself to be held against the keys."""

    pk: Any
    state: str
