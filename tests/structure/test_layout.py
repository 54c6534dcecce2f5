"""Rules of the house that a reader relies on."""

import ast
import importlib
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from django.template.loader import get_template

from evalsite.templates import May

ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATES = {str(path.relative_to(ROOT / "templates")): path for path in sorted((ROOT / "templates").rglob("*.html"))}


def tracked(*patterns):
    """Files that git knows or would know."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in found.stdout.splitlines() if (ROOT / name).is_file()]


def test_every_template_compiles():
    assert len(TEMPLATES) > 200
    for name in TEMPLATES:
        get_template(name)


def texts():
    return {name: path.read_text(encoding="utf-8") for name, path in TEMPLATES.items()}


@pytest.mark.check("D3")
@pytest.mark.parametrize(
    "pattern",
    [
        r"""\sstyle\s*=""",
        r"""\son[a-z]+\s*=\s*["']""",
        r"<style|<script(?![^>]*\bsrc=)(?![^>]*application/json)",
        "hx-on",
    ],
)
def test_no_template_carries_inline_style_or_script(pattern):
    assert [name for name, text in texts().items() if re.search(pattern, text)] == []


def test_every_permission_that_a_template_asks_for_is_one():
    asked = {name for text in texts().values() for name in re.findall(r"\bmay\.(\w+)", text)}
    assert asked <= set(May._fields)


def test_every_class_of_a_page_means_something_to_a_style_sheet_or_a_script():
    sheets, scripts = (
        "".join(path.read_text() for path in (ROOT / "static" / kind).glob(f"*.{kind}")) for kind in ("css", "js")
    )
    known = {*re.findall(r"\.([A-Za-z][\w-]*)", sheets), *re.findall(r"[\w-]+", scripts)}
    of_page = (
        (name, word)
        for name, text in texts().items()
        for classes in re.findall(r'class="((?:{[{%].*?[%}]}|[^"])*)"', text)
        for word in re.sub(r"{[{%].*?[%}]}", "\0", classes).split()
    )
    assert [(name, word) for name, word in of_page if "\0" not in word and word not in known] == []


def test_a_template_can_be_reviewed():
    assert [name for name, text in texts().items() if max(map(len, text.splitlines())) > 120] == []


def test_a_part_of_a_page_has_a_file_of_its_own_if_it_is_drawn_in_two_places_or_alone_but_for_a_few_long_ones():
    named = re.compile(r"""["'/](_[\w-]+\.html)["']""")
    drawn = Counter(
        name for text in texts().values() for name in re.findall(r"""{%\s*include\s+["']([^"']+)["']""", text)
    )
    alone = {
        name
        for path in tracked("*.py")
        if path.relative_to(ROOT).parts[0] != "tests"
        for name in named.findall(path.read_text(encoding="utf-8"))
    }
    parts = [name for name, places in drawn.items() if places == 1 and Path(name).name not in alone]
    assert len(parts) <= 20, sorted(parts)


@pytest.mark.check("D3")
def test_htmx_evaluates_nothing_that_a_page_brings():
    base = (ROOT / "templates/base.html").read_text("utf-8")
    config = re.search(r"""name="htmx-config"\s+content='([^']+)'""", base)[1]
    wanted = {"allowEval": False, "allowScriptTags": False, "selfRequestsOnly": True, "historyCacheSize": 0}
    assert json.loads(config).items() >= wanted.items()


def test_a_fragment_that_htmx_replaces_has_its_name_as_id():
    nameless = []
    for path in TEMPLATES.values():
        text, name = path.read_text(encoding="utf-8"), path.stem.lstrip("_").replace("_", "-")
        if path.name.startswith("_") and 'hx-swap="outerHTML"' in text and "hx-target" not in text:
            of = (name, f"{path.parent.name}-{name}", f"run-{name}")
            nameless += [] if any(f'id="{one}"' in text for one in of) else [path]
    assert nameless == []


