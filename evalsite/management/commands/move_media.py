"""manage.py move_media"""

import hashlib
from pathlib import Path, PurePath
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UncheckedCommand
from bank import media, objects
from evalsite.management.base import in_words


class Command(UncheckedCommand):
    help = (
        "Copy all pictures of the data folder into the bucket that S3_BUCKET names, and compare each by its SHA-256. "
        "What is there already is only compared: stopped or killed, it goes on when it is started again. Nothing is "
        "removed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--back", action="store_true", help="from the bucket into the data folder")

    def handle(self, *, back: bool, **options: Any) -> None:
        away = objects.of("default")
        if away is None:
            raise CommandError("Set S3_BUCKET and its other settings: they say where the pictures go, or are.")
        with in_words():
            here, there = dict(media.local_sizes()), {entry.name: entry.size for entry in away.listed()}
            source, target = (there, here) if back else (here, there)
            if media.MARK in here and media.MARK in there and _here(media.MARK) != _away(away, media.MARK):
                raise CommandError(f"{media.place()} holds the pictures of another database. Nothing was copied.")
            pictures = [name for name in source if name != media.MARK]
            copied = {name for name in pictures if target.get(name) != source[name]}
            are_right = objects.at_once(lambda name: _copy(away, back, name in copied, name), pictures)
            faults = [name for name, is_right in zip(pictures, are_right, strict=True) if not is_right]
            if not faults and media.MARK in source:  # last: by it the place counts as the right one
                _copy(away, back, True, media.MARK)
        place = settings.MEDIA_ROOT if back else media.place()
        were_there = len(pictures) - len(copied)
        self.stdout.write(f"{len(pictures):,} pictures: {len(copied):,} copied to {place}, {were_there:,} were there.")
        if faults:
            raise CommandError(f"{len(faults):,} do not have the SHA-256 that is their name: {', '.join(faults[:3])}")
        self.stdout.write("All have the right SHA-256 on both sides.")


def _copy(away: objects.Objects, back: bool, is_new: bool, name: str) -> bool:
    """Copy a picture if it is new, or damaged at its target; whether both sides have what its name says then."""
    if is_new or _here(name) != _away(away, name):
        if back:
            with away.opened(name) as file:
                media.write_file(Path(settings.MEDIA_ROOT, name), file.read())
        else:
            away.put_copy(name, Path(settings.MEDIA_ROOT, name))
    digest = _here(name)
    return digest == _away(away, name) and PurePath(name).stem in (digest, media.MARK)


def _here(name: str) -> str:
    return hashlib.sha256(Path(settings.MEDIA_ROOT, name).read_bytes()).hexdigest()


def _away(away: objects.Objects, name: str) -> str:
    with away.opened(name) as file:
        return hashlib.sha256(file.read()).hexdigest()
