"""Somebody has a copy of the database and none of the keys: it opens nothing and tells no yes from no."""

import base64
import json
import os
import random
from collections import defaultdict
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

import bank.criteria
from accounts import crypto
from accounts.crypto import Cipher, Unreadable
from accounts.models import Session
from bank.criteria import Criterion, CriterionRevision
from bank.management import rotation
from bank.models import Benchmark, Draft, Sample
from bank.models.submissions import Submission, SubmissionRules, SubmissionScore

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
PASSWORD = "a long enough password"


def column(table, *names):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1")
        rows = cursor.fetchall()
    return rows if names[1:] else [row[0] for row in rows]


def everything():
    """All that a copy holds, as one text."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            found += [str(cell) for row in cursor.fetchall() for cell in row]
    return "\n".join(found)


def put(table, name, pk, token):
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {name} = %s WHERE id = %s", [token, pk])


def as_before(text, key):
    """A token as it was written before there were padding and associated data."""
    nonce = os.urandom(12)
    return base64.b64encode(nonce + AESGCM(base64.urlsafe_b64decode(key)).encrypt(nonce, text.encode(), None)).decode()


@pytest.fixture
def asked():
    """Thirty questions with yes or no as their keys; a component with and one without a weight."""
    benchmark = Benchmark.objects.create(slug="yes-no", title="Yes or no", visibility="public")
    for n in range(30):
        sample = Sample.objects.create(
            benchmark=benchmark, key=f"q{n}", instruction="Is it?", metadata={"note": f"zq7Canary {n}"}
        )
        Criterion.unguarded.create(sample=sample, key="answer", kind="answer_key", text="yes" if n % 3 else "no")
        Criterion.unguarded.create(
            sample=sample, key="part", kind="component", text="x" * n, weight=3.5 if n % 2 else None, position=1
        )
    return benchmark


# ---- sessions ----


@pytest.fixture
def curator(people):
    people["curator"].set_password(PASSWORD)
    people["curator"].save()
    return people["curator"]


def signed_in(person, client=None):
    client = client or Client()
    assert client.login(username=person.username, password=PASSWORD)
    assert client.get("/bank/").status_code == 200
    return client


def copied_keys():
    """What stands in a column named like the keys of sessions, in whatever table."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            names = [one.name for one in connection.introspection.get_table_description(cursor, table)]
            if "session_key" in names:
                cursor.execute(f'SELECT session_key, session_data FROM "{table}"')
                yield from [cell for row in cursor.fetchall() for cell in row]


def test_no_cell_of_a_stored_session_signs_anybody_in(curator):
    client = signed_in(curator)
    cells = list(copied_keys())
    assert cells
    assert client.cookies["sessionid"].value not in cells
    for cell in cells:
        thief = Client()
        thief.cookies["sessionid"] = cell
        assert thief.get("/bank/").status_code == 302
        assert thief.get("/api/v1/samples/1/criteria/").status_code in (401, 403)
    assert client.get("/bank/").status_code == 200


def test_signing_out_ends_the_session_and_leaves_no_row(curator):
    client = signed_in(curator)
    cookie = client.cookies["sessionid"].value
    client.post("/accounts/sign-out/")
    assert not Session.objects.exists()
    client.cookies["sessionid"] = cookie
    assert client.get("/bank/").status_code == 302


def test_signing_in_changes_the_key_and_other_sessions_go_on(curator):
    client = Client()
    client.cookies["sessionid"] = "a" * 32  # chosen by somebody else
    first, second = signed_in(curator, client), signed_in(curator)
    assert first.cookies["sessionid"].value not in ("a" * 32, second.cookies["sessionid"].value)
    assert Session.objects.count() == 2
    first.session.flush()
    assert second.get("/bank/").status_code == 200


def test_another_password_or_a_disabled_account_ends_a_session(curator):
    client = signed_in(curator)
    curator.is_active = False
    curator.save()
    assert client.get("/bank/").status_code == 302
    curator.is_active = True
    curator.save()
    client = signed_in(curator)
    curator.set_password("quite another password")
    curator.save()
    assert client.get("/bank/").status_code == 302


def test_sessions_that_are_over_are_cleared_and_no_others(curator):
    kept = signed_in(curator)
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))
    assert kept.get("/bank/").status_code == 302
    kept = signed_in(curator)
    call_command("clearsessions")
    assert Session.objects.count() == 1
    assert kept.get("/bank/").status_code == 200


# ---- lengths ----


def test_tokens_of_yes_and_no_and_of_weights_and_none_have_one_length(asked):
    lengths = defaultdict(set)
    for row in column("bank_criterion", "id", "key", "category", "weight", "text", "kind"):
        for name, token in zip(("key", "category", "weight", "text"), row[1:5], strict=True):
            lengths[name].add(len(token))
    assert [len(found) for found in lengths.values()] == [1, 1, 1, 1]


