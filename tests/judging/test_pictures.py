"""Pictures on their way to an endpoint: read once, however many calls show them.

``loop.run`` takes a thread of its own: where a browser was at work, this one has a loop already.
"""

import asyncio
import base64
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from accounts import loop
from bank.corruptions import Step
from judging.endpoints.messages import Pictures


def part(pictures, path, sha256="a"):
    return pictures.part(sha256=sha256, kind="png", name=str(path))


def test_calls_that_start_together_read_their_picture_once(tmp_path):
    pipe = tmp_path / "picture.png"
    os.mkfifo(pipe)  # gives its bytes to one reader
    threading.Thread(target=lambda: pipe.write_bytes(b"pixels"), daemon=True).start()

    async def together():
        pictures = Pictures()
        return await asyncio.gather(*(part(pictures, pipe) for _ in range(8))), await part(pictures, pipe)

    first, later = loop.run(lambda: asyncio.wait_for(together(), 20))
    assert set(first) == {later}
    assert base64.b64encode(b"pixels") in later


def test_a_call_that_is_given_up_leaves_the_picture_to_the_others(tmp_path):
    pipe = tmp_path / "picture.png"
    os.mkfifo(pipe)

    async def given_up():
        pictures = Pictures()
        calls = [asyncio.create_task(part(pictures, pipe)) for _ in range(2)]
        await asyncio.sleep(0)
        calls[0].cancel()
        await asyncio.sleep(0)
        threading.Thread(target=lambda: pipe.write_bytes(b"pixels"), daemon=True).start()
        return await calls[1]

    assert base64.b64encode(b"pixels") in loop.run(lambda: asyncio.wait_for(given_up(), 20))


def test_a_picture_that_was_missing_is_looked_for_again(tmp_path):
    path = tmp_path / "picture.png"

    async def twice():
        pictures = Pictures()
        missing = await asyncio.gather(*(part(pictures, path) for _ in range(2)), return_exceptions=True)
        path.write_bytes(b"pixels")
        return missing, await part(pictures, path)

    missing, found = loop.run(twice)
    assert [type(error) for error in missing] == [FileNotFoundError] * 2
    assert base64.b64encode(b"pixels") in found


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_what_is_kept_stays_within_its_bytes(tmp_path, size):
    async def many():
        pictures = Pictures(limit=3_000_000)
        for name in "abcdef":
            (tmp_path / name).write_bytes(name.encode() * size)
            await part(pictures, tmp_path / name, name)
            (tmp_path / name).unlink()
        kept = await asyncio.gather(
            *(part(pictures, tmp_path / name, name) for name in "abcdef"), return_exceptions=True
        )
        return [isinstance(one, bytes) for one in kept]

    kept = loop.run(many)
    assert kept == ([True] * 6 if size == 10 else [False] * 4 + [True] * 2)


def test_a_few_pictures_are_corrupted_at_once_however_many_calls_want_some(tmp_path, monkeypatch):
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"pixels")
    at_once, most, lock = [0], [0], threading.Lock()

    def corrupted(name, **what):
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        time.sleep(0.02)
        with lock:
            at_once[0] -= 1
        return b"fog"

    monkeypatch.setattr("judging.endpoints.messages.corrupted", corrupted)

    async def together():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
        pictures = Pictures()
        fog = {"kind": "png", "name": str(picture), "corruption": (Step("fog", 1),)}
        return await asyncio.gather(*(pictures.part(sha256="a", seed=str(n), **fog) for n in range(64)))

    parts = loop.run(lambda: asyncio.wait_for(together(), 20))
    assert {base64.b64encode(b"fog") in part for part in parts} == {True}
    assert most[0] == 4
