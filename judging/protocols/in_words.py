"""What a run was asked, in words."""

from django.utils.text import Truncator

from judging.models import setting_text
from judging.protocols import printed_in

LONGEST_SETTING = 60  # characters that are shown of one


def settings_in_words(protocol: str, settings: dict[str, object]) -> str:
    """``pairwise-criteria, both orders, criteria, image, reason first``."""
    order = {"both": "both orders", "shuffled": "shuffled order", "fixed": "one order"}
    words = [protocol, order.get(str(settings.get("order", "fixed")), str(settings.get("order")))]
    if "criteria" in settings:
        words.append("with criteria" if settings["criteria"] else "without criteria")
    if context := str(settings.get("context", "")):
        words.append("text only" if context == "none" else context.replace("+", " and "))
    reasoning = {"first": "reason first", "after": "reason after", "three-step": "three steps"}
    if (reason := settings.get("reasoning")) in reasoning:
        steps = settings.get("step_calls")
        before = f"a step on {steps.replace('-', ' ')}, " if isinstance(steps, str) else ""
        words.append(before + reasoning[str(reason)] + (", each a call" if steps is True else ""))
    if settings.get("repeats", 1) != 1:
        words.append(f"{settings['repeats']} repeats")
    for name, value in settings.items():
        if name not in ("order", "criteria", "context", "reasoning", "step_calls", "repeats"):
            words.append(f"{name} {Truncator(setting_text(value)).chars(LONGEST_SETTING)}")
    return ", ".join(filter(None, (*words, printed_in(protocol, settings))))
