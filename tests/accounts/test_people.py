"""Accounts, as administrators keep them in the browser, and one's own password."""

import re

import pytest
from django.test import Client

from accounts.models import User
from accounts.tokens import make_token
from annotations.models import Annotator
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
PAGE = "/people/"


def text_of(answer):
    return flat(answer)


def shown(answer):
    """The password that stands in this answer."""
    return re.search(r'shown this once: <code class="mono"[^>]*>([^<]+)</code>', text_of(answer))[1]


def test_an_administrator_makes_an_account_whose_password_is_shown_once_and_works(client_of):
    administrator = client_of("administrator")
    made = administrator.post(PAGE, {"name": "ada", "role": "annotator", "password": ""})
    assert Client().login(username="ada", password=shown(made))
    assert Annotator.objects.get().person.username == "ada"
    assert shown(made) not in text_of(administrator.get(PAGE))
    assert ">ada</a>" in text_of(administrator.get(PAGE + "?q=AD&role=annotator"))
    assert "No account fits" in text_of(administrator.get(PAGE + "?q=ada&role=curator"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a b"}, "Enter a valid username"),
        ({"name": "Curator"}, "This name is taken"),
        ({"password": "short"}, "too short"),
        ({"password": "7392018465"}, "entirely numeric"),
        ({"password": "password123"}, "too common"),
        ({"name": "maximiliane", "password": "maximiliane1"}, "too similar to the username"),
        ({"role": "queen"}, "queen is not one of the available choices"),
        ({"name": ""}, "This field is required"),
    ],
)
def test_what_is_wrong_with_a_new_account_is_said_and_none_is_made(client_of, given, said):
    before = User.objects.count()
    answer = client_of("administrator").post(PAGE, {"name": "ada", "role": "curator", "password": ""} | given)
    assert said in text_of(answer)
    assert User.objects.count() == before


def test_the_pages_of_people_keep_the_navigation_of_an_administrator(client_of, people):
    for page in (PAGE, f"{PAGE}{people['curator'].pk}/"):
        html = text_of(client_of("administrator").get(page))
        assert all(f'href="{link}"' in html for link in ("/bank/", "/judging/", "/people/", "/bank/access-log/")), page


def test_another_role_holds_from_the_next_request_on(client_of, people):
    curator = client_of("curator")
    assert curator.get("/bank/").status_code == 200
    page = f"{PAGE}{people['curator'].pk}/"
    assert "curator is annotator now" in text_of(
        client_of("administrator").post(page, {"do": "role", "role": "annotator"}, follow=True)
    )
    assert curator.get("/bank/").status_code == 403
    assert curator.get("/annotate/").status_code == 200


def test_a_new_password_and_switching_off_sign_a_person_out_everywhere(client_of, people):
    administrator, curator = client_of("administrator"), client_of("curator")
    page = f"{PAGE}{people['curator'].pk}/"
    header = {"Authorization": f"Token {make_token(person=people['curator'])[1]}"}
    assert Client(headers=header).get("/api/v1/runs/").status_code == 200
    password = shown(administrator.post(page, {"do": "password"}))
    assert curator.get("/bank/").status_code == 302
    assert Client(headers=header).get("/api/v1/runs/").status_code == 401
    assert curator.login(username="curator", password=password)
    administrator.post(page, {"do": "off"})
    assert curator.get("/bank/").status_code == 302
    assert not curator.login(username="curator", password=password)
    administrator.post(page, {"do": "on"})
    assert curator.login(username="curator", password=password)


@pytest.mark.parametrize("sent", [{"do": "role", "role": "annotator"}, {"do": "off"}, {"do": "password"}, {"do": "x"}])
def test_nobody_locks_themselves_out(client_of, people, sent):
    me = people["administrator"]
    client_of("administrator").post(f"{PAGE}{me.pk}/", sent)
    me.refresh_from_db()
    assert (me.role, me.is_active) == ("administrator", True)
    assert me.check_password("a-long-password")


def test_ones_own_password_is_changed_with_the_old_one_and_signs_other_devices_out(people, client_of):
    here, there = client_of("annotator"), client_of("annotator")
    header = {"Authorization": f"Token {make_token(person=people['annotator'])[1]}"}
    assert Client(headers=header).get("/api/v1/benchmarks/").status_code == 200
    sent = {"old_password": "wrong", "new_password1": "another long one", "new_password2": "another long one"}
    assert here.post("/accounts/password/", sent).status_code == 200
    assert there.get("/annotate/").status_code == 200
    assert here.post("/accounts/password/", sent | {"old_password": "a-long-password"}).status_code == 302
    assert here.get("/annotate/").status_code == 200
    assert there.get("/annotate/").status_code == 302
    assert Client().login(username="annotator", password="another long one")
    assert Client(headers=header).get("/api/v1/benchmarks/").status_code == 401


def test_the_page_for_a_new_password_speaks_chinese(client_of):
    page = text_of(client_of("annotator").get("/accounts/password/", headers={"Accept-Language": "zh-CN"}))
    assert "修改密码" in page
    assert "Old password" not in page
