"""Drafts by endpoints: stored, read by a person, taken or dismissed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import User
from bank.errors import BadInput
from bank.models import Benchmark, Draft, Sample
from bank.models.drafts import REWRITINGS

MOST_CRITERIA = 40
MOST_TEXT = 20_000


def store(*, texts: Mapping[tuple[int, str], str], origin: str) -> None:
    """Store drafts by (sample id, part). Those that wait there already are replaced."""
    for part in {part for _, part in texts}:
        samples = [sample for sample, other in texts if other == part]
        Draft.objects.filter(sample__in=samples, part=part, state=Draft.State.WAITING).delete()
    Draft.objects.bulk_create(
        Draft(sample_id=sample, part=part, text=text, origin=origin) for (sample, part), text in texts.items()
    )


def waiting(benchmark: Benchmark) -> QuerySet[Draft]:
    """The drafts that nobody has decided about, those of a sample together."""
    drafts = Draft.objects.filter(sample__benchmark=benchmark, state=Draft.State.WAITING)
    return drafts.select_related("sample").order_by("sample__position", "sample", "pk")


def rewritings(samples: Iterable[int]) -> dict[int, dict[str, Draft]]:
    """By sample and way of writing, the newest text that a person took."""
    taken: dict[int, dict[str, Draft]] = {}
    drafts = Draft.objects.filter(sample__in=samples, part__in=REWRITINGS, state=Draft.State.TAKEN)
    for draft in drafts.order_by("pk"):
        taken.setdefault(draft.sample_id, {})[draft.part] = draft
    return taken


@transaction.atomic
def take(*, drafts: QuerySet[Draft], by: User) -> int:
    """Take sentences in other words, so that recipes may ask by them; returns how many. Raises BadInput.

    What a draft proposes for a sample itself is taken in the sample's editor, where it is read and changed.
    """
    if drafts.filter(part=Draft.SAMPLE).exists():
        raise BadInput("What is to become part of a sample is taken in its editor.")
    return _decide(drafts, by=by, state=Draft.State.TAKEN)


@transaction.atomic
def dismiss(*, drafts: QuerySet[Draft], by: User) -> int:
    """Put drafts away; returns how many."""
    return _decide(drafts, by=by, state=Draft.State.DISMISSED)


@transaction.atomic
def taken_in_editor(*, sample: Sample, draft: int, by: User) -> None:
    """Note that the sample was saved with a draft in its form."""
    _decide(Draft.objects.filter(pk=draft, sample=sample, part=Draft.SAMPLE), by=by, state=Draft.State.TAKEN)


def _decide(drafts: QuerySet[Draft], *, by: User, state: str) -> int:
    waiting = Draft.objects.filter(pk__in=drafts.order_by().values("pk"), state=Draft.State.WAITING)
    return waiting.update(state=state, by=by, decided_at=timezone.now())


def proposal(draft: Draft) -> dict[str, Any]:
    """The proposal in a draft. One that is not in our form is shown as it is, as a criterion to read."""
    try:
        written: dict[str, Any] = json.loads(draft.text)
        return {"instruction": str(written["instruction"]), "criteria": [dict(row) for row in written["criteria"]]}
    except (ValueError, TypeError, KeyError):
        return {"instruction": "", "criteria": [{"text": draft.text, "weight": None, "category": ""}]}


def checked_proposal(text: str, *, wants: Sequence[str]) -> str:
    """A model's reply as a proposal, in one form. ``wants``: instruction, criteria. Raises ValueError in words."""
    reply = _object_in(text)
    proposal: dict[str, Any] = {"instruction": "", "criteria": []}
    if "instruction" in wants:
        proposal["instruction"] = _words(reply.get("instruction"), "an instruction")
    if "criteria" in wants:
        rows = reply.get("criteria")
        if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_CRITERIA:
            raise ValueError(f"the reply has no list of 1 to {MOST_CRITERIA} criteria")
        proposal["criteria"] = list(map(_criterion, rows))
    return json.dumps(proposal, ensure_ascii=False)


def _object_in(reply: str) -> dict[str, Any]:
    reply = reply.strip()
    if reply.startswith("```"):
        reply = reply.strip("`").removeprefix("json").strip()
    try:
        value = json.loads(reply)
    except ValueError:
        raise ValueError("the reply is not one JSON object") from None
    if not isinstance(value, dict):
        raise ValueError("the reply is not one JSON object")
    return value


def _criterion(row: Any) -> dict[str, Any]:
    row = row if isinstance(row, dict) else {"text": row}
    weight: Any = row.get("weight")
    return {
        "text": _words(row.get("text"), "a criterion's text"),
        "weight": float(weight) if type(weight) in (int, float) and 0 < weight < 1e6 else None,
        "category": str(row.get("category") or "")[:60],
    }


def _words(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_TEXT:
        raise ValueError(f"the reply lacks {what}")
    return value.strip()
