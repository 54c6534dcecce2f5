"""Runs whose pictures lie in object storage, on workers with data folders of their own."""

import pytest

from bank import images, media, objects
from bank.models import PictureStorage
from evalsite import worker
from judging.models import Run, WorkerBeat
from judging.runs import actions
from tests.judging.server import Server, answer
from tests.judging.small import make_benchmark

pytestmark = pytest.mark.usefixtures("people")


def test_a_worker_with_another_data_folder_reads_the_pictures(bucket, start, judge_at, work_on, settings, tmp_path):
    many = make_benchmark(samples=4, slug="many")
    assert images.media_matches_database()
    assert media.read(media.MARK).decode() == PictureStorage.objects.get().token
    settings.MEDIA_ROOT = settings.STAGED = tmp_path / "elsewhere"
    with Server(lambda call: answer("Answer1")) as server:
        run = work_on(start(judge_at(server.url), on=many))
    assert (run.state, run.verdicts, run.failures) == (Run.State.FINISHED, 8, 0)
    assert all("base64" in str(call.body) for call in server.calls)
    assert not (tmp_path / "elsewhere").exists()


def test_another_bucket_is_not_the_one_of_this_database(bucket, bucket_of, settings):
    other_bucket = bucket_of()
    make_benchmark(samples=4, slug="many")
    other_bucket.use(settings)
    assert not images.media_matches_database()  # and it does not become the right one by being looked at first
    assert not worker.beat("astray")
    bucket.use(settings)
    assert images.media_matches_database()
    other_bucket.use(settings)
    assert not worker.beat("astray")


def test_while_the_storage_is_away_a_run_waits_and_then_goes_on(bucket, start, judge_at, work_on, settings):
    many = make_benchmark(samples=6, slug="many")
    assert images.media_matches_database()

    def script(call):
        if call.number == 1:
            bucket.use(settings, S3_ENDPOINT="http://127.0.0.1:9")
        return answer("Answer1")

    with Server(script) as server:
        run = work_on(start(judge_at(server.url, concurrency=1), on=many))
        assert (run.state, run.failures, run.claims.count()) == (Run.State.WAITING, 0, 0)
        assert "its pictures: The object storage does not answer" in run.state_reason
        assert not worker.beat("w")
        assert WorkerBeat.objects.get(name="w").lacks_pictures
        with pytest.raises(objects.Away):
            images.media_matches_database()
        bucket.use(settings)
        actions.resume_run(run=run)
        run = work_on(run)
    assert (run.state, run.verdicts, run.failures) == (Run.State.FINISHED, 12, 0)
    assert len(server.calls) == 12
