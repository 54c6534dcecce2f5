"""MLLM-Bench's design of labelling, 2 samples of each of 42 capabilities by 3 models, in three browsers at once."""

import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest
from playwright.async_api import async_playwright

from tests import chromium
from tests.annotations.test_soak import ROOT, run, served

pytestmark = pytest.mark.soak
ITEMS, BROWSERS, OVERLAP = 252, 3, 3
WAIT = 120_000  # milliseconds

PREPARE = """
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.sampling import Plan
from accounts.models import User
from bank.models import Benchmark, EvaluatedModel
users = [User.objects.create_user(f"person-{n}", password="a-long-password", role="annotator") for n in range(3)]
benchmark = Benchmark.objects.get(slug="mllm-bench")
# The first of each pair is the candidate, the second the anchor.
candidates = EvaluatedModel.objects.filter(responses__places__item__kind="pair", responses__places__position=0)
models = sorted(set(candidates.values_list("name", flat=True)))[:3]
plan = Plan(how="per-capability", n=2, models=tuple(models))
campaign = make_campaign(
    name="design", benchmark=benchmark, protocol="pairwise-criteria", overlap=3, annotators=users, plan=plan, seed=1
)
print(campaign.campaign_items.count())
"""
REPORT = """
import json
from django.db.models import Count
from annotations.models import CampaignItem, Label
print(json.dumps({
    "each": list(CampaignItem.objects.annotate(n=Count("assignments__label")).values_list("n", flat=True)),
    "by": list(Label.objects.values_list("annotator").annotate(n=Count("pk")).values_list("n", flat=True)),
}))
"""


async def label_all(browser, address, number):
    """Sign in and label until nothing is left: (seconds to the first label, seconds of each label after it)."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(WAIT)
    page = await context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    await page.goto(f"{address}/annotate/")
    await page.fill("input[name=username]", f"person-{number}")
    await page.fill("input[name=password]", "a-long-password")
    begun = time.perf_counter()
    await page.get_by_role("button", name="Sign in").click()
    async with page.expect_response(lambda response: response.url.endswith("/ahead/")):  # the keys work then
        await page.get_by_role("link", name="See what to do").click()
        await page.get_by_role("button", name="Start").click()
    times = []
    for _ in range(ITEMS):
        before = await page.locator("#work").get_attribute("data-assignment")
        await page.keyboard.press("120"[len(times) % 3])
        await page.keyboard.press("Enter")
        await page.locator(f"#work[data-assignment='{before}']").wait_for(state="detached")
        times.append(time.perf_counter() - begun)
        begun = time.perf_counter()
    await page.get_by_role("heading", name=f"All {ITEMS} done").wait_for()
    await context.close()
    return times[0], times[1:], said


async def label_in_parallel(address, executable):
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable)
        try:
            return await asyncio.gather(*(label_all(browser, address, number) for number in range(BROWSERS)))
        finally:
            await browser.close()


def test_three_browsers_label_the_design_without_a_hitch(tmp_path, shared_data):
    executable = chromium.executable()
    if executable is None:
        pytest.skip(chromium.NEEDED)
    environment = os.environ | {"EVALSITE_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "evalsite.settings"}
    for name in ("DATABASE_URL", "ALLOWED_HOSTS", "DEBUG", "SSL_REDIRECT", "SECRET_KEY", "CRITERIA_KEYS"):
        environment.pop(name, None)
    data = ["mllm-bench", str(shared_data / "mllm-bench"), "--benchmark", "mllm-bench", "--skip-bad"]
    for command in (
        ["migrate", "-v0"],
        ["collectstatic", "--noinput", "-v0"],
        ["import_benchmark", *data],
        ["import_responses", *data],
        ["make_items", "pair", "--benchmark", "mllm-bench", "--anchor", "llava-v1.5-13b"],
    ):
        subprocess.run([sys.executable, "manage.py", *command], env=environment, cwd=ROOT, check=True)
    assert int(run(PREPARE, environment)) == ITEMS
    # In a thread of its own: other tests of browsers leave a loop running in this one.
    with served(environment) as (port, _), ThreadPoolExecutor(1) as alone:
        found = alone.submit(asyncio.run, label_in_parallel(f"http://127.0.0.1:{port}", executable)).result()
    report = json.loads(run(REPORT, environment))
    assert report["each"] == [OVERLAP] * ITEMS
    assert report["by"] == [ITEMS] * BROWSERS
    assert [said for *_, said in found if said] == []
    for first, rest, _ in found:
        slow = sorted(rest)[int(len(rest) * 0.95)]
        print(f"\nfirst label {first:.1f} s after sign-in; then median {median(rest):.2f} s, p95 {slow:.2f} s", end="")
