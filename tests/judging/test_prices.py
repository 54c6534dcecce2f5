"""What calls cost: prices that are given, that are listed for an address, and of tokens that were read before."""

from io import StringIO

import pytest
from django.core.management import call_command

from judging.endpoints.judges import add_judge
from judging.models import Judge
from judging.runs import actions
from tests.judging.server import Server, answer
from tests.judging.small import make_benchmark

OPENAI = "https://api.openai.com/v1"
# https://openai.com/api/pricing, November 2026, as genai-prices lists it: sent, sent again, received.
GPT_5 = (1.25, 0.125, 10.0)


def prices(judge):
    return judge.price_in, judge.price_cached, judge.price_out


def test_a_judge_without_prices_gets_those_that_are_listed_for_its_address_and_model(db):
    def added(base_url, model, **given):
        name = f"{base_url} {model} {given}"
        return prices(add_judge(name=name, base_url=base_url, model=model, any_host=True, **given))

    assert added(OPENAI, "gpt-5") == GPT_5
    assert added(OPENAI, "gpt-5", price_in=1.0, price_out=2.0) == (1.0, None, 2.0)
    assert added(OPENAI, "gpt-5", price_in=0.0, price_out=0.0) == (0.0, None, 0.0)
    assert added(OPENAI, "of-nobody") == (None, None, None)
    assert added("http://localhost:8000/v1", "gpt-5") == (None, None, None)


def test_of_prices_that_rise_with_the_length_of_a_prompt_the_lowest_is_taken(db):
    google = "https://generativelanguage.googleapis.com/v1beta/openai"
    assert prices(add_judge(name="g", base_url=google, model="gemini-2.5-pro", any_host=True)) == (1.25, 0.125, 10.0)


def test_the_command_lists_them_and_fills_only_what_is_empty_or_named(db):
    for name, price in (("empty", None), ("own", 7.0), ("other", 8.0)):
        Judge.objects.create(name=name, base_url=OPENAI, model="gpt-5", price_in=price, price_out=price)
    out = StringIO()
    call_command("prices", stdout=out)
    assert "own: 7 - 7; listed: $1.25 sent, 0.125 sent again and $10 received" in out.getvalue()
    assert prices(Judge.objects.get(name="empty")) == (None, None, None)
    call_command("prices", "--fill", "--update", "other", stdout=StringIO())
    found = {judge.name: prices(judge) for judge in Judge.objects.exclude(base_url="")}
    assert found == {"empty": GPT_5, "own": (7.0, None, 7.0), "other": GPT_5}


@pytest.mark.parametrize(("price_cached", "cost"), [(None, 0.0024), (0.25, 0.0018)])
def test_tokens_that_the_endpoint_had_read_before_cost_what_their_price_says(db, media, work_on, price_cached, cost):
    usage = {"prompt_tokens": 1000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 800}}
    with Server(lambda call: answer("Answer1", usage=usage)) as server:
        judge = Judge.objects.create(
            name="j", base_url=server.url, model="m", price_in=1.0, price_cached=price_cached, price_out=7.0
        )
        asked = {"protocol": "pairwise-criteria", "settings": {"order": "fixed"}}
        run = work_on(actions.start_run(judge=judge, benchmark=make_benchmark(samples=1), **asked))
    assert run.verdicts == 1
    assert run.spent == pytest.approx(cost)
