"""What a label costs: submitting it and drawing the next item, on a campaign of 2,000 pairs."""

import re
import time
from collections.abc import Iterator

from django.db import connection
from django.test import Client

from tests.bench.parts import Result, database

ITEMS, LABELS = 2_000, 150
EMPTY = "/accounts/sign-in/"
TIMES = 5.0  # of an empty page; Label Studio takes 46 and 33 ms where it takes 2, doccano 10 and 14
TEXT = (
    "The tip is on the amount before tax, so **38.60**.\n\n1. Tip: 5.79\n2. With tax: 41.69\n\n$$\\frac{47.48}{2}$$\n\n"
)


def labelling() -> Iterator[Result]:
    """Submit and next, by page and by API: CPU time of each request, the first ones left out."""
    from accounts.models import User
    from accounts.tokens import make_token
    from annotations.campaigns.actions import make_campaign
    from annotations.models import Membership
    from bank.models import Benchmark, EvaluatedModel, Response, Sample
    from bank.samples.items import make_items, plan_items

    with database():
        benchmark = Benchmark.objects.create(slug="labels", title="Labels", visibility="public")
        models = [EvaluatedModel.objects.create(name=name) for name in ("model-one", "model-two")]
        samples = Sample.objects.bulk_create(
            Sample(benchmark=benchmark, key=str(n), instruction="How much does each pay?", position=n)
            for n in range(ITEMS)
        )
        Response.objects.bulk_create(
            Response(sample=s, model=m, text=f"{TEXT}{m} {s.key}") for s in samples for m in models
        )
        make_items(plan_items(kind="pair", benchmark=benchmark))
        people = [User.objects.create_user(name, role="annotator") for name in ("by-page", "by-api")]
        campaign = make_campaign(
            name="labels", benchmark=benchmark, protocol="pairwise-criteria", annotators=people, overlap=3
        )
        Membership.objects.update(guidelines_read=1)
        for submits, nexts, empty, words in (
            _by_page(people[0], campaign.pk),
            _by_api(make_token(person=people[1])[1]),
        ):
            yield Result(f"a label submitted {words}, beside an empty page", empty, submits, TIMES)
            yield Result(f"the next item {words}, beside an empty page", empty, nexts, TIMES)
    connection.close()


def _timed(requests: list[float], send) -> object:
    start = time.process_time()
    answer = send()
    requests.append(time.process_time() - start)
    return answer


def _usual(times: list[float]) -> float:
    """The mean without the slowest tenth and without the first ten."""
    kept = sorted(times[10:])
    kept = kept[: max(1, len(kept) * 9 // 10)]
    return sum(kept) / len(kept)


def _by_page(person, pk: int) -> tuple[float, float, float, str]:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(person)
    submits: list[float] = []
    nexts: list[float] = []
    empty: list[float] = []
    html = client.get(f"/annotate/{pk}/").content.decode()
    for _ in range(LABELS):
        _timed(empty, lambda: Client().get(EMPTY))
        url = re.search(r'action="([^"]+/submit/)"', html)[1]
        key = re.search(r'name="key" value="([^"]+)"', html)[1]
        ahead = _timed(nexts, lambda: client.post(f"/annotate/{pk}/ahead/"))
        sent = {"choice": "left", "key": key, "seconds": "12.5"}
        answer = _timed(submits, lambda url=url, sent=sent: client.post(url, sent))
        assert answer.status_code == 200, answer.content
        html = ahead.content.decode()
    return _usual(submits), _usual(nexts), _usual(empty), "by page"


def _by_api(token: str) -> tuple[float, float, float, str]:
    client = Client(headers={"Authorization": f"Token {token}"})
    submits: list[float] = []
    nexts: list[float] = []
    empty: list[float] = []
    for number in range(LABELS):
        _timed(empty, lambda: Client().get(EMPTY))
        held = _timed(nexts, lambda: client.post("/api/v1/campaigns/labels/next/", {}, "application/json")).json()
        body = {"assignment": held["assignment"], "idempotency_key": str(number), "choice": "left"}
        answer = _timed(submits, lambda body=body: client.post("/api/v1/labels/", body, "application/json"))
        assert answer.status_code == 201, answer.content
    return _usual(submits), _usual(nexts), _usual(empty), "by API"
