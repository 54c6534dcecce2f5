"""What query strings and forms hold, as values."""


def whole_number(text: str | None, *, below: int = 10**18) -> int | None:
    """The whole number that a text is; None for any other text, and for a number that is not ``below``.

    Digits of ASCII alone: no sign, no space, no other script's digits, nothing that a column could not hold.
    """
    if not text or len(text) > 18 or not (text.isascii() and text.isdigit()):
        return None
    return number if (number := int(text)) < below else None