def test_every_file_that_the_architecture_page_names_is_there():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([a-z_]+/[\w./-]*)`", text) if "<" not in name}
    assert {name for name in named if not (ROOT / name).exists()} == set()
    assert len(named) > 40


def test_no_file_names_a_registry_or_a_path_of_some_machine():
    for path in tracked("requirements", "Makefile", "pyproject.toml", ".ci"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"--(extra-)?index-url|--find-links|files\.pythonhosted|pypi\.org", text.split("lock:")[0])


CLIENT = ROOT / "judging" / "endpoints" / "client.py"
OUTWARDS = (CLIENT, CLIENT.with_name("pictures.py"))


def test_nothing_but_the_client_talks_to_endpoints_and_one_command_fetches_pictures():
    for path in tracked("*.py"):
        if {"tests", "docs"} & set(path.relative_to(ROOT).parts) or path in OUTWARDS:
            continue  # docs hold the client of our own API
        assert not re.search(
            r"^\s*(import|from) (aiohttp|httpx2?|openai|requests)\b", path.read_text(encoding="utf-8"), re.M
        ), path


def test_the_client_uses_libraries_by_their_public_means_only():
    text = CLIENT.read_text(encoding="utf-8")
    assert not re.findall(r"(?:\b(?!self\b)\w+|\))\._\w+", text)  # somebody else's private attribute
    assert not re.findall(r"^(?:import|from) .*[. ]_\w+", text, re.M)
    client = importlib.import_module("judging.endpoints.client")
    for name, kind in vars(client).items():
        if isinstance(kind, type) and kind.__module__ == client.__name__:
            inherited = {attribute for base in kind.__mro__[1:] if base is not object for attribute in vars(base)}
            private = {each for each in inherited & set(vars(kind)) if re.match("_(?!_)", each)}
            assert not private - {"_abc_impl"}, name


def test_no_product_code_goes_around_the_guard_of_hidden_tables():
    """Their plain manager is Django's own: whoever named it could print texts that no log knows of."""
    around = re.compile(r"\bunguarded\b|\bCriterion(Revision)?\._(base|default)_manager\b")
    product = [path for path in tracked("*.py") if not {"tests", "migrations"} & set(path.relative_to(ROOT).parts)]
    named = {str(path.relative_to(ROOT)) for path in product if around.search(path.read_text(encoding="utf-8"))}
    assert named == {"bank/criteria/tables.py"}


def test_what_tests_hand_to_other_processes_imports_what_there_is():
    """Code in strings is seen by no linter, and the long checks that hold most of it are run seldom."""
    missing = []
    for path in tracked("tests/*.py"):
        imports = re.findall(
            r"from ((?:accounts|annotations|bank|evalsite|judging|leaderboard|stats)[\w.]*) import ([\w, ]+)",
            path.read_text(encoding="utf-8"),
        )
        for module, names in imports:
            try:
                found = importlib.import_module(module)
                for name in (name.split(" as ")[0].strip() for name in names.split(",")):
                    if name and not hasattr(found, name):
                        importlib.import_module(f"{module}.{name}")
            except ImportError:
                missing.append((path.name, module, names))
    assert missing == []


# What is hidden is decided in few places, which ask the stored facts (ADR 31); a new name here needs a reason.
DECIDES = re.compile(
    r"exposure\.(KEYED|KEYS|any_of|none_of|answers_closed|counted)|Inputs\.[A-Z]|in_hidden_splits\("
    r"|answer_keys\.(with_open|open_samples|are_open)"
)
DECIDED_IN = {
    "bank/exposure.py": "the rule",
    "bank/models/catalogue.py": "hidden splits, as a condition",
    "bank/models/responses.py": "seen_by of answers",
    "bank/criteria/__init__.py": "what readers of criteria hand out",
    "bank/criteria/answer_keys.py": "which keys are open",
    "bank/submissions/actions.py": "which samples have closed keys",
    "bank/submissions/scoring.py": "which samples have closed keys",
    "bank/views/benchmarks.py": "how many keys can be opened",
    "judging/protocols/components.py": "what a protocol may hold",
    "judging/protocols/reasoning_quality.py": "what a protocol may hold",
    "judging/protocols/reference_score.py": "what a protocol may hold",
    "judging/runs/plan.py": "what a run will hold",
    "judging/runs/actions.py": "rotations that need no call, where the key is open",
    "judging/extras/attack_report.py": "trials of keyed runs",
    "judging/runs/tryouts.py": "which items are tried out",
    "bank/intake/imports/items.py": "in which order the answers of new items stand",
    "bank/intake/imports/provenance.py": "says in words what a file closes",
    "annotations/campaigns/choosing.py": "which verdicts choose items for people, and what reviewers are shown",
    "annotations/labels/own.py": "numbers about a closed round",
    "annotations/models.py": "verdicts under review",
    "annotations/assignment/slots.py": "the same, as SQL",
    "leaderboard/votes/__init__.py": "lengths of answers",
    "annotations/labels/exports.py": "answers in preference pairs",
    "leaderboard/hidden.py": "boards",
    "leaderboard/view.py": "which models boards name",
    "judging/models/runs.py": "runs whose failures are not counted",
    "leaderboard/editions/__init__.py": "which figures of two editions settle one key",
    "leaderboard/editions/recipes.py": "which figures of two editions settle one key",
    "leaderboard/pages/sealed.py": "says it in words",
    "evalsite/management/commands/migrate.py": "says it in words",
}


def test_what_is_hidden_is_decided_in_the_few_places_that_are_named():
    found = {
        str(path.relative_to(ROOT))
        for path in tracked("*.py")
        if path.relative_to(ROOT).parts[0] not in ("tests",)
        and "migrations" not in path.parts
        and DECIDES.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(DECIDED_IN)


# Whose numbers rest on rows that their reader may not see one by one, or who do what their reader may do (ADR 31).
WORKERS = (
    "leaderboard/(votes|boards|kinds)/",  # numbers of boards
    "leaderboard/(hidden|benchmarks|lookups|scope|view).py",  # whether there is something to count, and of which models
    "leaderboard/pages/(benchmark|model|sealed).py",  # counts
    "leaderboard/(frozen|held_out)/",  # counts
    "leaderboard/views/recipes.py",  # which recipes have answers
    "bank/submissions/",  # compares one's own answers, stores them
    "bank/recipes/",  # compares answers by recipes
    "bank/intake/export_files.py",  # whether an export of a curator is large
    "bank/samples/items.py",  # which items are outside
    "judging/runs/(queries|estimates|notices).py",  # counts, reports, notices
    "judging/(collecting/submissions|extras/(attack_report|juries)).py",  # counts, reports
    "judging/judgments/browse.py",  # where a page of rows ends
    "judging/api/judgments.py",  # the first row of each run
    "annotations/(assignment/|models.py)",  # one's own work, whether a campaign is complete
    "annotations/campaigns/(auto_enqueue|choosing).py",  # a campaign's rule, applied whoever asks for an item
    "annotations/labels/",  # one's own labels, and numbers about a closed round
    "annotations/views/data.py",  # counts
    "annotations/api/views.py",  # one's own label
    "(evalsite/middleware|leaderboard/kept/pages).py",  # who is served
    "leaderboard/kept/size.py",  # how many there are
    "evalsite/(metrics|tidying).py",  # counts, for operators
)


def test_single_rows_are_read_past_their_reader_by_the_named_workers_alone():
    found = {
        str(path.relative_to(ROOT))
        for path in tracked("accounts", "annotations", "bank", "evalsite", "judging", "leaderboard")
        if path.suffix == ".py" and re.search(r"guard\.\w+\(|import .*working", path.read_text(encoding="utf-8"))
    }
    assert {name for name in found if not any(re.match(worker, name) for worker in WORKERS)} == {
        "bank/guard.py",
        "bank/models/responses.py",  # managers
    }


# Which items people get, and in which order, tells the verdicts that chose them. So what chooses reads those of
# annotations/campaigns/choosing.py, and verdicts past it only where that is no choice; a new name here needs a reason.
CHOOSES = (
    "annotations/campaigns",
    "annotations/assignment",
    "bank/samples",
    "judging/recipes",
    "judging/runs",
    "judging/collecting",
    "judging/extras",
)
VERDICTS = re.compile(
    r"\b(Judgment|Label|Adjudication|Trial)\.objects|\b(judgments|labels)__"
    r"|\.(judgments|labels)\.(filter|exclude|exists|count|all|order_by|values|aggregate)"
)
READ_VERDICTS = {
    "annotations/campaigns/choosing.py": "the rule",
    "annotations/campaigns/actions.py": "whether there are labels",
    "annotations/campaigns/auto_enqueue.py": "the newest judgment of a run; whose judgments staff chose",
    "annotations/campaigns/blinding.py": "whether the author of a label may still change it",
    "annotations/campaigns/members.py": "labels of one person, to exclude them",
    "annotations/campaigns/run_doubts.py": "staff's subsets, and how many doubts are not given to people",
    "annotations/campaigns/sampling.py": "which judge a judgment that may choose is of",
    "annotations/campaigns/sizing.py": "words of judgments that may choose",
    "annotations/assignment/leases.py": "labels of one person today; in which order a judge saw the answers",
    "annotations/assignment/notices.py": "labels of one person that came back",
    "annotations/assignment/quality.py": "labels of one person on practice and gold",
    "annotations/assignment/queries.py": "labels of one person",
    "judging/extras/attack_report.py": "numbers of a run",
    "judging/runs/compare.py": "seen_by",
    "judging/runs/estimates.py": "tokens, and what is stored already",
    "judging/extras/juries.py": "verdicts of a jury's members",
    "judging/runs/queries.py": "numbers of runs",
    "judging/runs/tryouts.py": "whether people have labelled an item; what a tryout can read",
}


def test_what_chooses_items_for_people_reads_the_verdicts_that_may_choose():
    found = {
        str(path.relative_to(ROOT))
        for path in tracked(*(f"{room}/*.py" for room in CHOOSES))
        if VERDICTS.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(READ_VERDICTS)


LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def loops_within(node: ast.AST) -> int:
    """How many comprehensions lie within each other, at most."""
    below = max((loops_within(child) for child in ast.iter_child_nodes(node)), default=0)
    return below + isinstance(node, LOOPS)


def test_no_more_than_two_comprehensions_lie_within_each_other():
    product = [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] != "tests"]
    assert [path for path in product if loops_within(ast.parse(path.read_text(encoding="utf-8"))) > 2] == []
