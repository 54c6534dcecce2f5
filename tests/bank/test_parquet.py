"""Without pyarrow everything but Parquet works, and whoever asks for Parquet is told what to install."""

import subprocess
import sys

import pytest

from bank.intake.imports.engine import run_import
from bank.intake.parquet import NEEDED, NoPyarrow
from bank.models import Response
from tests.bank.conftest import RESPONSES, SAMPLES
from tests.bank.test_submissions import allow, answers, choices, send

__all__ = ["allow", "choices", "send"]
BYTES = b"PAR1 and so on PAR1"

STARTED = """
import os, sys
sys.modules["pyarrow"] = None
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
import evalsite.urls, evalsite.worker, bank.intake.parquet
print(bank.intake.parquet.available())
"""


@pytest.fixture
def curator(client_of):
    return client_of("curator")


def test_every_process_starts_without_it():
    done = subprocess.run([sys.executable, "-c", STARTED], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("format", ["auto", "generic"])
def test_a_parquet_file_that_comes_in_names_what_is_missing(format, folder, manage, no_pyarrow):
    path = folder("samples", None, name="samples.parquet", raw=BYTES)
    status, _, err = manage("import_benchmark", format, path, "--benchmark", "small")
    assert (status, NEEDED in err) == (1, True)


def test_beside_other_files_it_is_not_left_out_in_silence(db, folder, no_pyarrow):
    folder("samples", [SAMPLES[1]])
    folder("responses", None, name="responses.parquet", raw=BYTES)
    with pytest.raises(NoPyarrow, match="make setup EXTRAS=parquet"):
        run_import(path=folder.root, slug="small")


def test_a_submission_in_it_is_told_so(choices, allow, send, no_pyarrow):
    benchmark = choices(dev=4)
    allow(benchmark)
    submission = send(benchmark, None, raw=BYTES.decode())
    assert submission.state == "failed"
    assert NEEDED in str(submission.problems)
    assert not Response.objects.filter(sample__benchmark=benchmark).exists()
    assert send(benchmark, answers(benchmark, splits=["dev"]), name="Wren").state == "scored"


def test_files_leave_in_the_other_shapes(small, curator, manage, tmp_path, no_pyarrow):
    path = tmp_path / "out"
    command = ("export", "responses", "--benchmark", "small", "--output", path, "--format")
    status, _, err = manage(*command, "parquet")
    assert (status, NEEDED in err, path.exists()) == (1, True, False)
    assert manage(*command, "csv")[0] == 0
    assert len(path.read_text("utf-8").splitlines()) == len(RESPONSES) + 1
    address = "/bank/benchmarks/small/export/"
    assert 'value="parquet"' not in curator.get(address).content.decode()
    refused = curator.post(address, {"what": "samples", "shape": "parquet"})
    assert refused.status_code == 200
    assert NEEDED in refused.content.decode()
    assert curator.post(address, {"what": "samples", "shape": "csv"}).streaming
    judgments = "/judging/judgments/export/"
    assert 'value="parquet"' not in curator.get(judgments).content.decode()
    assert NEEDED in curator.post(judgments, {"shape": "parquet"}).content.decode()
