"""What people are told in the bell and by mail, and passwords that are chosen by a mailed link."""

import re
from datetime import timedelta
from smtplib import SMTPServerDisconnected

import pytest
from django.core import mail as outgoing
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone

from accounts import loop, mail, notices
from accounts.models import AuditEntry, Mail, Notice, SavedView, Token, User
from accounts.tokens import make_token
from tests.accounts.mail_server import MailServer

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def tell(person, number=1):
    notices.tell(person, key=f"run-{number}", text=f"Run {number} is finished.", link=f"/judging/runs/{number}/")


@pytest.fixture
def curator(people):
    people["curator"].email = "curator@example.org"
    people["curator"].save()
    return people["curator"]


def wishes(person, wish):
    person.preferences = {"mail": wish}
    person.save()


def test_the_bell_counts_what_was_not_read_and_opening_a_notice_reads_it_and_leads_to_its_page(people, client_of):
    client = client_of("curator")
    assert 'aria-label="Notices"' in client.get("/").content.decode()
    for number in (1, 2, 2):
        tell(people["curator"], number)
    assert "2 new notices" in client.get("/").content.decode()
    page = client.get("/accounts/notices/").content.decode()
    assert page.index("Run 2 is finished.") < page.index("Run 1 is finished.")
    newest = Notice.objects.get(key="run-2")
    opened = client.post("/accounts/notices/", {"open": newest.pk})
    assert opened.url == "/judging/runs/2/"
    assert "1 new notice" in client.get("/").content.decode()
    client.post("/accounts/notices/")
    assert "new notice" not in client.get("/").content.decode()


def test_nobody_opens_or_sees_what_others_are_told(people, client_of):
    tell(people["curator"])
    other = client_of("administrator")
    assert "Run 1" not in other.get("/accounts/notices/").content.decode()
    assert other.post("/accounts/notices/", {"open": Notice.objects.get().pk}).url == "/accounts/notices/"
    assert notices.unread(people["curator"]) == 1


def test_a_notice_is_mailed_at_once_to_whoever_has_an_address(people, curator):
    tell(curator)
    tell(curator)
    tell(people["researcher"])  # has no address
    loop.run(mail.send_waiting)
    (message,) = outgoing.outbox
    assert (message.to, message.subject) == (["curator@example.org"], "Run 1 is finished.")
    assert "/judging/runs/1/" in message.body
    assert not Mail.objects.exists()


def test_who_wants_one_mail_a_day_gets_one_with_all_of_them_and_who_wants_none_gets_none(people, curator):
    wishes(curator, "daily")
    people["researcher"].email = "researcher@example.org"
    wishes(people["researcher"], "never")
    for number in (1, 2):
        tell(curator, number)
        tell(people["researcher"], number)
    notices.mail_daily()
    assert not Mail.objects.exists()
    Notice.objects.filter(key="run-1").update(at=timezone.now() - timedelta(hours=25))
    notices.mail_daily()
    notices.mail_daily()
    loop.run(mail.send_waiting)
    (message,) = outgoing.outbox
    assert message.to == ["curator@example.org"]
    assert "Run 1 is finished." in message.body
    assert "Run 2 is finished." in message.body


def test_a_mail_that_the_server_refuses_is_tried_again_later_and_given_up_after_five_tries(curator, monkeypatch):
    def refuse(*args):
        raise SMTPServerDisconnected("gone")

    monkeypatch.setattr(EmailBackend, "send_messages", refuse)
    tell(curator)
    for tries in range(1, 5):
        loop.run(mail.send_waiting)
        waiting = Mail.objects.get()
        assert waiting.tries == tries
        assert waiting.not_before > timezone.now() + timedelta(seconds=50)
        loop.run(mail.send_waiting)
        assert Mail.objects.get().tries == tries  # its time has not come
        Mail.objects.update(not_before=timezone.now())
    loop.run(mail.send_waiting)
    assert not Mail.objects.exists()
    assert notices.unread(curator) == 1


