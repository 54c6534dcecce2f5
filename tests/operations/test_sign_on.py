"""Single sign-on, from the button to the account, against a provider in a process of its own that can lie."""

import pytest

from tests import forks
from tests.operations.provider import CLIENT, Browser, parameters, provider
from tests.operations.served import HOST, asked, free_port, running, wait_for

START, CALLBACK, FAILED = "/accounts/sso/", f"https://{HOST}/accounts/sso/callback/", "did not work"
ROLES = {"SSO_ROLE_CLAIM": "realm_access.roles", "SSO_ROLES": "admins=administrator,keepers=curator,readers=researcher"}


def groups(*names):
    return {"realm_access": {"roles": list(names)}}


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with provider(tmp_path_factory.mktemp("provider") / "log") as made:
        yield made


@pytest.fixture(scope="module")
def sso(there):
    return {
        "SSO_ISSUER": there.issuer,
        "SSO_CLIENT_ID": CLIENT,
        "SSO_CLIENT_SECRET": "hush",
        "SSO_NAME": "Acme",
    } | ROLES


@pytest.fixture(scope="module")
def site(here, sso, tmp_path_factory):
    port, log = free_port(), tmp_path_factory.mktemp("sso") / "log"
    command = ["manage.py", "serve", "--no-worker", "--bind", f"127.0.0.1:{port}"]
    with running(here, command, log, **sso, SSO_PASSWORDS="false", SECOND_FACTOR_FOR_STAFF="true") as process:
        wait_for(port, process, log)
        yield port


@pytest.fixture
def visitor(site, there):
    there.lies = {}
    return Browser(site)


def come(visitor, there, sub, **form):
    """The whole way from the button to the site's answer: (status, page)."""
    visitor.get(START)
    return visitor.get(there.grants(visitor.address, sub, **form))


def me(here, sub):
    """Name, role, mail and whether there is a password, of who has this subject."""
    rows = here.sql(
        "SELECT username, role, email, password FROM accounts_user u JOIN accounts_signon s ON s.person_id = u.id "
        f"WHERE s.subject = '{sub}'"
    )
    return [(name, role, email, not password.startswith("!")) for name, role, email, password in rows]


def entries(here, since=0):
    return here.sql(f"SELECT action, name, about, command, details FROM accounts_auditentry WHERE number > {since}")


def test_somebody_comes_in_by_the_button_with_the_role_of_the_claim(here, visitor, there):
    there.knows("ada-1", preferred_username="ada", email="ada@acme.example", email_verified=True, **groups("keepers"))
    _, page = visitor.get("/accounts/sign-in/?next=/campaigns/")
    assert "Sign in with Acme" in page
    assert 'href="/accounts/sso/?next=/campaigns/"' in page
    visitor.get(f"{START}?next=/campaigns/")
    wanted = parameters(visitor.address)
    assert (wanted["redirect_uri"], wanted["client_id"], wanted["response_type"]) == (CALLBACK, CLIENT, "code")
    assert wanted["code_challenge_method"] == "S256"
    status, _ = visitor.get(there.grants(visitor.address, "ada-1"))
    assert (status, visitor.address) == (200, "/campaigns/")
    assert me(here, "ada-1") == [("ada", "curator", "ada@acme.example", False)]
    assert {("account-made", "single sign-on"), ("sign-in", "")} <= {(row[0], row[3]) for row in entries(here)}


def test_the_same_subject_is_the_same_person_whatever_they_are_called_now(here, visitor, there):
    there.knows("bo-1", preferred_username="bo", **groups("readers"))
    come(visitor, there, "bo-1")
    there.knows("bo-1", preferred_username="somebody-else", email="new@acme.example", **groups("readers"))
    come(visitor, there, "bo-1")
    assert me(here, "bo-1") == [("bo", "researcher", "", False)]


def test_another_subject_with_the_same_name_and_mail_is_another_person(here, visitor, there):
    claims = {"preferred_username": "ada", "email": "ada@acme.example", "email_verified": True}
    there.knows("ada-2", **claims, **groups("readers"))
    come(visitor, there, "ada-2")
    assert me(here, "ada-2") == [("ada-2", "researcher", "ada@acme.example", False)]
    here.manage("make_user", "Local", "--role", "administrator")
    there.knows("mallory", preferred_username="Local", email="x@acme.example", **groups("readers"))
    come(Browser(visitor.port), there, "mallory")
    assert [row[:2] for row in me(here, "mallory")] == [("Local-2", "researcher")]