def test_yes_and_no_do_not_follow_from_the_length_of_any_cell(at_chance):
    """The longer of two lengths was yes: 30 of 30."""
    dice = random.Random(6)
    keys = [dice.choice(["yes", "no"]) for _ in range(200)]
    benchmark = Benchmark.objects.create(slug="lengths", title="Lengths", visibility="public")
    for n, key in enumerate(keys):
        sample = Sample.objects.create(benchmark=benchmark, key=f"q{n:03}", instruction="Is it?")
        Criterion.unguarded.create(sample=sample, key="answer", kind="answer_key", text=key)
    names = ("sample_id", "key", "category", "weight", "text", "kind", "key_hash")
    lengths = [sum(len(str(cell)) for cell in row[1:]) for row in column("bank_criterion", *names)]
    longest = max(lengths)
    guesses = [
        ("yes" if length == longest else "no") if len(set(lengths)) > 1 else dice.choice(["yes", "no"])
        for length in lengths
    ]
    at_chance(sum(map(str.__eq__, guesses, keys)), 200, 1 / 2, "yes or no in a copy, from lengths")


def test_an_import_stores_the_same_lengths_and_reads_the_same(tmp_path):
    lines = [
        json.dumps(
            {
                "key": f"q{n}",
                "instruction": "?",
                "answer": "yes" if n % 3 else "no",
                "metadata": {"n": "zq7Canary"},
                "criteria": [{"key": "k", "text": "long " * (n % 5) + "one"} | ({"weight": 2.5} if n % 2 else {})],
            }
        )
        for n in range(30)
    ]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    call_command("import_benchmark", "generic", str(tmp_path / "samples.jsonl"), benchmark="b")
    rows = column("bank_criterion", "id", "key", "category", "weight", "text")
    assert len({len(token) for row in rows for token in row[1:]}) == 1
    assert "zq7Canary" not in everything()
    found = {(row.sample.key, row.key): row for row in Criterion.unguarded.select_related("sample")}
    assert found["q3", "answer"].text == "no"
    assert (found["q4", "k"].text, found["q4", "k"].weight, found["q5", "k"].weight) == (
        "long long long long one",
        None,
        2.5,
    )
    assert Sample.objects.get(key="q7").metadata == {"n": "zq7Canary"}
    call_command("import_benchmark", "generic", str(tmp_path / "samples.jsonl"), benchmark="b")  # nothing differs


@given(st.text(max_size=300))
def test_what_is_padded_comes_back_and_is_64_bytes_or_a_power_of_two(text):
    one = Cipher([Fernet.generate_key().decode()])
    token = one.seal(text, "a.b")
    assert one.open(token, "a.b").text == text
    size = len(base64.b64decode(token.removeprefix("2:"))) - 12 - 16
    assert size >= 64
    assert size & (size - 1) == 0
    assert size > len(text.encode())


# ---- moved tokens ----


def test_a_token_does_not_open_in_another_row(asked):
    first, second = Criterion.unguarded.filter(kind="answer_key").order_by("pk")[:2]
    tokens = dict(column("bank_criterion", "id", "text"))
    put("bank_criterion", "text", second.pk, tokens[first.pk])
    assert Criterion.unguarded.get(pk=first.pk).text == "no"
    for read in (lambda: Criterion.unguarded.get(pk=second.pk), lambda: bank.criteria._read(bank.criteria.Q())):
        with pytest.raises(Unreadable):
            read()
    rotation.rotate()  # which does not make it the row's own
    with pytest.raises(Unreadable):
        Criterion.unguarded.get(pk=second.pk)


def test_a_token_does_not_open_under_another_key_of_its_sample(asked):
    answer = Criterion.unguarded.filter(kind="answer_key").first()
    part = Criterion.unguarded.get(sample=answer.sample, kind="component")
    put("bank_criterion", "text", part.pk, dict(column("bank_criterion", "id", "text"))[answer.pk])
    with pytest.raises(Unreadable):
        Criterion.unguarded.get(pk=part.pk)


def test_a_whole_row_given_to_another_sample_does_not_open(asked):
    row, other = (
        Criterion.unguarded.filter(kind="answer_key").first(),
        Sample.objects.create(benchmark=asked, key="bare", instruction="?"),
    )
    Criterion.unguarded.filter(pk=row.pk).update(sample=other)
    with pytest.raises(Unreadable):
        Criterion.unguarded.get(pk=row.pk)


def test_a_token_does_not_open_in_another_column_or_table(asked):
    row = Criterion.unguarded.filter(kind="answer_key").first()
    tokens = {pk: (text, category) for pk, text, category in column("bank_criterion", "id", "text", "category")}
    put("bank_criterion", "category", row.pk, tokens[row.pk][0])
    with pytest.raises(Unreadable):
        Criterion.unguarded.get(pk=row.pk)
    sample = row.sample
    put("bank_sample", "metadata", sample.pk, tokens[row.pk][0])
    with pytest.raises(Unreadable):
        Sample.objects.get(pk=sample.pk)


def test_texts_of_rows_come_with_their_rows_alone(asked):
    assert "yes" not in repr([str(one) for one in Criterion.unguarded.values_list("pk", flat=True)])
    with pytest.raises(TypeError, match="sealed with its row"), transaction.atomic():
        Criterion.unguarded.update(text="yes")
    with pytest.raises(TypeError, match="without sample_id, key"):
        list(Criterion.unguarded.only("text"))


