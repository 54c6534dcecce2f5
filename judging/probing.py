"""Finds out what a judge's endpoint can do, and keeps it."""

import random
from typing import Any

from django.conf import settings
from django.utils import timezone

from judging import client
from judging.actions import BadInput
from judging.client.probe import ProbeFailed, probe
from judging.models import Judge
from judging.work import loop

PATIENCE = 20.0  # seconds that one call may take


def probe_judge(*, judge: Judge) -> dict[str, Any]:
    """Make a few short calls, nine in all, and store the abilities they show. Raises BadInput, nothing stored.

    Runs that have started keep to what was known when they did.
    """
    if not judge.base_url:
        raise BadInput(f"{judge.name} has no endpoint.")
    if not (judge.any_host or client.host_allowed(judge.base_url, settings.JUDGE_HOSTS)):
        raise BadInput(f"The host of {judge.name} is not among JUDGE_HOSTS.")
    try:
        key = client.key_from(judge.key_env)
    except client.KeyMissing as missing:
        raise BadInput(f"The environment variable {missing} is empty here.") from None

    async def main() -> dict[str, Any]:
        endpoint = client.Endpoint(judge.base_url, judge.listed)
        timeout = min(PATIENCE, judge.timeout)
        try:
            return await probe(endpoint, model=judge.model, key=key, timeout=timeout, rng=random.SystemRandom())
        finally:
            await endpoint.close()

    try:
        found = loop.run(main)
    except ProbeFailed as failed:
        raise BadInput(f"{judge.name} at {judge.host}: {failed}.") from None
    judge.abilities = judge.abilities | found | {"at": timezone.now().isoformat(timespec="seconds")}
    judge.save(update_fields=["abilities"])
    return judge.abilities
