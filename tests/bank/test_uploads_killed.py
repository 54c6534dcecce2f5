"""The process that checks and imports is killed: nobody sees anything of it, and the next begins the step again."""

import json
import signal
from pathlib import Path

import pytest

from tests.judging.outside import installation

pytestmark = pytest.mark.both_databases

ROWS = 6_000
PREPARE = """
from accounts.models import User
from bank.models import Upload
from bank.intake.uploads import actions
by = User.objects.create_user("curator", role="curator")
data = b"".join(b'{{"key": "k%d", "instruction": "How many boats?", "criteria": [{{"text": "Three."}}]}}\\n' % n for n in range({rows}))
upload = actions.start(by=by, files=[("boats.jsonl", len(data))])
actions.receive(upload=upload, offset=0, length=len(data), pieces=[data])
answer = [upload.pk, str(upload.folder)]
"""  # noqa: E501
CONFIRM = """
from bank.models import Upload
from bank.intake.uploads import actions
upload = Upload.objects.get()
actions.confirm(upload=upload, choices=upload.choices)
answer = upload.choices["benchmark"]
"""

SEEN = "from bank.models import Sample; answer = Sample.objects.count()"

DIES = """
import os, signal
from bank.intake.uploads.worker import ProgressReporter, work_all
tell = ProgressReporter.__call__
def tell_and_die(reporter, part, rows):
    tell(reporter, part, rows)
    if part == "{part}" and rows:
        os.kill(os.getpid(), signal.SIGKILL)
ProgressReporter.__call__ = tell_and_die
work_all()
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with installation(tmp_path_factory.mktemp("uploads")) as outside:
        yield outside


def kill_in(here, part):
    """Do the work in a process that the system kills when it tells of the first rows of this part."""
    assert here.run(DIES.format(part=part)).returncode == -signal.SIGKILL


@pytest.mark.check("C10")
def test_a_killed_check_and_a_killed_import_leave_nothing_and_are_begun_again(here):
    _, name = here.ask(PREPARE.format(rows=ROWS))
    folder = Path(here.environment["EVALSITE_DATA"], "staged", name)
    count = "SELECT count(*) FROM bank_sample"
    state = "SELECT state FROM bank_upload"
    kill_in(here, "samples")
    assert here.sql(state) == [("checking",)]
    assert (folder / "plain").exists()
    here.manage("worker", "--until-idle")
    assert not (folder / "plain").exists()
    assert here.sql(state) == [("checked",)]
    assert here.ask(CONFIRM) == "boats"
    kill_in(here, "write")
    assert (here.sql(state), here.ask(SEEN)) == ([("importing",)], 0)
    here.manage("worker", "--until-idle")
    assert (here.sql(state), here.sql(count)) == ([("done",)], [(ROWS,)])
    report = here.sql("SELECT report FROM bank_upload")[0][0]
    report = json.loads(report) if isinstance(report, str) else report
    assert report["made"] == {"samples": ROWS, "criteria": ROWS}
    assert not (folder / "pieces").exists()
