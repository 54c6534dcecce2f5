"""Guidelines of a campaign: Markdown by staff, with its own pictures."""

import re
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString

import bank.text.rendering
from annotations.assignment.queries import count_words
from annotations.models import Campaign, GuidelinePicture
from bank import images

MAX_PICTURES = 50
WORDS_A_MINUTE = 200

PLACEHOLDER_URL = "https://pictures.invalid/"  # prefix of picture names while the text is Markdown; no such host exists

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

_PICTURE_LINK = re.compile(r"(!\[[^\]\n]*\]\()([A-Za-z0-9][A-Za-z0-9._-]*)(?=[)\s])")


def render_guidelines(text: str, campaign: Campaign | None) -> SafeString:
    """Guidelines as safe HTML. ``![words](name)`` shows the campaign's picture of that name; unknown ones stay text."""
    pictures: dict[str, bank.text.rendering.Picture] = {}
    if campaign is not None and "![" in text:
        for picture in campaign.pictures.all():
            address = reverse("annotations:guidelines-picture", args=[campaign.pk, picture.name])
            pictures[PLACEHOLDER_URL + picture.name] = bank.text.rendering.Picture(
                address, picture.width, picture.height
            )
    return bank.text.rendering.markdown(
        _PICTURE_LINK.sub(rf"\1{PLACEHOLDER_URL}\2", text), links=True, pictures=pictures
    )


def change_guidelines(*, campaign: Campaign, text: str, about: str, now: datetime) -> bool:
    """Store new guidelines; after a campaign's start as its next version. Returns False if the text is the same.

    ``about`` tells annotators what is different.
    """
    text = text.strip()
    if text == campaign.guidelines:
        return False
    campaign.guidelines = text
    if campaign.state != Campaign.State.DRAFT:
        campaign.guidelines_version += 1
        campaign.guidelines_changed_at, campaign.guidelines_change = now, about.strip()
    names = ("guidelines", "guidelines_version", "guidelines_changed_at", "guidelines_change")
    campaign.save(update_fields=names)
    return True


def reading_minutes(text: str) -> int:
    """How long guidelines take to read, at 200 words a minute; at least 1."""
    return max(1, round(count_words(text) / WORDS_A_MINUTE))


def add_picture(*, campaign: Campaign, name: str, data: Any) -> GuidelinePicture:
    """Store a picture under its file name, replacing one of the same name. Raises NotAnImage."""
    if campaign.pictures.count() >= MAX_PICTURES:
        raise images.NotAnImage(f"there are {MAX_PICTURES} pictures already")
    if data.size > images.MAX_BYTES:
        raise images.NotAnImage(f"larger than {images.MAX_BYTES // 2**20} MB")
    stored = images.ingest(data.read())
    stem = _UNSAFE.sub("-", name.rsplit(".", 1)[0]).strip("-.") or "picture"
    picture, _ = GuidelinePicture.objects.update_or_create(
        campaign=campaign,
        name=f"{stem[:90]}.{stored.kind}",
        defaults={"sha256": stored.sha256, "kind": stored.kind, "width": stored.width, "height": stored.height},
    )
    return picture
