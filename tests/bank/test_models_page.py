"""The bank's page of a benchmark's models: who made them, and whether their weights are open."""

import pytest

from bank.models import EvaluatedModel
from tests.leaderboard.conftest import folder, grove, manage

__all__ = ["folder", "grove", "manage"]
pytestmark = pytest.mark.django_db
PAGE = "/bank/benchmarks/grove/models/"


def test_staff_say_who_made_a_model_and_an_untouched_row_keeps_what_somebody_else_wrote(grove, client_of):
    alder, birch, cedar = (EvaluatedModel.objects.get(name=name) for name in ("Alder", "Birch", "Cedar"))
    sent = {f"had-{what}-{one.pk}": "" for what in ("organisation", "weights") for one in (alder, birch, cedar)}
    sent |= {f"organisation-{one.pk}": "" for one in (alder, birch, cedar)}
    sent |= {f"weights-{alder.pk}": "", f"weights-{birch.pk}": "", f"weights-{cedar.pk}": "closed"}
    sent[f"organisation-{birch.pk}"] = " South  Lab "
    curator = client_of("curator")
    html = curator.get(PAGE).content.decode()
    assert all(f"Weights of {name}" in html for name in ("Alder", "Birch", "Cedar", "Dogwood"))
    EvaluatedModel.objects.filter(pk=alder.pk).update(organisation="North", open=True)  # by somebody else, meanwhile
    assert "2 models changed" in curator.post(PAGE, sent, follow=True).content.decode()
    told = EvaluatedModel.objects.filter(pk__in=[alder.pk, birch.pk, cedar.pk]).order_by("name")
    assert list(told.values_list("organisation", "open")) == [("North", True), ("South Lab", None), ("", False)]


def test_a_name_that_is_too_long_is_refused_in_words_and_changes_nothing(grove, client_of):
    alder = EvaluatedModel.objects.get(name="Alder")
    sent = {f"organisation-{alder.pk}": "x" * 201, f"had-organisation-{alder.pk}": "", f"weights-{alder.pk}": "open"}
    assert "at most 200 characters" in client_of("curator").post(PAGE, sent).content.decode()
    alder.refresh_from_db()
    assert (alder.organisation, alder.open) == ("", None)
