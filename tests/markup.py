"""The HTML of a page as one line, white space as a browser reads it: how a template is laid out is no promise."""

import re

# Elements beside whose tags white space shows nothing.
BLOCKS = (
    "address article aside blockquote body br button caption col colgroup datalist dd details dialog div dl dt "
    "fieldset figcaption figure footer form h1 h2 h3 h4 head header hr html input legend li link main meta nav "
    "noscript ol optgroup option p section select summary table tbody td tfoot th thead title tr ul "
    "circle g line path polygon polyline rect text use"
).split()
_VERBATIM = re.compile(r"(<(pre|textarea|script)\b.*?</\2>)", re.S)
_TAG = re.compile(r"""<(/?[a-zA-Z][\w-]*)((?:[^<>"']|"[^"]*"|'[^']*')*?)\s*(/?)>""")
_BESIDE = re.compile(rf" ?(</?(?:{'|'.join(BLOCKS)})\b(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>) ?")


def flat(page) -> str:
    """A response, or HTML, as one line: white space is one space, and none stands beside the tag of a block."""
    text = page if isinstance(page, str) else page.getvalue().decode()
    parts = _VERBATIM.split(text)
    # Of three parts one is verbatim, and one its element's name.
    return "".join(part if at % 3 else _flattened(part) for at, part in enumerate(parts) if at % 3 != 2)


def _flattened(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    text = _TAG.sub(lambda tag: f"<{tag[1]}{tag[2]}{tag[3]}>", text)
    return _BESIDE.sub(r"\1", text)
