"""One's own settings: language, look, keys; kept with the person."""

import json

import pytest
from django.test import Client, RequestFactory

from accounts.models import Notice
from annotations.assignment.leases import next_assignment
from annotations.campaigns.invitations import invite, send
from annotations.labels.actions import return_label, submit_label
from tests.annotations import kinds
from tests.markup import flat

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


def test_pages_that_are_not_translated_stay_in_english_and_say_so_in_one_line(annotator):
    assert 'lang="zh-hans"' not in annotator.get("/leaderboards/").content.decode()
    annotator.post(SETTINGS, WANTED)
    html = annotator.get("/leaderboards/").content.decode()
    assert '<html lang="en"' in flat(html)
    assert html.count('lang="zh-hans"') == html.count("此页面只有英文版。") == 1
    assert "排行榜" not in html


@pytest.mark.parametrize(
    ("role", "path", "language"),
    [("annotator", "/", "zh-hans"), ("annotator", "/boards-fed/", "zh-hans"), ("curator", "/", "en"), ("", "/", "en")],
)
def test_home_is_chinese_for_annotators_alone(client_of, role, path, language):
    client = client_of(role) if role else Client()
    html = client.get(path, headers={"Accept-Language": "zh-CN"}).content.decode()
    assert f'<html lang="{language}"' in flat(html) or path == "/boards-fed/"
    assert ("您的标注" in html or "您好" in html) == (language == "zh-hans")


def test_what_people_are_told_is_in_the_language_of_their_last_browser(client, people, now, mailoutbox):
    person = people["annotator"]
    person.set_password("a long pass phrase")
    person.save()
    typed = {"username": person.username, "password": "a long pass phrase"}
    assert client.post("/accounts/sign-in/", typed, headers={"Accept-Language": "zh-CN"}).status_code == 302
    campaign, annotator = kinds.campaign_of("pair", person=person.username)
    label = submit_label(
        assignment=next_assignment(campaign=campaign, annotator=annotator, now=now), verdict={"choice": "left"}, now=now
    ).label
    return_label(label=label, by=people["curator"], note="Tie?", now=now)
    assert "退回" in Notice.objects.get(person=person).text
    (invitation,) = invite(campaign=campaign, by=people["curator"], days=3, now=now, emails=["new@example.org"])
    request = RequestFactory().get("/")
    assert send(invitation, request)
    (mail,) = mailoutbox
    assert "invites you to label answers" in mail.body
    assert "邀请您" in mail.body


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
