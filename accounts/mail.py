"""Mail. It is stored first and sent by a worker, so that no page waits for a mail server and none is lost with it."""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from smtplib import (
    SMTPDataError,
    SMTPException,
    SMTPNotSupportedError,
    SMTPRecipientsRefused,
    SMTPSenderRefused,
)

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
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
CLOSING = 421  # what a server says that ends the connection, see RFC 5321


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
    """Send what waits, over one connection. A mail may arrive twice if a worker or the connection dies between sending
    and noting it, and never not at all.
    """
    server, answered, last = get_connection(), False, 0
    try:
        while mail := await db(_next, last):
            number = mail.pk  # once it is deleted it has none
            message = EmailMessage(mail.subject, mail.text, None, [mail.to], connection=server)
            try:
                await asyncio.to_thread(server.open)
                await asyncio.to_thread(message.send)
            except Exception as error:  # of whatever kind: an address that no mail can be made for stops no others
                gone = _is_gone(error)
                if gone and answered:  # it has had enough of this connection, as after many dead addresses
                    await _close(server)
                    answered = False
                    continue
                await db(_put_back, mail, type(error).__name__)
                if gone:
                    return  # the mail server does not answer: the others wait with it
                answered = answered or isinstance(error, SMTPException)
            else:
                answered = True
                await db(mail.delete)
            last = number
    finally:
        await _close(server)


async def _close(server: BaseEmailBackend) -> None:
    with suppress(OSError):  # it is gone already
        await asyncio.to_thread(server.close)


def _next(last: int) -> Mail | None:
    return Mail.objects.filter(pk__gt=last, not_before__lte=timezone.now()).order_by("pk").first()


def _is_gone(error: Exception) -> bool:
    """Whether the mail server answers no more, or lets nobody in, instead of refusing one mail."""
    if isinstance(error, SMTPRecipientsRefused):
        return any(code == CLOSING for code, _ in error.recipients.values())
    if isinstance(error, SMTPSenderRefused | SMTPDataError):
        return error.smtp_code == CLOSING
    # Each SMTPException is an OSError. Of the others, what a mail needs and the server has not is about that mail.
    return isinstance(error, OSError) and not isinstance(error, SMTPNotSupportedError)


def _put_back(mail: Mail, error: str) -> None:
    if mail.tries < len(WAITS):
        at = timezone.now() + WAITS[mail.tries]
        Mail.objects.filter(pk=mail.pk).update(not_before=at, tries=mail.tries + 1)
        log.warning("A mail was not sent (%s), trying again in %s", error, WAITS[mail.tries])
    else:
        mail.delete()
        log.error("A mail was not sent (%s) and is given up after %s tries", error, mail.tries + 1)