def test_a_mail_address_that_is_not_verified_is_not_believed(here, visitor, there):
    for number, said in enumerate((False, None, "true", "yes")):
        there.knows(f"un-{number}", email="boss@acme.example", email_verified=said, **groups("readers"))
        come(Browser(visitor.port), there, f"un-{number}")
        assert me(here, f"un-{number}")[0][2] == ""


def test_roles_follow_the_claim_at_every_sign_in_and_end_with_it(here, visitor, there):
    there.knows("cy", preferred_username="cy", **groups("readers", "admins"))
    come(visitor, there, "cy")
    assert me(here, "cy")[0][1] == "administrator"
    assert visitor.get("/people/")[0] == 200
    other = Browser(visitor.port)
    there.knows("cy", preferred_username="cy", **groups("readers"))
    come(other, there, "cy")
    assert visitor.get("/people/")[0] == 403  # the session of before, too
    there.knows("cy", preferred_username="cy", **groups("strangers"))
    _, page = come(other, there, "cy")
    assert "have no role here" in page
    assert me(here, "cy")[0][1] == "annotator"
    for one in (visitor, other):
        one.get("/accounts/settings/")
        assert one.address.startswith("/accounts/sign-in/")
    changes = [row[4] for row in entries(here) if row[0] == "role-changed" and row[2] == "cy"]
    assert len(changes) == 2


def test_who_has_no_role_gets_no_account(here, visitor, there):
    for sub, claims in (
        ("no-1", {}),
        ("no-2", groups()),
        ("no-3", {"realm_access": "admins"}),
        ("no-4", {"admins": True}),
    ):
        there.knows(sub, preferred_username=sub, **claims)
        _, page = come(visitor, there, sub)
        assert "have no role here" in page
        assert me(here, sub) == []


def test_an_account_that_is_switched_off_stays_off(here, visitor, there):
    there.knows("dee", preferred_username="dee", **groups("keepers"))
    come(visitor, there, "dee")
    here.sql("UPDATE accounts_user SET is_active = false WHERE username = 'dee'")
    _, page = come(Browser(visitor.port), there, "dee")
    assert "switched off" in page


def test_a_state_that_was_not_made_for_this_browser_lets_nobody_in(here, visitor, there):
    there.knows("eve", preferred_username="eve", **groups("admins"))
    visitor.get(START)
    back = there.grants(visitor.address, "eve")
    state = parameters(back)["state"]
    for other, address in (
        (Browser(visitor.port), back),  # another browser
        (visitor, back.replace(state, "0" * len(state))),
        (visitor, back.partition("&state")[0]),
    ):
        _, page = other.get(address)
        assert FAILED in page
        assert other.address.startswith("/accounts/sign-in/")
    assert me(here, "eve") == []


def test_an_answer_works_once_and_not_in_a_session_that_is_signed_out(here, visitor, there):
    there.knows("fay", preferred_username="fay", **groups("readers"))
    visitor.get(START)
    back = there.grants(visitor.address, "fay")
    visitor.get(back)
    visitor.post("/accounts/settings/")  # still signed in
    _, page = visitor.get(back)
    assert FAILED in page
    visitor.once("/accounts/sign-out/", method="POST", body=_form(visitor), Referer=f"https://{HOST}/", **FORM)
    _, page = visitor.get(back)
    assert FAILED in page
    visitor.get("/accounts/settings/")
    assert visitor.address.startswith("/accounts/sign-in/")


FORM = {"Content_Type": "application/x-www-form-urlencoded"}


def _form(visitor):
    _, page = visitor.get("/accounts/settings/")
    return f"csrfmiddlewaretoken={page.partition('csrfmiddlewaretoken')[2].split(chr(34))[2]}"


def test_no_is_an_answer_too(visitor, there):
    visitor.get(START)
    _, page = visitor.get(f"{CALLBACK}?error=access_denied&state={parameters(visitor.address)['state']}")
    assert FAILED in page


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://other.example"},
        {"aud": "another-client"},
        {"aud": ["another-client", CLIENT], "azp": "another-client"},
        {"exp": 1_700_000_000},
        {"nonce": "of-another-request"},
        {"nonce": None},
        {"sub": "somebody-else"},  # than user info says
        {"sub": None},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_request_lets_nobody_in(here, visitor, there, changed):
    there.knows("gil", preferred_username="gil", **groups("admins"))
    there.says(**changed)
    _, page = come(visitor, there, "gil")
    assert FAILED in page
    assert me(here, "gil") == me(here, "somebody-else") == []


def test_the_lies_would_be_believed_without_their_fault(here, visitor, there):
    there.knows("hal", preferred_username="hal", **groups("readers"))
    there.says()
    come(visitor, there, "hal")
    assert me(here, "hal")[0][:2] == ("hal", "researcher")


