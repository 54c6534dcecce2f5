"""manage.py tables: the tables of every app and what refers to what, as docs/tables.md."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Field, Model

from accounts.management.base import UncheckedCommand

APPS = ("accounts", "bank", "judging", "annotations", "leaderboard")
PAGE = Path(settings.BASE_DIR) / "docs" / "tables.md"
HEAD = """# Tables

Written by `manage.py tables` from the models: change those, then run it. An arrow's label is the column that refers;
its fork stands for "many", `o` for "may be none". Every table has a number, `id`, besides.
"""


def page() -> str:
    """The whole file."""
    return "\n".join([HEAD, *(line for app in APPS for line in _app(app))])


def _summary(model: type[Model]) -> str:
    """Its docstring; nothing, where Django has written it."""
    summary = (inspect.cleandoc(model.__doc__ or "").split("\n\n")[0]).replace("\n", " ").replace("|", "\\|")
    return "" if summary.startswith(model.__name__ + "(") else summary


def _app(name: str) -> Iterator[str]:
    models = sorted(apps.get_app_config(name).get_models(), key=lambda model: model.__name__)
    yield from (f"## {name}", "", "| table | what it holds |", "|---|---|")
    yield from (f"| `{model.__name__}` | {_summary(model)} |" for model in models)
    yield from ("", "```mermaid", "erDiagram")
    for model in models:
        fields = [field for field in model._meta.local_concrete_fields if field.name != "id" and not field.is_relation]
        yield f"    {model.__name__} {{"
        yield from (f"        {_kind(field)} {field.name}" for field in fields)
        yield "    }"
    for model in models:
        for field in model._meta.local_fields + model._meta.local_many_to_many:
            if field.is_relation:
                yield f"    {_arrow(model, field)}"
    yield from ("```", "")


def _kind(field: "Field[Any, Any]") -> str:
    return field.get_internal_type().removesuffix("Field")


def _arrow(model: type[Model], field: Any) -> str:
    to = field.related_model
    where = "" if to._meta.app_label == model._meta.app_label else f"{to._meta.app_label}_"
    many = "||" if field.one_to_one else "}o"
    target_end = "o{" if field.many_to_many else "o|" if field.null else "||"
    return f"{model.__name__} {many}--{target_end} {where}{to.__name__} : {field.name}"


class Command(UncheckedCommand):
    help = "Write docs/tables.md anew, from the models."

    def handle(self, **options: Any) -> None:
        PAGE.write_text(page(), encoding="utf-8")
        self.stdout.write(f"Wrote {PAGE.relative_to(settings.BASE_DIR)}.")
