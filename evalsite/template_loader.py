"""Templates without their indentation: what makes them readable is not sent with every page."""

import re

from django.template import Origin
from django.template.loaders.filesystem import Loader as FilesystemLoader

_VERBATIM = re.compile(r"(<(pre|textarea)\b.*?</\2>)", re.S)


class Loader(FilesystemLoader):
    def get_contents(self, origin: Origin) -> str:
        parts = _VERBATIM.split(super().get_contents(origin))
        # Of three parts one is verbatim, and one its element's name.
        return "".join(part if at % 3 else re.sub(r"\n +", "\n", part) for at, part in enumerate(parts) if at % 3 != 2)
