"""Names that look the same are the same name, whichever way they come in."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.actions import make_account
from accounts.models import Role
from annotations.campaigns.actions import make_campaign
from annotations.models import Annotator, Campaign, Label
from bank.models import Benchmark, Capability, EvaluatedModel, Item, Response
from bank.samples import capabilities
from bank.samples.items import plan_items
from bank.text.names import as_stored
from judging.endpoints.judges import add_judge
from judging.models import Judge, Judgment
from leaderboard.view import scope_of

COMPOSED, DECOMPOSED = "Andr\u00e9", "Andre\u0301"


@given(st.text(max_size=30))
def test_a_name_is_one_however_unicode_spells_it(text):
    stored = as_stored(text)
    assert as_stored(stored) == stored == unicodedata.normalize("NFC", stored)
    for form in ("NFC", "NFD"):
        assert as_stored(unicodedata.normalize(form, text)) == stored
    assert as_stored(f"\u00a0{text}\t") == stored


@pytest.mark.parametrize(
    "name", ["GPT-4 (v)", "=cmd|' /C calc'!A0", "Яндекс", "نموذج", "می\u200cخواهم", "👩\u200d🔬", "模型 1"]
)
def test_a_name_in_any_script_stays_as_it_is(name):
    assert as_stored(name) == name


@pytest.mark.parametrize(
    "alike", [" GPT 4", "GPT  4", "GPT\u00a04", "GPT\u200b 4", "\ufeffGPT 4", "GPT\u202e 4", "GPT 4\n"]
)
def test_what_shows_nothing_makes_no_other_name(alike):
    assert as_stored(alike) == "GPT 4"


ROWS = {
    "samples": {"key": "k{n}", "instruction": "?", "capability": ["{name}"]},
    "responses": {"sample": "a", "model": "{name}", "variant": "{n}", "text": "x"},
    "labels": {
        "kind": "pair",
        "sample": "k{n}",
        "responses": ["m1", "m2"],
        "annotator": "{name}",
        "choice": "tie",
        "campaign": "c {name}",
    },
    "judgments": {"kind": "pair", "sample": "k{n}", "responses": ["m1", "m2"], "judge": "{name}", "choice": "tie"},
}


def filled(row, name, n):
    def fill(value):
        if isinstance(value, list):
            return [fill(inner) for inner in value]
        return value.replace("{name}", name).replace("{n}", str(n))

    return {key: fill(value) for key, value in row.items()}


@pytest.mark.django_db
def test_of_a_file_two_spellings_of_a_name_are_one(small, folder, manage):
    def bring(part, command, rows):
        assert manage(command, "generic", folder(part, rows, name=f"{part}-new.jsonl"), "--benchmark", "small")[0] == 0

    spellings = list(enumerate([COMPOSED, DECOMPOSED, f" {COMPOSED}\u200b"]))
    bring("samples", "import_benchmark", [filled(ROWS["samples"], name, n) for n, name in spellings])
    answers = [{"sample": f"k{n}", "model": model, "text": model} for n, _ in spellings for model in ("m1", "m2")]
    bring("responses", "import_responses", [*answers, *(filled(ROWS["responses"], name, n) for n, name in spellings)])
    bring("labels", "import_labels", [filled(ROWS["labels"], name, n) for n, name in spellings])
    bring("judgments", "import_judgments", [filled(ROWS["judgments"], name, n) for n, name in spellings])
    named = [(Capability, COMPOSED), (EvaluatedModel, COMPOSED), (Judge, COMPOSED), (Annotator, COMPOSED)]
    for table, name in [*named, (Campaign, f"c {COMPOSED}")]:
        names = [row.name for row in table.objects.all() if "Andr" in row.name]
        assert names == [name], table.__name__
    assert Response.objects.filter(model__name=DECOMPOSED).count() == 3
    assert Label.objects.filter(annotator__name=DECOMPOSED, campaign__name=f"c {DECOMPOSED}").count() == 3
    assert Judgment.objects.filter(run__judge__name=DECOMPOSED).count() == 3


@pytest.mark.django_db
def test_of_commands_and_forms_the_second_spelling_names_the_first_or_is_refused(small, folder, manage):
    answers = folder("responses", [{"sample": "a", "text": "x"}], name="one.jsonl")
    for name, counted in ((COMPOSED, "1 model, 1 response"), (DECOMPOSED, "nothing new; 1 was there already")):
        out = manage("import_responses", "generic", answers, "--benchmark", "small", "--model", name)[1]
        assert f"Made {counted}" in out
    first = add_judge(name=COMPOSED, base_url="http://localhost/v1", model="m", any_host=True)
    assert add_judge(name=DECOMPOSED, base_url="http://localhost/v1", model="m", any_host=True) == first
    assert plan_items(kind=Item.Kind.PAIR, benchmark=small, models=["m1", DECOMPOSED]).names == ("m1", COMPOSED)
    assert scope_of(benchmark=small, anchor=DECOMPOSED).anchor == COMPOSED
    capabilities.add(benchmark=small, name=COMPOSED)
    with pytest.raises(ValueError, match="already exists"):
        capabilities.add(benchmark=small, name=DECOMPOSED)
    manage("make_items", "pair", "--benchmark", "small", "--models", "m1,m2")
    make_campaign(name=COMPOSED, benchmark=small, protocol="pair")
    with pytest.raises(ValueError, match="taken by another campaign"):
        make_campaign(name=f" {DECOMPOSED} ", benchmark=small, protocol="pair")
    make_account(name="각", role=Role.ANNOTATOR)
    with pytest.raises(Exception, match="taken"):
        make_account(name=unicodedata.normalize("NFD", "각"), role=Role.ANNOTATOR)
    Benchmark.objects.filter(pk=small.pk).update(version=DECOMPOSED)
    assert Benchmark.objects.named(f"small@{COMPOSED}") == small
