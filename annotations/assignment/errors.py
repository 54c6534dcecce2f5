"""Errors about assignments and campaigns. Their messages are shown to annotators, in the annotator's language."""

from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy


class NotInvited(Http404):
    """Not a member of the campaign. For this person the campaign does not exist."""


class Refused(Exception):
    """Not possible in the current state; views answer with 409. ``code`` is for programs."""

    code = "refused"
    words: str | Promise = lazy("This is not possible right now.")

    def __init__(self, words: str = "") -> None:
        super().__init__(words or str(self.words))


class AlreadyLabelled(Refused):
    code = "already-labelled"
    words = lazy("You have labelled this item already, perhaps in another tab. Go back to it to change your label.")


class SlotTaken(Refused):
    code = "slot-taken"
    words = lazy("Your time for this item ran out and another annotator has taken it. Go on to the next one.")


class CampaignNotOpen(Refused):
    code = "not-open"

    def __init__(self, state: str) -> None:
        words = {
            "paused": _("The campaign is paused and will resume later."),
            "closed": _("The campaign is closed. Its labels are final."),
        }
        super().__init__(words.get(state) or _("The campaign is not open yet."))


class ConsentNeeded(Refused):
    code = "consent-needed"
    words = lazy("Read what this campaign asks you to agree to first.")


class DayIsFull(Refused):
    code = "day-is-full"

    def __init__(self, cap: int) -> None:
        words = _("You have labelled {count} items today, the most this campaign allows in a day.")
        super().__init__(words.format(count=cap))


class PracticeFailed(Refused):
    code = "practice-failed"
    words = lazy(
        "Your practice round was below the pass mark. Read the guidelines again; a curator can let you try again."
    )


class Stopped(Refused):
    code = "stopped"
    words = lazy(
        "Several of your labels differed from verdicts known to be right, so you get no more items in this campaign "
        "for now. Ask the curator who invited you."
    )


class PracticeIsOver(Refused):
    code = "practice-is-over"
    words = lazy("You have seen the right answer of this practice item, so its label stays as it is.")


class ItemOpened(Refused):
    code = "item-opened"
    words = lazy(
        "What others and judges say of this item may be read by now, so your label stays as it is. A curator or an "
        "adjudicator can decide the item."
    )


class StaleEdit(Refused):
    code = "stale-edit"
    words = lazy("You have since changed this label in another tab. Reload it to see what is stored.")


class KeyReused(Refused):
    code = "key-reused"
    words = lazy("This idempotency key belongs to your label of another assignment. Use a new key for each label.")
