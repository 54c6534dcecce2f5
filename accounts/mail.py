"""Mail. It is stored first and sent by a worker, so that no page waits for a mail server and none is lost with it."""

import asyncio
import logging
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import override

from accounts.jobs import defer
from accounts.loop import db
from accounts.models import Mail, User

log = logging.getLogger(__name__)
# Before the next try; after the last the mail is given up.
WAITS = [timedelta(minutes=minutes) for minutes in (1, 5, 60, 360)]


def is_set_up() -> bool:
    """Whether mail reaches anybody, instead of being printed by the worker."""
    return not settings.EMAIL_BACKEND.endswith("console.EmailBackend")


def full_address(path: str) -> str:
    """The page's address for a mail; the path alone where the site does not know its own name."""
    host = settings.ALLOWED_HOSTS[0] if settings.ALLOWED_HOSTS else ""
    if settings.LOCAL:
        return f"http://localhost:{settings.PORT}{path}"
    return path if not host or host.startswith(("*", ".")) else f"https://{host}{path}"


def in_language_of(person: User) -> override:
    """What a person is told is in the language that they chose, else in that of their last browser."""
    known = person.preferences
    return override(known.get("language") or known.get("browser_language") or settings.LANGUAGE_CODE)


def queue(to: str, subject: str, text: str) -> None:
    """Have a mail sent, once the caller's transaction is stored."""
    Mail.objects.create(to=to, subject=" ".join(subject.split())[:200], text=text, not_before=timezone.now())
    defer("send_mail")


def queue_password_link(person: User, host: str = "") -> None:
    """Have a link mailed with which the person sets a password; under ``host`` where the site does not know its own."""
    key = urlsafe_base64_encode(force_bytes(person.pk))
    link = full_address(reverse("accounts:password-choose", args=[key, default_token_generator.make_token(person)]))
    context = {"user": person, "link": f"{host}{link}" if link.startswith("/") else link}
    with in_language_of(person):
        subject = render_to_string("accounts/password-reset-subject.txt", context)
        text = render_to_string("accounts/password-reset-mail.txt", context)
    queue(person.email, subject, text)


async def send_waiting() -> None:
    """Send what waits. A mail may arrive twice if a worker dies between sending and noting it, and never not at all."""
    for mail in await db(lambda: list(Mail.objects.filter(not_before__lte=timezone.now()).order_by("pk"))):
        try:
            await asyncio.to_thread(send_mail, mail.subject, mail.text, None, [mail.to])
        except Exception as error:  # of whatever kind: an address that no mail can be made for does not stop the others
            await db(_put_back, mail, type(error).__name__)
            if isinstance(error, OSError):
                return  # the mail server does not answer: the others wait with it
        else:
            await db(mail.delete)


def _put_back(mail: Mail, error: str) -> None:
    if mail.tries < len(WAITS):
        at = timezone.now() + WAITS[mail.tries]
        Mail.objects.filter(pk=mail.pk).update(not_before=at, tries=mail.tries + 1)
        log.warning("A mail was not sent (%s), trying again in %s", error, WAITS[mail.tries])
    else:
        mail.delete()
        log.error("A mail was not sent (%s) and is given up after %s tries", error, mail.tries + 1)
