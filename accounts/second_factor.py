"""A code of six digits from an app beside the password (TOTP, RFC 6238), and recovery codes for when the app is lost.

A code is good once: the step that it is of is raised in the database, so that no second process takes it again.
"""

import base64
import hmac
import secrets
import struct
import time
from importlib.util import find_spec
from io import BytesIO
from urllib.parse import quote, urlencode

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import attempts, audit, sessions
from accounts.http import client_address
from accounts.installation_key import keyed
from accounts.models import SecondFactor, User
from accounts.rules import STAFF, granted

SESSION = "second-factor"  # by what a session is known to be the person's, besides the password
STEP = 30  # seconds
TOLERANCE = 1  # steps that a clock may be wrong
RECOVERY_CODES = 10


def code_at(secret: str, step: int) -> str:
    """The code of a step of 30 seconds (RFC 4226, 5.3)."""
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", step), "sha1")
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start : start + 4])[0] & 0x7FFFFFFF) % 10**6:06}"


def of(person: User) -> SecondFactor | None:
    """What the person has set up."""
    return SecondFactor.objects.filter(person=person, made_at__isnull=False).first()


def is_required_of(person: User) -> bool:
    """Whether they must have one: staff, and whoever is staff to a benchmark, where the installation says so."""
    return settings.SECOND_FACTOR_FOR_STAFF and (person.role in STAFF or bool(granted(person, "read-hidden")))


def is_lacking(request: HttpRequest) -> bool:
    """Whether this session must be given a second factor before anything else."""
    return isinstance(request.user, User) and SESSION not in request.session and is_required_of(request.user)


def begin(person: User) -> SecondFactor:
    """What is set up once a code of it is typed."""
    secret = base64.b32encode(secrets.token_bytes(20)).decode()
    return SecondFactor.objects.get_or_create(person=person, defaults={"secret": secret})[0]


def confirm(person: User, *, request: HttpRequest, code: str) -> list[str]:
    """Set it up with the first code, and end the person's other sessions. Returns the recovery codes. Raises
    ValidationError.
    """
    check(person, request=request, code=code, confirmed=False)
    with transaction.atomic():
        SecondFactor.objects.filter(person=person).update(made_at=timezone.now())
        audit.record("second-factor-made", by=person, address=client_address(request))
        sessions.end(person, besides=request.session.session_key)
        return new_recovery_codes(person)


def new_recovery_codes(person: User) -> list[str]:
    """New ones in place of the old ones. Only their hashes are stored."""
    codes = [base64.b32encode(secrets.token_bytes(7)).decode()[:10].lower() for _number in range(RECOVERY_CODES)]
    SecondFactor.objects.filter(person=person).update(recovery=[_hashed(person, code) for code in codes])
    return codes


def check(person: User, *, request: HttpRequest, code: str, confirmed: bool = True) -> None:
    """Take a code. Raises ValidationError for a wrong one, one that was used, and too many tries."""
    attempt = attempts.begin(request, f"code of {person.get_username()}")
    if not attempt.allowed:
        raise ValidationError(attempts.TOO_MANY)
    if not _takes(person, "".join(code.split()).lower(), confirmed):
        audit.record("second-factor-failed", by=person, address=client_address(request))
        raise ValidationError(_("This code is wrong or was used. Wait for the next one."))
    attempt.succeeded()
    request.session[SESSION] = "code"


@transaction.atomic
def _takes(person: User, code: str, confirmed: bool) -> bool:
    own = SecondFactor.objects.filter(person=person, made_at__isnull=not confirmed)
    factor = own.select_for_update().first()
    if factor is None or not code.isascii():
        return False
    now = int(time.time()) // STEP
    for step in range(now - TOLERANCE, now + TOLERANCE + 1):
        if hmac.compare_digest(code_at(factor.secret, step), code):
            return bool(own.filter(step__lt=step).update(step=step))
    hashed = _hashed(person, code)
    if hashed not in factor.recovery:
        return False
    own.update(recovery=[other for other in factor.recovery if other != hashed])
    return True


def _hashed(person: User, code: str) -> str:
    return keyed("recovery", f"{person.pk}:{code}")


def remove(person: User, *, by: User | None = None, how: str = "", besides: str | None = None) -> None:
    """Let the person sign in by password alone until they set it up again, and end their sessions ``besides`` one."""
    if SecondFactor.objects.filter(person=person).delete()[0]:
        sessions.end(person, besides=besides)
        audit.record("second-factor-ended", by=by, command=how, about=person.username)


def address_of(factor: SecondFactor, site: str) -> str:
    """What apps are told by a picture or a link."""
    label = quote(f"evalsite {site}:{factor.person.get_username()}")
    return (
        f"otpauth://totp/{label}?{urlencode({'secret': factor.secret, 'issuer': f'evalsite {site}'}, quote_via=quote)}"
    )


def picture_of(address: str) -> str:
    """The address as a QR code, as a data URI; "" without the package for it (it comes with the extra sso)."""
    if find_spec("qrcode") is None:
        return ""
    import qrcode
    from qrcode.image.svg import SvgPathFillImage

    drawn = BytesIO()
    qrcode.make(address, image_factory=SvgPathFillImage).save(drawn)
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"
