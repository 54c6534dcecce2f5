"""One's own settings: language, look, keys; kept with the person."""

import json

import pytest
from django.test import Client

SETTINGS = "/accounts/settings/"
WANTED = {"language": "zh-hans", "theme": "dark", "text": "large", "layout": "stacked", "at_once": "on"}


@pytest.fixture
def annotator(client_of):
    return client_of("annotator")


def test_settings_are_kept_and_shown_on_every_device(annotator, people):
    assert annotator.post(SETTINGS, WANTED).status_code == 302
    elsewhere = Client()
    elsewhere.force_login(people["annotator"])
    html = elsewhere.get("/annotate/").content.decode()
    head = html[html.index("<html") : html.index("<head>")]
    for shown in ('lang="zh-hans"', 'data-theme="dark"', 'data-text="large"', 'data-layout="stacked"'):
        assert shown in head
    assert "还没有任务" in html


def test_pages_that_are_not_translated_stay_in_english_whole(annotator):
    annotator.post(SETTINGS, WANTED)
    html = annotator.get("/leaderboards/").content.decode()
    assert 'lang="en"' in html
    assert "排行榜" not in html


@pytest.mark.parametrize(
    ("asked", "language"), [("zh-CN,zh;q=0.9", "zh-hans"), ("de,en;q=0.5", "en"), ("", "en"), ("zh-TW", "zh-hans")]
)
def test_before_sign_in_the_browser_says_which_language(client, db, asked, language):
    html = client.get("/accounts/sign-in/", headers={"Accept-Language": asked}).content.decode()
    assert f'lang="{language}"' in html
    assert ("登录" in html) == (language == "zh-hans")


def test_keys_come_from_the_labelling_page_and_leave_the_rest_alone(annotator, people):
    annotator.post(SETTINGS, WANTED)
    keys = {"skip": "x", "first": "a"}
    fragment = {"headers": {"HX-Request": "true"}}
    assert annotator.post(SETTINGS, {"keys": json.dumps(keys)}, **fragment).json() == {"saved": True}
    assert annotator.post(SETTINGS, {"at_once": ""}, **fragment).status_code == 200
    people["annotator"].refresh_from_db()
    kept = people["annotator"].preferences
    assert kept == {"language": "zh-hans", "theme": "dark", "text": "large", "layout": "stacked", "keyboard": keys}


@pytest.mark.parametrize(
    "keys",
    ['{"skip": "xy"}', '{"skip": "x", "flag": "x"}', '{"rm": "x"}', '["x"]', "{", '{"skip": 1}', "[" * 100_000],
)
def test_keys_that_make_no_sense_are_refused(annotator, people, keys):
    answer = annotator.post(SETTINGS, {"keys": keys}, headers={"HX-Request": "true"})
    assert answer.status_code == 400
    people["annotator"].refresh_from_db()
    assert people["annotator"].preferences == {}


def test_after_saving_one_comes_back_to_where_one_was_and_to_no_other_site(annotator):
    assert annotator.post(SETTINGS, WANTED | {"next": "/annotate/"}).url == "/annotate/"
    for nowhere in ("https://evil.example/", "2020-01-01", "accounts:sign-out", "[]", "//evil.example"):
        assert annotator.post(SETTINGS, WANTED | {"next": nowhere}).url == SETTINGS
