"""Sessions of built-in judges: no calls, a page of items at a time, through the same rows as any other judge."""

import random

from accounts.loop import db
from judging import protocols
from judging.protocols import CannotAsk
from judging.protocols.baselines import CannotJudge, Case
from judging.protocols.replies import Reading
from judging.runs import requests
from judging.runs.plan import Job
from judging.work import leases, run_kinds
from judging.work.writer import Ended, Writer


class Baseline(Writer):
    async def session(self) -> None:
        after = 0
        while True:
            page = await db(self.kind.page, after=after)
            if page is None:
                if await db(leases.finish, self.run, kind=self.kind):
                    raise Ended(None)
                after = 0  # somebody asked for a retry meanwhile
                continue
            after = page.last
            self.batch.rows = [self._judge(job) for job in page.jobs]
            await self.flush()
            if self.ending:
                raise self.ending
            if self.stop.is_set():
                raise self.stopped

    def _judge(self, job: Job) -> run_kinds.Row:
        try:
            about = requests.job_material(self.run, job)
            case = Case(
                answers=about.answers,
                criteria=[criterion.text for criterion in about.criteria],
                order=job.positions,
                rng=random.Random(f"{self.run.seed}:{job.subject.content_hash}:{job.repeat}"),
                scale=[value for value, _ in about.scale],
                parts=[
                    (one.key, one.text, one.weight) for one in about.criteria if one.kind == "component" and one.weight
                ],
                categories=[category["value"] for category in self.run.settings.get("categories", ())],
            )
            judge = protocols.get(self.run.protocol).baselines[self.judge.baseline]
            return self.kind.row(job, Reading("ok", judge(case)))
        except (CannotAsk, CannotJudge) as error:
            return self.kind.row(job, Reading("error", reason=str(error)))