# ---- what was plain ----


def test_no_metadata_seed_or_kept_score_is_in_a_copy(asked, people):
    rules = SubmissionRules.objects.create(benchmark=asked)
    sent = Submission.objects.create(by=people["researcher"], benchmark=asked, name="m", file_sha256="0" * 64)
    score = SubmissionScore.objects.create(
        submission=sent, hidden=True, part="kept", kind="choice", n=20, numbers={"accuracy": {"value": 0.123456789}}
    )
    copy = everything()
    assert "zq7Canary" not in copy
    assert rules.seed not in copy
    assert "0.123456789" not in copy
    assert SubmissionRules.objects.get().seed == rules.seed
    assert SubmissionScore.objects.get(pk=score.pk).numbers == {"accuracy": {"value": 0.123456789}}
    assert Sample.objects.get(key="q7").metadata == {"note": "zq7Canary 7"}


# ---- what was stored before ----


@pytest.fixture
def before(asked, settings):
    """The rows as an installation from before has them: without marks, empty where nothing was sealed, plain."""
    key = settings.CRITERIA_KEYS[0]
    for row in Criterion.unguarded.all():
        put("bank_criterion", "key", row.pk, as_before(row.key, key))
        put("bank_criterion", "text", row.pk, as_before(row.text, key) if row.text else "")
        put("bank_criterion", "category", row.pk, "")
        put("bank_criterion", "weight", row.pk, None if row.weight is None else as_before(repr(row.weight), key))
    change = CriterionRevision.unguarded.create(sample=asked.samples.first(), key="answer", version=2, new="{}")
    put("bank_criterionrevision", "old", change.pk, None)
    put("bank_criterionrevision", "new", change.pk, as_before('{"text": "zq7Canary"}', key))
    for sample in asked.samples.all():
        put("bank_sample", "metadata", sample.pk, json.dumps({"note": f"zq7Canary {sample.key[1:]}"}))
    draft = Draft.objects.create(sample=asked.samples.first(), part="question", text="zq7Canary")
    put("bank_draft", "text", draft.pk, as_before("zq7Canary", key))


def texts():
    rows = Criterion.unguarded.order_by("pk")
    return (
        [(row.sample_id, row.key, row.category, row.weight, row.text) for row in rows],
        [(row.key, row.old, row.new) for row in CriterionRevision.unguarded.order_by("pk")],
        [row.metadata for row in Sample.objects.order_by("pk")],
        [row.text for row in Draft.objects.all()],
    )


def test_what_was_stored_before_is_read_and_then_sealed_with_the_same_key(before, capsys):
    read = texts()
    assert read[0][1][2:] == ("", None, "")
    assert read[1] == [("answer", None, '{"text": "zq7Canary"}')]
    assert read[2][7] == {"note": "zq7Canary 7"}
    assert "zq7Canary" in everything()
    call_command("rotate_criteria_key", dry_run=True)
    assert "Nothing was written" in capsys.readouterr().out
    call_command("rotate_criteria_key")
    assert "zq7Canary" not in everything()
    assert texts() == read
    rows = column("bank_criterion", "id", "key", "category", "weight", "text")
    assert len({len(token) for row in rows for token in row[1:]}) == 1
    assert rotation.rotate() == 0
    assert all(count.due == 0 for count in rotation.survey().values())


@pytest.mark.django_db(transaction=True)
def test_compacted_the_file_itself_holds_nothing_of_what_was_plain(before, tmp_path):
    if connection.vendor != "sqlite":
        pytest.skip("of SQLite's file")

    def copied(name):
        copy = type(connection.connection)(tmp_path / name)
        connection.connection.backup(copy)
        copy.close()
        return (tmp_path / name).read_bytes()

    assert b"zq7Canary" in copied("before")
    call_command("rotate_criteria_key", compact=True)
    assert b"zq7Canary" not in copied("after")


def test_sealing_what_was_stored_before_goes_on_where_it_was_killed(before, monkeypatch):
    monkeypatch.setattr(rotation, "BATCH", 7)
    read = texts()

    def killed(done):
        if done >= 40:
            raise SystemExit

    due = sum(count.due for count in rotation.survey().values())
    with pytest.raises(SystemExit):
        rotation.rotate(killed)
    assert texts() == read
    left = sum(count.due for count in rotation.survey().values())
    assert 0 < left <= due - 40
    assert rotation.rotate() == left
    assert texts() == read


def test_a_key_change_and_the_new_format_are_one_pass(before, settings):
    read = texts()
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode(), *settings.CRITERIA_KEYS]
    rotation.rotate()
    settings.CRITERIA_KEYS = settings.CRITERIA_KEYS[:1]
    assert texts() == read


def test_a_sealed_token_without_its_mark_is_no_token_of_before(asked):
    row = Criterion.unguarded.filter(kind="answer_key").first()
    token = dict(column("bank_criterion", "id", "text"))[row.pk]
    put("bank_criterion", "text", row.pk, token.removeprefix(crypto.MARK))
    with pytest.raises(Unreadable):
        Criterion.unguarded.get(pk=row.pk)
