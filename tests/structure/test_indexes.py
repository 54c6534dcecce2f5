"""Indexes of the database: each costs every row that is written."""

import pytest
from django.apps import apps
from django.db import connection

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
OURS = ("accounts", "bank", "judging", "annotations", "leaderboard")


def indexes_of(model, cursor):
    """The name of each index over the whole table, its columns with their order, and whether it is unique."""
    meta = model._meta
    partial = {each.name for each in (*meta.indexes, *meta.constraints) if getattr(each, "condition", None)}
    for name, facts in connection.introspection.get_constraints(cursor, meta.db_table).items():
        is_index = facts["index"] or facts["unique"] or facts["primary_key"]
        if is_index and name not in partial and not name.endswith("_like"):  # PostgreSQL's, for other comparisons
            orders = facts.get("orders") or ["ASC"] * len(facts["columns"])
            yield name, list(zip(facts["columns"], orders, strict=True)), facts["unique"] or facts["primary_key"]


def test_no_index_begins_as_another_one_of_its_table_does():
    begun_by_others = []
    with connection.cursor() as cursor:
        for model in apps.get_models():
            if model._meta.app_label not in OURS:
                continue
            every = list(indexes_of(model, cursor))
            for name, columns, unique in every:
                longer = [other for other, more, _ in every if other != name and more[: len(columns)] == columns]
                if longer and not unique:
                    begun_by_others.append((name, longer))
    assert begun_by_others == []


# What they lead to goes one at a time, by hand: nobody waits for a look at every answer.
LOOKED_THROUGH = {"bank_response.submission_id", "bank_response.recipe_id", "bank_item.recipe_id"}


def test_what_a_row_leads_to_can_go_without_a_look_at_every_row():
    found = set()
    with connection.cursor() as cursor:
        for model in apps.get_models():
            if model._meta.app_label not in OURS:
                continue
            first = {columns[0][0] for _, columns, _ in indexes_of(model, cursor)}
            keys = [field.column for field in model._meta.local_fields if field.remote_field]
            found |= {f"{model._meta.db_table}.{column}" for column in keys if column not in first}
    assert found == LOOKED_THROUGH


def test_the_first_test_finds_an_index_that_another_begins_with():
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX notice_again ON accounts_notice (person_id)")  # rolled back with the test
    with pytest.raises(AssertionError, match="notice_again"):
        test_no_index_begins_as_another_one_of_its_table_does()