def test_an_answer_without_a_token_or_about_somebody_else_lets_nobody_in(here, visitor, there):
    there.knows("ida", preferred_username="ida", **groups("admins"))
    there.lies = {"/oauth2/token": lambda answer: {name: answer[name] for name in answer if name != "id_token"}}
    assert FAILED in come(visitor, there, "ida")[1]
    there.lies = {"/userinfo": lambda answer: answer | {"sub": "ada-1"}}
    assert FAILED in come(visitor, there, "ida")[1]
    there.lies = {"/oauth2/token": lambda answer: []}
    assert FAILED in come(visitor, there, "ida")[1]
    assert me(here, "ida") == []


def test_an_account_is_connected_by_its_owner_alone_and_then_has_no_password(here, visitor, there):
    here.ask_helper(
        "from accounts.actions import make_account\n"
        "answer = make_account(name='old', role='annotator', password='a-long-password')[0].pk"
    )
    there.knows("old-1", preferred_username="x", **groups("readers"))
    there.knows("old-2", preferred_username="y", **groups("readers"))
    visitor.post("/accounts/sign-in/", username="old", password="a-long-password")
    _, page = visitor.get("/accounts/settings/")
    link = page.partition('href="/accounts/sso/?connect=')[2].partition('"')[0]
    forged = Browser(visitor.port)
    forged.post("/accounts/sign-in/", username="old", password="a-long-password")
    forged.get(f"{START}?connect={link}")  # of another session
    forged.get(there.grants(forged.address, "old-2"))
    assert me(here, "old-2")[0][0] == "y"  # an account of its own
    visitor.get(f"{START}?connect={link}")
    _, page = visitor.get(there.grants(visitor.address, "old-1"))
    assert "is connected" in page
    assert me(here, "old-1") == [("old", "researcher", "", False)]
    _, page = Browser(visitor.port).post("/accounts/sign-in/", username="old", password="a-long-password")
    assert "name or password is wrong" in page


def test_nothing_of_allauth_is_routed_and_none_of_its_tables_are_made(here, site, sso):
    for path in (
        "login",
        "signup",
        "email",
        "password/change",
        "password/reset/done",
        "confirm-email",
        "3rdparty",
        "social",
    ):
        assert asked(site, f"/accounts/{path}/")[0] in (404, 302), path  # password/... leads to the page for signing in
    tables = here.ask_helper(
        "from django.db import connection\nanswer = connection.introspection.table_names(connection.cursor())"
    )
    assert not [name for name in tables if name.startswith(("account_", "socialaccount_", "mfa_"))]
    code = (
        "import django; django.setup()\nfrom tests.access.world import routes\nprint(*(name for name, *_ in routes()))"
    )
    environment = here.environment | sso
    named = forks.run(["-c", code], environment=environment)
    assert named.returncode == 0, named.stderr
    from tests.access.test_routes import TABLE

    assert set(named.stdout.split()) - set(TABLE) == {"accounts:sso", "accounts:sso-callback"}


def test_without_the_setting_nothing_of_allauth_is_loaded(here):
    code = "import sys, django; django.setup(); import evalsite.urls\n"
    code += "print([name for name in sys.modules if name.startswith('allauth')])"
    said = forks.run(["-c", code], environment=here.environment)
    assert said.stdout.strip() == "[]", said.stderr


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"SSO_ISSUER": "http://acme.example"}, "https://"),
        ({"SSO_CLIENT_ID": ""}, "SSO_CLIENT_ID"),
        ({"SSO_ROLES": ""}, "belong together"),
        ({"SSO_ROLES": "admins=emperor"}, "emperor"),
        ({"SSO_DEFAULT_ROLE": "everybody"}, "everybody"),
    ],
)
def test_settings_that_would_let_in_nobody_or_anybody_are_refused(here, sso, wrong, said):
    done = here.tried("check", **sso | wrong)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_provider_that_calls_itself_otherwise_or_does_not_answer_lets_nobody_in(here, sso, there, tmp_path):
    command = ["manage.py", "serve", "--no-worker"]
    port = free_port()
    other = sso | {"SSO_ISSUER": there.issuer.replace("127.0.0.1", "localhost")}
    there.lies = {"/.well-known/openid-configuration": lambda answer: answer | {"issuer": "http://elsewhere.example"}}
    with running(here, [*command, "--bind", f"127.0.0.1:{port}"], tmp_path / "log", **other) as process:
        wait_for(port, process, tmp_path / "log")
        assert FAILED in Browser(port).get(START)[1]
        there.lies = {"/.well-known/openid-configuration": lambda answer: {}}
        assert FAILED in Browser(port).get(START)[1]
        there.lies = {}
        Browser(port).get(START)