def test_an_address_that_no_mail_can_be_made_for_does_not_stop_the_mails_of_others(people, curator, monkeypatch):
    send = EmailBackend.send_messages

    def refuse(backend, messages):
        if "ſ" in messages[0].to[0]:
            raise ValueError("address parts cannot contain CR or LF")
        return send(backend, messages)

    monkeypatch.setattr(EmailBackend, "send_messages", refuse)
    people["annotator"].email = "ſ" * 70 + "@example.org"
    tell(people["annotator"])
    tell(curator)
    loop.run(mail.send_waiting)
    assert [message.to for message in outgoing.outbox] == [["curator@example.org"]]
    assert Mail.objects.get().tries == 1


@pytest.mark.parametrize("opened", ["²", "9" * 30, "9" * 5_000, "-1", "\x00", "1e3"])
def test_a_notice_that_there_is_not_leads_back_to_the_list(client_of, opened):
    assert client_of("researcher").post("/accounts/notices/", {"open": opened}).url == "/accounts/notices/"


def link_in(message):
    return re.search(r"https?://[^/\s]+(/\S+)", message.body).group(1)


def test_a_forgotten_password_is_chosen_anew_by_a_mailed_link_that_works_once(curator, client):
    make_token(person=curator)
    sent = client.post("/accounts/password/reset/", {"email": "Curator@example.org"}, follow=True)
    assert "If an account has this address" in sent.content.decode()
    assert not outgoing.outbox  # a worker sends it
    loop.run(mail.send_waiting)
    link = link_in(outgoing.outbox[0])
    form = client.get(link, follow=True)
    path = form.redirect_chain[-1][0]
    password = "walnut-harbour-nine"
    done = client.post(path, {"new_password1": password, "new_password2": password}, follow=True)
    assert "Your password is set" in done.content.decode()
    assert client.login(username="curator", password=password)
    assert not Token.objects.filter(user=curator).exists()
    assert AuditEntry.objects.filter(action="password-changed", about="curator").exists()
    assert "This link has been used" in client.get(link, follow=True).content.decode()


def test_asking_for_a_link_tells_nobody_which_addresses_have_accounts(curator, client):
    known = client.post("/accounts/password/reset/", {"email": "curator@example.org"}, follow=True)
    unknown = client.post("/accounts/password/reset/", {"email": "nobody@example.org"}, follow=True)
    token = re.compile(r'"[A-Za-z0-9]{64}"')
    assert token.sub("", known.content.decode()) == token.sub("", unknown.content.decode())
    assert Mail.objects.count() == 1


def test_the_link_leads_to_this_site_whatever_host_was_asked(curator, client):
    client.post("/accounts/password/reset/", {"email": "curator@example.org"}, headers={"host": "localhost:6666"})
    loop.run(mail.send_waiting)
    assert "6666" not in outgoing.outbox[0].body
    assert "Choose a password" in client.get(link_in(outgoing.outbox[0]), follow=True).content.decode()


def test_an_address_that_is_too_long_to_keep_is_refused(people, client_of):
    address = "x" * 250 + "@example.org"
    assert "at most 254" in client_of("researcher").post("/accounts/settings/", {"email": address}).content.decode()
    administrator, page = client_of("administrator"), f"/people/{people['researcher'].pk}/"
    told = administrator.post(page, {"do": "email", "email": address}, follow=True).content.decode()
    assert "at most 254" in told
    people["researcher"].refresh_from_db()
    assert people["researcher"].email == ""


def test_links_for_passwords_are_asked_for_ten_times_in_a_quarter_of_an_hour_at_most(curator, client):
    for _ in range(12):
        asked = client.post("/accounts/password/reset/", {"email": "curator@example.org"})
    assert "Too many attempts" in asked.content.decode()
    assert Mail.objects.count() == 10


