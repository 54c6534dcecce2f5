"""Rows of the generic format, sent as JSON: checked and brought in as those of a file are."""

import json
import tempfile
from pathlib import Path
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from bank.api.base import sent
from bank.api.strict import StrictSerializer
from bank.database.unfinished import ImportInProgress
from bank.errors import BadInput
from bank.intake.formats.reading import BadFile
from bank.intake.imports import Report
from bank.intake.imports.engine import run_import
from bank.picked import filled

MOST = 1000


class RowsIn(StrictSerializer):
    """Rows as a file of the generic format writes them (docs/formats.md): all come in, or none."""

    benchmark = serializers.CharField(help_text="SLUG or SLUG@VERSION")
    rows = serializers.ListField(
        child=serializers.DictField(), min_length=1, max_length=MOST, help_text="more of them: an upload"
    )
    skip_bad = serializers.BooleanField(default=False, help_text="bring the good rows in although others are bad")
    dry_run = serializers.BooleanField(default=False, help_text="say what would be made, and every bad row")


class ProblemOut(serializers.Serializer[Any]):
    row = serializers.IntegerField(allow_null=True, help_text="counted from 0")
    field = serializers.CharField()
    reason = serializers.CharField()
    warning = serializers.BooleanField()


class RowsOut(serializers.Serializer[Any]):
    """What was made, by noun. Rows that were there already change nothing."""

    made = serializers.DictField(child=serializers.IntegerField())
    unchanged = serializers.IntegerField()
    bad = serializers.IntegerField()
    problems = ProblemOut(many=True)


class TakesRows:
    """A list to which staff add rows by POST; ``part`` is that of an import."""

    part: str

    @extend_schema(request=RowsIn, responses={201: RowsOut, 200: RowsOut, 400: RowsOut})
    def create(self, request: Request) -> Response:
        """Bring rows in. 201 where something was made, 200 where all was there or nothing was to be written, 400 where
        a row is bad: then nothing came in.
        """
        asked = sent(request, RowsIn)
        report = _brought_in(self.part, **asked)
        made = filled(report.made)
        found = {"made": made, "unchanged": report.unchanged, "bad": report.bad, "problems": _problems(report)}
        if report.problems and not (report.written or asked["dry_run"]):
            return Response(found, status=status.HTTP_400_BAD_REQUEST)
        changed = bool(made) and report.written
        return Response(found, status=status.HTTP_201_CREATED if changed else status.HTTP_200_OK)


def _brought_in(part: str, *, benchmark: str, rows: list[dict[str, Any]], skip_bad: bool, dry_run: bool) -> Report:
    """The report on these rows. Raises ValidationError."""
    slug, _, version = benchmark.partition("@")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        try:
            reports = run_import(
                path=path,
                format="generic",
                parts=[part],
                slug=slug,
                version=version,
                skip_bad=skip_bad,
                dry_run=dry_run,
            )
        except (BadInput, BadFile, ImportInProgress) as error:
            raise serializers.ValidationError({"detail": str(error)}) from None
    return reports[part]


def _problems(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "row": None if fault.where.line is None else fault.where.line - 1,
            "field": fault.field,
            "reason": fault.reason,
            "warning": fault.warning,
        }
        for fault in [*report.problems, *report.warnings]
    ]
