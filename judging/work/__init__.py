"""Working a run: many concurrent calls, and one writer that stores their results.

The database rows are the truth. A worker holds a run by a lease, claims some of its rows without judgments, makes the
calls and commits the results as they come. Any number of workers may work on one run. A worker killed at any moment
loses only its calls in flight; the others continue with the rows it had claimed.

``worker`` takes waiting runs · ``writer`` what every session does · ``run_kinds`` what each kind of run makes ·
``session`` calls to endpoints · ``results`` what they return · ``batches`` the same through the batch interface ·
``baseline`` built-in judges · ``leases`` holds and claims · ``store`` writes under the hold · ``pace`` limits ·
``budget`` costs
"""

import asyncio

from judging.models import Run
from judging.work.baseline import Baseline
from judging.work.batches import Batches
from judging.work.session import Session
from judging.work.writer import Ended, Patience, Progress, Shared, Watch

__all__ = ["Ended", "Patience", "Progress", "Shared", "work"]


async def work(
    run: Run,
    *,
    shared: Shared,
    stop: asyncio.Event,
    stopped: Ended | None = None,
    patience: Patience | None = None,
    watch: Watch | None = None,
) -> bool:
    """Work a run that was taken until it is finished, pauses, somebody changes its state, or ``stop`` is set.

    To be called in ``loop.run``. ``stopped`` says how the run is left when ``stop`` ends the work: queued for another
    worker by default. Returns whether it ended for a reason of this worker's own, so that others may go on.
    """
    session = Baseline if run.judge.is_baseline else Batches if run.batched else Session
    stopped = stopped or Ended(Run.State.QUEUED)
    return await session(
        run, shared=shared, stop=stop, stopped=stopped, patience=patience or Patience(), watch=watch
    ).work()
