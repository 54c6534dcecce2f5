"""Pictures and backups in object storage: a real S3 server, real HTTP, real processes."""

import io
import json
import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest
from botocore.config import Config
from PIL import Image

from bank import images, media
from bank.models import SampleImage
from bank.objects import Away
from evalsite import doctor
from tests.bank.conftest import picture
from tests.judging.outside import Installation, installation
from tests.judging.processes import CONCURRENCY, Case
from tests.judging.server import Server, after, answer
from tests.judging.small import make_benchmark
from tests.operations.test_backup import empty

GONE = "http://127.0.0.1:9"


def local_files(settings):
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def stored(**given):
    made = images.ingest(picture(**given))
    return f"images/{made.sha256[:2]}/{made.sha256}.{made.kind}"


def status_of(url):
    try:
        return urllib.request.urlopen(url, timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_picture_lies_in_the_bucket_alone_and_nobody_reads_it_there(bucket, settings):
    name = stored()
    assert bucket.names() == [f"media/{name}"]
    assert not local_files(settings)
    assert media.read(name)[:4] == b"\x89PNG"
    assert status_of(f"{bucket.endpoint}/{bucket.name}/media/{name}") == 403
    acl = bucket.client.get_object_acl(Bucket=bucket.name, Key=f"media/{name}")
    assert [grant["Grantee"]["Type"] for grant in acl["Grants"]] == ["CanonicalUser"]  # its owner
    media.remove(name)
    assert not media.exists(name)
    with pytest.raises(FileNotFoundError):
        media.read(name)


@pytest.fixture
def sample_picture(bucket, db):
    benchmark = make_benchmark(samples=1, visibility="private")
    assert images.media_matches_database()
    return benchmark, SampleImage.objects.get()


def test_a_picture_is_served_by_our_own_view_to_those_who_may_see_it(sample_picture, client_of):
    _, image = sample_picture
    address = f"/bank/images/{image.sha256}.png"
    assert client_of("anonymous").get(address).status_code == 404
    page = client_of("curator").get(address)
    sent = b"".join(page.streaming_content)
    assert (page.status_code, len(sent)) == (200, int(page.headers["Content-Length"]))
    assert page.headers["Content-Type"] == "image/png"
    assert page.headers["Cache-Control"] == "private, max-age=86400, immutable"
    assert Image.open(io.BytesIO(sent)).size == (image.width, image.height)
    media.remove(image.path)
    assert client_of("curator").get(address).status_code == 404


def test_while_the_storage_is_away_pages_say_503_and_readyz_and_doctor_say_why(
    sample_picture, bucket, settings, client_of, client
):
    _, image = sample_picture
    assert doctor.storage().level != "fault"
    bucket.use(settings, S3_ENDPOINT=GONE)
    curator = client_of("curator")
    curator.raise_request_exception = False
    page = curator.get(f"/bank/images/{image.sha256}.png")
    assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
    assert "The object storage does not answer" in page.content.decode()
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert "The object storage does not answer" in ready.json()["storage"]
    found = dict(doctor.examine())
    assert "S3_ENDPOINT" in found["storage"].words
    assert found["pictures"].is_fault
    bucket.use(settings, S3_BUCKET="another")
    assert "refuses us (NoSuchBucket)" in doctor.storage().words


def test_for_a_storage_that_never_answers_nobody_waits_who_asks_after_somebody_waited_in_vain(bucket, settings):
    name = stored()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = settings.STORAGES["default"]["OPTIONS"]
        config = options["client_config"].merge(Config(read_timeout=0.3, retries={"total_max_attempts": 1}))
        put_at = {"OPTIONS": options | {"endpoint_url": endpoint, "client_config": config}}
        settings.STORAGES = settings.STORAGES | {"default": settings.STORAGES["default"] | put_at}
        for _ in range(5):
            with pytest.raises(Away, match="does not answer"):
                media.read(name)
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):  # the first alone came as far as the storage
            silent.accept()


