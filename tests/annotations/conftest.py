"""Small benchmarks of pairs, annotators and campaigns, made through the public actions."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import connections

from accounts.models import User
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.members import make_annotator
from annotations.models import Membership
from bank.models import Benchmark, EvaluatedModel, Response, Sample
from bank.samples.items import make_items, plan_items

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def now():
    return NOW


@pytest.fixture
def pairs(db):
    """``pairs(4)`` makes a benchmark of 4 samples, each with one pair of answers (or of several models)."""

    def make(samples=4, *, slug="pairs", models=("model-one", "model-two"), texts=None):
        benchmark = Benchmark.objects.create(slug=slug, title=slug.title(), visibility="public")
        known = [EvaluatedModel.objects.get_or_create(name=name)[0] for name in models]
        made = Sample.objects.bulk_create(
            Sample(benchmark=benchmark, key=f"s{number}", instruction=f"Question {number}?", position=number)
            for number in range(samples)
        )
        Response.objects.bulk_create(
            Response(sample=sample, model=model, text=texts[place] if texts else f"Answer {place} of {sample.key}")
            for sample in made
            for place, model in enumerate(known)
        )
        if samples:
            make_items(plan_items(kind="pair", benchmark=benchmark, models=models))
        return benchmark

    return make


@pytest.fixture
def annotators(db):
    """``annotators(3)`` makes three accounts with their annotators."""

    def make(count):
        users = [User.objects.create_user(f"person-{n}", role="annotator") for n in range(count)]
        return [make_annotator(user) for user in users]

    return make


@pytest.fixture
def campaign_of(pairs, annotators):
    """``campaign_of(samples, annotators)`` makes both and a campaign whose guidelines they have read: the two."""

    def make(samples=4, people=2, *, texts=None, **options):
        benchmark = pairs(samples, texts=texts)
        members = annotators(people)
        wanted = {"name": "Round 1", "protocol": "pairwise-criteria", "seed": 7} | options
        campaign = make_campaign(benchmark=benchmark, annotators=[member.person for member in members], **wanted)
        Membership.objects.filter(campaign=campaign).update(guidelines_read=campaign.guidelines_version)
        return campaign, members

    return make


def at_once(work, arguments):
    """Runs ``work(argument)`` for each argument in a thread of its own, all at the same time."""

    def one(argument):
        try:
            return work(argument)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(one, arguments))
