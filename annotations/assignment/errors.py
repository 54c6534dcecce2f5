"""Why something about an assignment cannot be done. The words are for the annotator, in their language."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy


class NotInvited(LookupError):
    """Not a member of the campaign: to this person it does not exist."""


class Refused(Exception):
    """Cannot be done as things stand; answered with 409. ``code`` is for programs."""

    code = "refused"
    words: str | Promise = lazy("This cannot be done now.")

    def __init__(self, words: str = "") -> None:
        super().__init__(words or str(self.words))


class AlreadyLabelled(Refused):
    code = "already-labelled"
    words = lazy("You have labelled this item already, perhaps in another tab. Go back to it to change your label.")


class SlotTaken(Refused):
    code = "slot-taken"
    words = lazy(
        "Your time for this item ran out and somebody else has taken it. Nothing is lost for you: go on to the next."
    )


class CampaignNotOpen(Refused):
    code = "not-open"

    def __init__(self, state: str) -> None:
        words = {
            "paused": _("The campaign is paused. It will go on later."),
            "closed": _("The campaign is closed. Its labels are final."),
        }
        super().__init__(words.get(state) or _("The campaign is not open yet."))


class DayIsFull(Refused):
    code = "day-is-full"

    def __init__(self, cap: int) -> None:
        words = _("You have labelled {count} items today, as many as this campaign wants of one person in a day.")
        super().__init__(words.format(count=cap))


class PracticeFailed(Refused):
    code = "practice-failed"
    words = lazy(
        "Your practice round was below the pass mark. Read the guidelines again; a curator can let you try again."
    )


class Stopped(Refused):
    code = "stopped"
    words = lazy(
        "Several of your labels differed from verdicts that are certain, so this campaign hands you nothing more for "
        "now. Ask the curator who invited you."
    )


class PracticeIsOver(Refused):
    code = "practice-is-over"
    words = lazy("You have seen the right answer of this practice item, so its label stays as it is.")


class StaleEdit(Refused):
    code = "stale-edit"
    words = lazy("You changed this label in another tab since. Load it again to see what is stored.")


class KeyReused(Refused):
    code = "key-reused"
    words = lazy("This idempotency key belongs to your label of another assignment. Use a new key for each label.")
