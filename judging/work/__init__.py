"""Working a run: its calls, many at once, and the one writer that stores what comes of them.

The truth is in the rows. A worker holds a run by a lease, claims some of its rows that lack judgments, makes the calls
and commits the results as they come. Any number of workers may be at one run. Killed at any moment, one loses its calls
in flight and nothing else; the others go on with what it had claimed.

``writer`` what every session does · ``kinds`` what is made · ``session`` endpoint judges · ``ends`` what comes of their
calls · ``batches`` the same by batch interface · ``baseline`` built-in judges · ``holds`` who works what · ``store``
writes under the lease · ``pace`` limits · ``loop`` the event loop beside the thread that owns the database connection.
"""

import asyncio

from judging.models import Run
from judging.work.baseline import Baseline
from judging.work.batches import Batches
from judging.work.session import Session
from judging.work.writer import Patience, Progress, Shared, Stopped, Watch

__all__ = ["Patience", "Progress", "Shared", "Stopped", "work"]


async def work(
    run: Run,
    *,
    shared: Shared,
    stop: asyncio.Event,
    stopped: Stopped | None = None,
    patience: Patience | None = None,
    watch: Watch | None = None,
) -> bool:
    """Work a run that was taken until it is finished, pauses, somebody changes its state, or ``stop`` is set.

    To be called in ``loop.run``. ``stopped`` says how the run is left when ``stop`` ends the work. Returns whether it
    ended for a reason of this worker's own, so that others may go on.
    """
    session = Baseline if run.judge.is_baseline else Batches if run.batched else Session
    return await session(
        run, shared=shared, stop=stop, stopped=stopped or Stopped(), patience=patience or Patience(), watch=watch
    ).work()
