"""Indexes that go in a migration: those of foreign keys that another index of their table begins with."""

from typing import Any

from django.db import migrations, models


class WithoutOwnIndex(migrations.AlterField):
    """The foreign key as it is now, with ``db_index=False``: its index goes, and nothing else changes. Django would
    copy the whole table for it on SQLite.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        column = model._meta.get_field(self.name).column
        named = {index.name for index in (*model._meta.indexes, *model._meta.constraints)}
        with schema_editor.connection.cursor() as cursor:
            found = schema_editor.connection.introspection.get_constraints(cursor, model._meta.db_table)
        for name, facts in found.items():
            of_column = (
                facts["index"] and facts["columns"] == [column] and not (facts["unique"] or facts["primary_key"])
            )
            if of_column and name not in named:
                schema_editor.execute(f"DROP INDEX {schema_editor.quote_name(name)}")

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        index = models.Index(fields=[self.name])
        index.set_name_with_model(model)
        schema_editor.add_index(model, index)
