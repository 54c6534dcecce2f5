"""make_user and make_campaign, as their users run them."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from annotations.models import Annotator, Campaign


@pytest.fixture
def manage(db, capsys, monkeypatch):
    """Runs a command, ``typed`` on its standard input: (exit status, lines of standard output, error)."""

    def run(*arguments, typed=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        status, error = 0, ""
        try:
            call_command(*map(str, arguments))
        except CommandError as failure:
            status, error = failure.returncode, str(failure)
        return status, capsys.readouterr().out.splitlines(), error

    return run


class TestMakeUser:
    def test_it_prints_the_token_last_and_the_token_works(self, manage):
        status, lines, _ = manage("make_user", "ada", "--role", "annotator", "--token")
        assert status == 0
        client = Client(headers={"Authorization": f"Token {lines[-1]}"})
        assert client.get("/api/v1/campaigns/").status_code == 200
        assert Annotator.objects.get().person.username == "ada"

    def test_without_a_password_it_prints_a_random_one_that_works(self, manage):
        _, lines, _ = manage("make_user", "ada", "--role", "curator")
        (password,) = [line.removeprefix("Password: ") for line in lines if line.startswith("Password: ")]
        assert Client().login(username="ada", password=password)

    def test_a_given_password_is_not_repeated(self, manage):
        _, lines, _ = manage("make_user", "ada", "--role", "curator", "--password", typed="a long pass phrase\n")
        assert "a long pass phrase" not in "\n".join(lines)
        assert Client().login(username="ada", password="a long pass phrase")

    def test_again_it_changes_the_role_and_nothing_else(self, manage):
        manage("make_user", "ada", "--role", "researcher", "--password", typed="a long pass phrase\n")
        status, lines, _ = manage("make_user", "ada", "--role", "annotator")
        assert (status, lines) == (0, ["Changed ada: annotator."])
        assert User.objects.get().role == "annotator"
        assert Client().login(username="ada", password="a long pass phrase")

    def test_bad_input_is_one_sentence_and_status_1(self, manage):
        for arguments in (("a b", "--role", "curator"), ("ada", "--role", "curator", "--password")):
            status, _, error = manage("make_user", *arguments, typed="short\n")
            assert status == 1
            assert error.endswith(".")
        assert not User.objects.exists()

    def test_an_unknown_role_is_wrong_use(self, manage):
        with pytest.raises(CommandError, match="invalid choice"):
            call_command("make_user", "ada", "--role", "queen")


class TestMakeCampaign:
    def test_it_opens_over_all_pairs_for_the_named_people(self, manage, pairs, annotators):
        pairs(3)
        annotators(2)
        status, lines, _ = manage(
            *("make_campaign", "Round 1", "--benchmark", "pairs", "--protocol", "pair", "--gold-rate", "0.1"),
            *("--overlap", 2, "--lease", 10, "--annotators", "person-0, person-1"),
        )
        assert status == 0
        campaign = Campaign.objects.get()
        assert (campaign.state, campaign.overlap, campaign.lease_minutes) == ("open", 2, 10)
        assert campaign.gold_rate == 0.1
        assert campaign.members.count() == 2
        assert not campaign.open_to_all
        assert "3 items" in lines[0]

    def test_without_names_it_is_for_every_annotator(self, manage, pairs):
        pairs(1)
        manage("make_campaign", "Round 1", "--benchmark", "pairs", "--protocol", "pair")
        assert Campaign.objects.get().open_to_all

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("--benchmark", "none", "--protocol", "pair"), "Unknown benchmark"),
            (("--benchmark", "pairs", "--protocol", "nope"), "Campaigns cannot use"),
            (("--benchmark", "pairs", "--protocol", "pair", "--overlap", 0), "overlap"),
            (("--benchmark", "pairs", "--protocol", "pair", "--gold-rate", 2), "gold_rate"),
            (("--benchmark", "pairs", "--protocol", "pair", "--annotators", "ghost"), "make_user ghost"),
            (("--benchmark", "pairs", "--protocol", "pair", "--guidelines", "/nowhere"), "cannot be read"),
        ],
    )
    def test_bad_input_is_status_1_with_words(self, manage, pairs, arguments, words):
        pairs(1)
        status, _, error = manage("make_campaign", "x", *arguments)
        assert status == 1
        assert words in error
        assert not Campaign.objects.exists()