def test_doctor_tells_a_bucket_that_anybody_can_read(sample_picture, bucket):
    _, image = sample_picture
    assert doctor.pictures().level == "ok"
    bucket.client.put_object_acl(Bucket=bucket.name, Key=f"media/{image.path}", ACL="public-read")
    assert "anybody can read" in doctor.pictures().words


@pytest.fixture
def here(tmp_path, bucket_of):
    """An installation with one picture in its data folder, and a bucket that its environment does not name yet."""
    Image.new("RGB", (9, 9), "red").save(tmp_path / "a.png")
    row = {"key": "1", "instruction": "See.", "images": ["a.png"]}
    (tmp_path / "samples.jsonl").write_text(json.dumps(row | {"criteria": [{"kind": "guideline", "text": "hidden"}]}))
    with installation(tmp_path / "data") as outside:
        outside.manage("import_benchmark", "generic", str(tmp_path / "samples.jsonl"), "--benchmark", "kept")
        outside.bucket = bucket_of()
        yield outside


def in_bucket(one, folder=None):
    """The same installation with its files in the bucket, and with another data folder."""
    moved = Installation(Path(one.environment["EVALSITE_DATA"]), one.environment["DATABASE_URL"])
    moved.environment |= one.bucket.environment
    if folder:
        moved.environment["EVALSITE_DATA"] = str(folder)
    return moved


def add_pictures(one, number):
    """Add pictures to the data folder."""
    code = f"""
from bank import images
import io
from PIL import Image
for n in range({number}):
    out = io.BytesIO()
    Image.new("RGB", (9, 9), (n % 256, n // 256, 77)).save(out, "PNG")
    images.ingest(out.getvalue())
answer = images.media_matches_database()
"""
    assert one.ask(code)


def test_pictures_move_to_the_bucket_and_back_under_kills_and_damage_is_found(here, tmp_path):
    add_pictures(here, 120)
    away, counted = in_bucket(here), []
    for _ in range(2):
        process = away.start("move_media")
        before = len(here.bucket.names())
        while len(here.bucket.names()) < before + 20 and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        counted.append(len(here.bucket.names()))
        assert f"media/{media.MARK}" not in here.bucket.names()  # it is not taken for whole
    assert counted == sorted(set(counted))
    out = away.manage("move_media")
    there, copied = re.match(r"(\d+) pictures: (\d+) copied", out).groups()
    assert (there, int(copied)) == ("121", 121 - counted[-1])
    assert "All have the right SHA-256" in out
    assert "0 copied" in away.manage("move_media")

    name = next(name for name in here.bucket.names() if name.endswith(".png"))
    whole = here.bucket.client.get_object(Bucket=here.bucket.name, Key=name)["Body"].read()
    spoiled = bytes([whole[0] ^ 1]) + whole[1:]
    here.bucket.client.put_object(Bucket=here.bucket.name, Key=name, Body=spoiled)
    assert "All have" in away.manage("move_media")  # what is damaged is copied anew
    assert here.bucket.client.get_object(Bucket=here.bucket.name, Key=name)["Body"].read() == whole

    elsewhere = in_bucket(here, tmp_path / "elsewhere")
    assert "121 copied" in elsewhere.manage("move_media", "--back")
    files = [path.name for path in (tmp_path / "elsewhere" / "media").rglob("*") if path.is_file()]
    assert len(files) == 122
    here.bucket.client.put_object(Bucket=here.bucket.name, Key=f"media/{media.MARK}", Body=b"0" * 32)
    assert "holds the pictures of another database" in away.tried("move_media").stderr


