"""A world and its neighbour: one hidden bit is another one, and so is everything that follows from it.

Both are built in the same state of the database, and walked by the same people. Whatever is told below staff and is not
the same in both lets the bit be worked out.
"""

import random
import re
import secrets
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import urljoin, urlsplit

from django.core import mail
from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts.models import Mail, Notice, Role, User
from bank import database
from leaderboard.kept import values
from leaderboard.registry import TABLES

MOST = 25  # further addresses that links lead to
BITS = (False, True)
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
MASKED = re.compile(
    rb'csrfmiddlewaretoken"\s+value="[^"]+"|CSRFToken": "[^"]+"|name="key"\s+value="[^"]+"|annotator-[0-9a-f]{10}'
)
LINKED = re.compile(r"/accounts/\S+")  # each has a token of its own
NOT_WALKED = ("/accounts/", "/static/", "/api/docs", "/api/schema")
LISTS = ("labels", "judgments", "items", "responses", "samples", "runs", "campaigns", "submissions")


def starts(benchmark, *, kinds, samples):
    """The addresses that name a benchmark, its campaigns and runs, boards of these kinds, items of these samples."""
    slug = benchmark.slug
    yield from (
        "/",
        "/leaderboards/",
        f"/leaderboards/{slug}/",
        "/campaigns/",
        "/annotate/",
        "/judging/",
        "/submissions/",
    )
    yield from (f"/api/v1/{name}/?benchmark={slug}&page_size=100" for name in LISTS)
    for kind in kinds:
        yield from (f"/api/v1/leaderboards/{table}/?benchmark={slug}&kind={kind}" for table in TABLES)
    for board in ("models", "judges", "agreement", "bias", "correlation"):
        yield from (f"/leaderboards/{slug}/{board}/?kind={kind}" for kind in kinds)
    for campaign in benchmark.campaigns.order_by("pk"):
        yield from (f"/campaigns/{campaign.pk}/", f"/campaigns/{campaign.pk}/agreement/")
        yield f"/campaigns/{campaign.pk}/data/download/?what=labels&shape=jsonl"
        yield f"/annotate/{campaign.pk}/"
    for run in benchmark.runs.order_by("pk"):
        yield from (f"/judging/runs/{run.pk}/", f"/judging/judgments/?run={run.pk}")
    for sample in benchmark.samples.filter(position__in=samples).order_by("pk"):
        yield from (f"/leaderboards/{slug}/items/{item}/" for item in sample.items.values_list("pk", flat=True))


def links(path, body):
    for found in re.findall(rb'(?:href|src|hx-get)="([^"#]+)', body):
        to = urlsplit(urljoin(f"http://testserver{path}", unescape(found.decode())))
        if to.netloc == "testserver" and not to.path.startswith(NOT_WALKED):
            yield to.path + (f"?{to.query}" if to.query else "")


def lists_of(benchmark):
    return [f"/api/v1/{name}/?benchmark={benchmark.slug}&page_size=100" for name in LISTS]


def walk(client, paths, *, more):
    """What each address answers, and so many more that links lead to."""
    found, waiting = {}, list(dict.fromkeys(paths))
    most = len(waiting) + more
    client.raise_request_exception = False
    for path in waiting:
        answer = client.get(path)
        body = answer.getvalue()
        found[path] = (answer.status_code, answer.get("Location", ""), MASKED.sub(b"*", body))
        if len(waiting) < most and "html" in answer.get("Content-Type", ""):
            waiting += [to for to in dict.fromkeys(links(path, body)) if to not in waiting][: most - len(waiting)]
    return found


@contextmanager
def the_same_chance(monkeypatch):
    """What is drawn, and what the clock says, is the same in every world."""
    dice = random.Random(7)
    with monkeypatch.context() as patch:
        patch.setattr(secrets, "randbelow", dice.randrange)
        patch.setattr(secrets, "token_hex", lambda size=16: f"{dice.getrandbits(8 * size):0{2 * size}x}")
        patch.setattr(secrets, "choice", dice.choice)
        patch.setattr(timezone, "now", lambda: NOW)
        patch.setattr(database, "now", lambda: NOW)
        yield


def told():
    """What notices and mails say to those below staff."""
    staff = User.objects.filter(role__in=(Role.CURATOR, Role.ADMINISTRATOR))
    notices = Notice.objects.exclude(person__in=staff).order_by("pk")
    texts = [f"{one.person}: {one.text} {one.link}" for one in notices]
    mails = [(row.to, row.subject, row.text) for row in Mail.objects.order_by("pk")]
    mails += [(to, one.subject, one.body) for one in mail.outbox for to in one.to]
    of_staff = set(staff.values_list("email", flat=True))
    texts += [f"{to}: {subject} {text}" for to, subject, text in mails if to not in of_staff]
    return {f"{number}": (200, "", LINKED.sub("*", text)) for number, text in enumerate([f"{len(texts)}", *texts])}


def differing(build, people, monkeypatch, *, roles, kinds, samples, most=MOST):
    """By role, the addresses that answer otherwise where ``build(bit)`` was called with the other bit, and how many
    answered with a page; of staff, lists of rows alone, and of ``mail`` what notices and mails say. ``build`` returns
    the benchmark, and by role somebody else who visits, or what somebody was answered.
    """
    seen, paths = {}, {}
    for bit in BITS:
        point = transaction.savepoint()
        with the_same_chance(monkeypatch):
            values.forget()
            mail.outbox.clear()
            benchmark, visitors = build(bit)
            seen["mail", bit] = told()
            for role in (*roles, "curator"):
                client = Client()
                visitor = visitors.get(role) or people.get(role)
                if isinstance(visitor, dict):  # what they were answered
                    seen[role, bit] = visitor
                    continue
                if visitor is not None:
                    client.force_login(visitor)
                if role == "curator":
                    seen[role, bit] = walk(client, lists_of(benchmark), more=0)
                    continue
                asked = paths.get(role) or starts(benchmark, kinds=kinds, samples=samples)
                seen[role, bit] = walk(client, asked, more=0 if role in paths else most)
                paths[role] = list(seen[role, bit])
        transaction.savepoint_rollback(point)
    values.forget()
    return {
        role: (
            [path for path, answer in seen[role, False].items() if answer != seen[role, True].get(path)],
            sum(answer[0] == 200 for answer in seen[role, False].values()),
        )
        for role in (*roles, "mail", "curator")
    }


def days_ago(days):
    return NOW - timedelta(days=days)
