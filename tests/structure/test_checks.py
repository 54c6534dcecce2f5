"""What evalsite promises against leaks, bad input, races and kills, by letter and number, and that a test holds each.

A test says which promises it holds by ``@pytest.mark.check("A2", ...)``: search for the mark to find them.
"""

import ast
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
CHECKS = {
    # Secrecy
    "A1": "no hidden text at any address, in any method, form or spelling, below staff",
    "A2": "two worlds that differ only in what is hidden answer alike, byte by byte",
    "A4": "so do their ETags, lengths and orders",
    "A5": "no filter, order or field leads to what is hidden",
    "A6": "error pages, logs and mails hold nothing hidden",
    "A7": "a judge that prints the criteria shows none below staff",
    "A8": "the redactor takes out leaks however they are written",
    "A9": "names, counts and weights of criteria are not told",
    "A10": "columns leave by name only",
    "A11": "logs, cache, sessions and tables are clean after a run",
    "A12": "what a provider's error quotes is for staff",
    "A13": "pictures carry no answer in their bytes or names",
    "A14": "criteria go to allowed hosts only",
    "A15": "each reading of criteria leaves a record",
    # Access
    "B1": "every route has its rule, for every role and method",
    "B2": "what is another's is as if absent",
    "B3": "fields that are not offered change nothing",
    "B4": "no other method or spelling opens more than GET",
    "B5": "pictures are behind the same rules",
    "B6": "a disabled person is out at the next request",
    "B7": "one foreign id among many and nothing is written",
    "B9": "no path leads out of its folder",
    # Uploads and imports
    "C1": "hostile pictures",
    "C2": "pictures are encoded anew, upright, without what came beside the pixels",
    "C3": "hostile archives",
    "C4": "XML and its entities",
    "C5": "encodings",
    "C6": "JSON Lines",
    "C7": "tables",
    "C8": "rows that do not hang together",
    "C9": "a million rows in flat memory, pages answering",
    "C10": "a kill leaves all or nothing",
    "C11": "the same file twice at once",
    "C12": "no cell becomes a formula",
    "C13": "the same verdict on odd values on both databases",
    "C14": "no picture's address is ever asked",
    # Web
    "D1": "Django's own checks for production are clean",
    "D2": "headers on every response, no violation in a browser",
    "D3": "htmx evaluates nothing, no handler stands in markup",
    "D4": "a hundred ways of bringing a script in",
    "D5": "cookies, and a new session at sign-in",
    "D6": "no unsafe request without its token; a stale form keeps what was typed",
    "D7": "sign-in leads nowhere outside",
    "D8": "ten failures close the door for a while",
    "D9": "production does not start unsafe",
    "D10": "signed-in pages are kept nowhere",
    # Limits
    "E1": "a limit is exact under parallel requests",
    "E2": "429 says when to come back",
    "E4": "absurd parameters are refused",
    # Judge runs
    "F1": "rate limits",
    "F2": "failing, slow and endless endpoints",
    "F3": "replies that are none",
    "F4": "scores that are none",
    "F5": "rankings that are none",
    "F6": "killed workers",
    "F7": "a worker that lost its run writes nothing",
    "F8": "a crash between reply and commit",
    "F9": "budgets",
    "F10": "clocks that move",
    "F11": "a model that changes in mid-run",
    "F12": "keys go to their own host only",
    "F13": "injections",
    "F14": "both orders are told apart",
    "F15": "a full disk, a database that is gone",
    # Annotation
    "G1": "the same label sent again",
    "G2": "two tabs",
    "G3": "a lease that ends while typing",
    "G4": "no network for five minutes",
    "G5": "many annotators, exactly the overlap",
    "G6": "kills lose no acknowledged label",
    "G7": "annotators who leave",
    "G9": "nothing tells which model answered",
    "G10": "every change is kept",
    # What is computed from hidden text
    "J1": "two installations of other hidden text, built end to end, look the same below staff",
    "J2": "no hash that is shown confirms a guess",
    "J3": "no two views or editions of a board tell one sample's key",
    "J4": "one label moves no number that rests on hidden inputs",
    "J5": "spellings of a criterion against what is released",
    "J6": "the hidden tables refuse outside their readers at run time",
    # Strangers and operation
    "K1": "the documented start of production works, bare and behind the documented proxy",
    "K2": "guesses from one place lock nobody else out, and those made at once all count",
    "K3": "no start with the demo's passwords or without the database's keys, and no new keys",
    "K4": "slow connections keep nobody waiting",
    "K5": "answers to HEAD have no body on a real connection",
    "K6": "readyz tells what is broken",
    "K7": "workers of other clocks or without the pictures, and calls that were lost",
    "K8": "a full disk in an import leaves nothing behind",
    "K9": "others write while a large import comes in",
    # Boards
    "I1": "probing a hidden split ends at chance",
    "I2": "limits of submissions",
    "I5": "withdrawn submissions stay listed",
    "I6": "the same numbers in any order of rows",
    "I8": "what is missing shows in the coverage",
}


def marked():
    """The tests of each check."""
    found = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for call in getattr(node, "decorator_list", ()):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.check":
                    assert node.name.startswith("test_"), f"{path.name}: {node.name} is no test"
                    for one in call.args:
                        found[one.value].append(f"{path.relative_to(TESTS)}::{node.name}")
    return found


def test_every_promise_is_held_by_a_test_that_names_it():
    found = marked()
    assert set(found) - set(CHECKS) == set(), "no such promise"
    assert set(CHECKS) - set(found) == set(), "no test names these"