def test_a_backup_in_the_bucket_comes_back_whole_and_shares_pictures(here, bucket_of, tmp_path):
    away, other_bucket = in_bucket(here), bucket_of()
    away.manage("move_media")
    address = f"s3://{other_bucket.name}/nightly"
    assert ": 1 rows" not in away.manage("backup", address, "--verify")
    add = "from accounts.models import User; User.objects.create_user('later'); answer = 0"
    away.ask(add)
    time.sleep(1.1)  # named by the second
    out = away.manage("backup", address, "--verify", "--keep", "1")
    assert out.count("Deleted") == 1
    names = [name.removeprefix("nightly/") for name in other_bucket.names()]
    (manifest,) = [name for name in names if name.endswith("manifest.json")]
    pictures = [name for name in names if name.startswith("media/images/")]
    assert len(pictures) == 1
    assert len([name for name in names if name.endswith("/database")]) == 1
    assert not list(Path(away.environment["EVALSITE_DATA"]).glob("backup-*"))
    process = away.start("backup", address)
    on_its_way = Path(away.environment["EVALSITE_DATA"]) / "backup-under-way"
    while not list(on_its_way.glob("*/database")) and process.poll() is None:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    away.manage("backup", address, "--verify")
    assert not on_its_way.exists()

    key = f"nightly/{pictures[0]}"
    whole = other_bucket.client.get_object(Bucket=other_bucket.name, Key=key)["Body"].read()
    other_bucket.client.put_object(Bucket=other_bucket.name, Key=key, Body=whole[:-1] + b"x")
    assert "Damaged or gone" in away.tried("backup", address, "--verify-only").stderr
    other_bucket.client.put_object(Bucket=other_bucket.name, Key=key, Body=whole)
    with empty(away, tmp_path / "restored") as place:
        place.bucket = bucket_of()
        target = in_bucket(place)
        assert "2 files of pictures" in target.manage("restore", f"{address}/{manifest.partition('/')[0]}")
        assert (
            target.ask("from accounts.models import User; answer = User.objects.filter(username='later').count()") == 1
        )
        assert target.ask("from bank.images import media_matches_database as same; answer = same()")
        assert len(place.bucket.names()) == 2
        assert "is not empty" in target.tried("restore", address).stderr


def test_a_backup_into_a_folder_holds_the_pictures_of_the_bucket_once(here, tmp_path):
    away = in_bucket(here)
    away.manage("move_media")
    away.manage("backup", str(tmp_path / "backups"), "--verify")
    time.sleep(1.1)
    away.manage("backup", str(tmp_path / "backups"), "--verify")
    files = list((tmp_path / "backups").rglob("*.png"))
    assert len(files) == 2
    assert len({path.stat().st_ino for path in files}) == 1


@pytest.mark.soak  # kills between two workers are in judging/test_sharing.py, pictures in the bucket above
def test_workers_on_machines_of_their_own_finish_a_run_under_kills_and_its_pictures_are_exported(here, tmp_path):
    web, workers = in_bucket(here), [in_bucket(here, tmp_path / name) for name in ("first", "second")]
    with Server(lambda call: after(0.05, answer("Answer1"))) as server:
        case = Case(web, server, name="apart", samples=40)
        for worker in workers:
            process = worker.start("worker")
            case.after_calls(15, process)
            case.kill(process)
        both = [worker.start("worker", "--until-idle") for worker in workers]
        assert [process.communicate(timeout=300) and process.returncode for process in both] == [0, 0]
        case.check(repeated=2 * CONCURRENCY)
    web.close()
    out = tmp_path / "apart.zip"
    workers[0].manage(
        "export", "samples", "--benchmark", "apart", "--format", "jsonl", "--with-images", "--output", str(out)
    )
    with zipfile.ZipFile(out) as archive:
        assert len([name for name in archive.namelist() if name.endswith(".png")]) == 40
    assert not [path for name in ("first", "second") for path in (tmp_path / name).rglob("*.png")]


def test_without_a_bucket_nothing_of_it_is_loaded_and_settings_that_do_not_fit_are_refused(here):
    read = "import sys; from bank import media; from bank.models import SampleImage as images; "
    assert (
        here.ask(f"{read}media.read(images.objects.get().path); answer = [n for n in sys.modules if 'boto' in n]") == []
    )
    done = here.tried("check", S3_BUCKET="b", S3_ACCESS_KEY="a")
    assert "S3_ACCESS_KEY and S3_SECRET_KEY are set together" in done.stderr
    assert "Set S3_BUCKET" in here.tried("backup", "s3://b/c").stderr
    done = in_bucket(here).tried("backup", f"s3://{here.bucket.name}/media")
    assert "is among the files that would be backed up" in done.stderr
