"""The page of a judge: whether it can be called, what it can do, and its limits to change."""

import pytest
from django.urls import reverse

from judging.models import Judge
from tests.judging.server import Server, answer, error
from tests.judging.test_pages import text_of
from tests.markup import flat

pytestmark = pytest.mark.django_db


def page_of(client, judge) -> str:
    return text_of(client.get(reverse("judging:judge-detail", args=[judge.pk])))


def test_staff_see_whether_the_key_is_set_and_the_host_allowed_and_never_the_key(
    client_of, judge_at, settings, monkeypatch
):
    judge = judge_at("http://127.0.0.1:9/v1", key_env="KESTREL_API_KEY")
    settings.JUDGE_HOSTS = ["api.example.org"]
    monkeypatch.delenv("KESTREL_API_KEY", raising=False)
    assert "is not set in the web process" in page_of(client_of("curator"), judge)
    monkeypatch.setenv("KESTREL_API_KEY", "sk-very-secret")
    page = page_of(client_of("curator"), judge)
    assert "The variable KESTREL_API_KEY is set" in page
    assert "sk-very-secret" not in page
    assert "is not on the list of allowed hosts (api.example.org). It was added by command" in page
    Judge.objects.update(any_host=False)
    assert "its runs pause" in page_of(client_of("curator"), judge)
    settings.JUDGE_HOSTS = ["127.0.0.1:9"]
    assert "is one of those that judges may use" in page_of(client_of("curator"), judge)
    for words in ("KESTREL_API_KEY", "Can it be called", "Test it"):
        assert words not in page_of(client_of("researcher"), judge)


def test_a_test_call_stores_and_shows_what_the_endpoint_can_do(client_of, judge_at):
    with Server(lambda call: answer("4")) as server:
        judge = judge_at(server.url)
        client = client_of("curator")
        assert "Not tested yet" in page_of(client, judge)
        answered = client.post(reverse("judging:judge-probe", args=[judge.pk]), follow=True)
        assert "The test results are stored" in text_of(answered)
        assert len(server.calls) > 1
    page = page_of(client_of("researcher"), judge)
    for words in ("Sees pictures", "Accepts a seed", "Tested"):
        assert words in page
    assert client_of("researcher").post(reverse("judging:judge-probe", args=[judge.pk])).status_code == 403


def test_a_test_call_that_fails_says_why_and_stores_nothing(client_of, judge_at):
    with Server(lambda call: error(401, message="no such key")) as server:
        judge = judge_at(server.url)
        answered = client_of("curator").post(reverse("judging:judge-probe", args=[judge.pk]), follow=True)
    assert "kestrel at 127.0.0.1" in text_of(answered)
    judge.refresh_from_db()
    assert judge.abilities == {}


def test_limits_and_prices_are_changed_from_what_they_are(client_of, settings):
    settings.JUDGE_HOSTS = ["api.example.org"]
    client, path = client_of("curator"), reverse("judging:judge-new")
    given = {"name": "kestrel", "model": "k", "base_url": "https://api.example.org/v1", "timeout": 60}
    client.post(path, given | {"concurrency": 8})
    judge = Judge.objects.get(name="kestrel")
    assert "Change limits and prices" in page_of(client, judge)
    form = client.get(path, {"from": judge.pk}).context["form"]
    begun = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    kept = {name: value for name, value in begun.items() if value not in (None, "")}
    assert kept == given | {"concurrency": 8, "waits": "1,5,15,30,60", "give_up_after": 1440}
    client.post(path, kept | {"price_in": 1, "price_out": 2})
    judge.refresh_from_db()
    assert (judge.concurrency, judge.price_in, judge.price_out) == (8, 1.0, 2.0)


def test_the_addresses_that_are_allowed_are_told_before_the_form_is_filled_in(client_of, settings):
    settings.JUDGE_HOSTS = ["api.example.org"]
    page = flat(client_of("curator").get("/judging/judges/new/"))
    assert page.index("api.example.org") < page.index('name="base_url"')
