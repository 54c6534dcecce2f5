"""What people are told: of runs and campaigns that they started, labels that came back, submissions that were judged.

A notice stands in the bell of every page. It is mailed, too, to whoever has an address: at once, once a day or not at
all, as they choose in their settings.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import mail
from accounts.models import Notice, User

DAILY, NEVER = "daily", "never"  # the preference "mail"; anything else is at once
DAY = timedelta(days=1)


@transaction.atomic
def tell(person: User, *, key: str, text: str, link: str) -> None:
    """Tell a person once. ``text`` holds nothing that only some may read; ``link`` is a path of the site."""
    now = mail.is_set_up() and bool(person.email)
    wish = person.preferences.get("mail", "")
    notice, made = Notice.objects.get_or_create(
        person=person,
        key=key,
        defaults={"text": text[:300], "link": link, "mailed": not (now and wish == DAILY)},
    )
    if made and now and wish not in (DAILY, NEVER):
        mail.queue(person.email, text, _as_text([notice], person))


def unread(person: User) -> int:
    return Notice.objects.filter(person=person, read_at=None).count()


def mark_read(notices: Iterable[Notice]) -> None:
    Notice.objects.filter(pk__in=[notice.pk for notice in notices], read_at=None).update(read_at=timezone.now())


def mail_daily() -> None:
    """One mail to everybody whose oldest notice that was not mailed is a day old."""
    due = Notice.objects.filter(mailed=False, at__lt=timezone.now() - DAY).order_by().values("person")
    for person in User.objects.filter(pk__in=due):
        with transaction.atomic():
            notices = list(Notice.objects.select_for_update().filter(person=person, mailed=False).order_by("pk"))
            if not notices:  # another worker was faster
                continue
            Notice.objects.filter(pk__in=[notice.pk for notice in notices]).update(mailed=True)
            if person.email:
                with mail.in_language_of(person):
                    subject = _("evalsite: {count} notices").format(count=len(notices))
                mail.queue(person.email, subject, _as_text(notices, person))


def _as_text(notices: Iterable[Notice], person: User) -> str:
    lines = [f"{notice.text}\n{mail.full_address(notice.link)}" for notice in notices]
    with mail.in_language_of(person):
        foot = _("You choose in your settings what is mailed to you.")
    return "\n\n".join([*lines, f"--\n{foot} {mail.full_address('/accounts/settings/')}"])