def test_where_no_mail_is_set_up_the_page_says_who_can_help(client, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert "This site sends no mail" in client.get("/accounts/password/reset/").content.decode()


def test_an_administrator_makes_an_account_whose_owner_chooses_the_password(people, client_of, client):
    administrator = client_of("administrator")
    made = administrator.post(
        "/people/", {"name": "Jana", "role": "annotator", "email": "jana@example.org", "password": ""}, follow=True
    )
    assert "A link for choosing a password is mailed" in made.content.decode()
    assert "shown this once" not in made.content.decode()
    loop.run(mail.send_waiting)
    assert outgoing.outbox[0].to == ["jana@example.org"]
    assert "Choose a password" in client.get(link_in(outgoing.outbox[0]), follow=True).content.decode()
    page = f"/people/{User.objects.get(username='Jana').pk}/"
    administrator.post(page, {"do": "email", "email": "j.novak@example.org"})
    administrator.post(page, {"do": "link"})
    loop.run(mail.send_waiting)
    assert [message.to for message in outgoing.outbox[1:]] == [["jana@example.org"], ["j.novak@example.org"]]
    refused = administrator.post(page, {"do": "email", "email": "no address"}, follow=True)
    assert "Enter a valid email address" in refused.content.decode()


def test_a_view_is_kept_under_a_name_replaced_and_forgotten(people, client_of):
    client = client_of("researcher")
    path = "/leaderboards/everyday/models/?source=individuals"
    assert client.post("/accounts/views/", {"path": path, "name": " My  view "}).url == path
    client.post("/accounts/views/", {"path": path + "&kind=pair", "name": "My view"})
    assert list(SavedView.objects.values_list("person__username", "name", "path")) == [
        ("researcher", "My view", path + "&kind=pair")
    ]
    client.post("/accounts/views/", {"path": path + "&kind=pair", "do": "forget"})
    assert not SavedView.objects.exists()


@pytest.mark.parametrize("path", ["https://example.org/", "//example.org/leaderboards/", "/people/", ""])
def test_a_view_is_a_board_of_this_site(people, client_of, path):
    assert client_of("researcher").post("/accounts/views/", {"path": path, "name": "x"}).url == "/"
    assert not SavedView.objects.exists()


def test_an_address_is_changed_with_the_password_alone_and_the_old_one_is_told(curator, client_of):
    client = client_of("curator")
    for password in ("", "wrong"):
        refused = client.post("/accounts/settings/", {"email": "thief@example.org", "password": password})
        assert "Type your password" in refused.content.decode()
    curator.refresh_from_db()
    assert curator.email == "curator@example.org"
    client.post("/accounts/settings/", {"email": "new@example.org", "password": "a-long-password"})
    curator.refresh_from_db()
    assert curator.email == "new@example.org"
    assert AuditEntry.objects.filter(action="address-changed", about="curator").count() == 1
    loop.run(mail.send_waiting)
    assert [message.to for message in outgoing.outbox] == [["curator@example.org"]]
    assert client.post("/accounts/settings/", {"email": "new@example.org", "theme": "dark"}).status_code == 302


def test_while_the_mail_server_is_away_the_worker_tries_one_mail_and_goes_on(people, curator, monkeypatch):
    tried = []

    def refuse(backend, messages):
        tried.append(messages)
        raise SMTPServerDisconnected("gone")

    monkeypatch.setattr(EmailBackend, "send_messages", refuse)
    for number in range(5):
        tell(curator, number)
    loop.run(mail.send_waiting)
    assert len(tried) == 1


def sent_to(settings, addresses, **server):
    """What came of mails to these addresses at a mail server, sent in one go."""
    with MailServer(**server) as there:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", there.port
        for address in addresses:
            mail.queue(address, "Subject", "Text")
        loop.run(mail.send_waiting)
    return there


@pytest.mark.parametrize("words", ["550 no such user", "450 try again later"])
def test_addresses_that_the_server_refuses_stop_no_other_mail_and_all_go_over_one_connection(settings, words):
    dead = [f"gone-{number}@example.org" for number in range(5)]
    good = [f"here-{number}@example.org" for number in range(5)]
    there = sent_to(settings, [*dead, *good], refused=dict.fromkeys(dead, words))
    assert (there.got, there.connections) == (good, 1)
    assert set(Mail.objects.values_list("to", "tries")) == {(address, 1) for address in dead}


def test_a_server_that_ends_the_connection_after_many_refusals_gets_the_other_mails_over_the_next(settings):
    dead = [f"gone-{number}@example.org" for number in range(5)]
    there = sent_to(settings, [*dead, "here@example.org"], refused=dict.fromkeys(dead, "550 no such user"), patience=2)
    assert there.got == ["here@example.org"]
    assert set(Mail.objects.values_list("to", "tries")) == {(address, 1) for address in dead}


def test_a_server_that_takes_nobody_now_is_asked_once_a_batch(settings):
    there = sent_to(settings, ["one@example.org", "two@example.org"], patience=0)
    assert there.connections == 1
    assert sorted(Mail.objects.values_list("to", "tries")) == [("one@example.org", 1), ("two@example.org", 0)]
