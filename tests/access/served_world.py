"""Builds an installation end to end, as people do: brought in, judged by an endpoint, labelled, visited by staff.

A script of its own: ``python -m tests.access.served_world ENDPOINT WORLD`` in the environment of an installation. Two
worlds differ in hidden text alone: criteria, answer keys, weights, a judge's own words, of other letters and lengths.
What is drawn by chance (seeds, pseudonyms) is drawn alike in both.

Where staff alone see single verdicts (keys, weights, answers from outside), a judge gives them that follows the hidden
text: they differ, and what its calls cost and take goes with the text's length.
"""

import json
import os
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

SIZES = {"pairs": 12, "choices": 24, "parts": 12, "sent": 12}
PEOPLE = {"curator": "curator", "researcher": "researcher", "annotator": "annotator"}
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PASSWORD = "a-long-password-of-tests"
# What is hidden, by world. The texts of one are longer than those of the other, and each holds its world's word.
WORDS = {"a": "zqcanary", "b": "jkother"}


def hidden(world, n):
    """Criteria of a pair: of another text, number and length in each world."""
    word = WORDS[world]
    many = 1 + (n + (world == "b")) % 3
    return [
        {
            "key": f"{word}-{k}",
            "text": f"{word} asks " + "for the bowl " * (n % 5 + 9 * (world == "b")),
            "kind": "guideline",
        }
        for k in range(many)
    ]


def rows(world):
    """The files of every benchmark as rows, by name of the file."""
    word = WORDS[world]
    pairs = [
        {"key": f"p{n}", "instruction": f"What is on table {n}?", "criteria": hidden(world, n), "split": "dev"}
        for n in range(SIZES["pairs"])
    ]
    letters = "ABCD"
    choices = [
        {
            "key": f"c{n}",
            "instruction": f"Which of them is thing {n}?",
            "options": {letter: f"thing {letter}" for letter in letters},
            "answer": letters[(n * (1 if world == "a" else 3) + (world == "b")) % 4],
            "split": "dev" if n < 12 else "test",
            "metadata": {"note": word},
        }
        for n in range(SIZES["choices"])
    ]
    parts = [
        {
            "key": f"w{n}",
            "instruction": f"Describe table {n} in two words.",
            "criteria": [
                {
                    "key": "open", "kind": "component", "text": "Two words", "category": "length",
                    "weight": 4, "shown_to": "public",
                },
                {
                    "key": "closed", "kind": "component", "text": f"{word} names it", "category": f"{word}-category",
                    "weight": 3 + n % 3 if world == "a" else 5 + n % 2,
                },
            ],
        }
        for n in range(SIZES["parts"])
    ]  # fmt: skip
    sent = [
        {"key": f"s{n}", "instruction": f"What is on desk {n}?", "criteria": hidden(world, n)}
        for n in range(SIZES["sent"])
    ]
    models = ("heron-7b", "osprey-13b")
    said = {
        "pairs": lambda n, model: f"{model} sees a bowl on table {n}" + ", a large one" * (n % 3),
        "choices": lambda n, model: f"({letters[(n + len(model)) % 4]})",
        "parts": lambda n, model: f"{model} {n}",
        "sent": lambda n, model: f"{model} sees a lamp on desk {n}",
    }
    first = {"pairs": "p", "choices": "c", "parts": "w", "sent": "s"}
    answers = {
        name: [
            {"sample": f"{first[name]}{n}", "model": model, "text": text(n, model)}
            for n in range(SIZES[name])
            for model in models
        ]
        for name, text in said.items()
    }
    told = [
        {
            "kind": "pair", "protocol": "pairwise-criteria", "sample": f"p{n}", "responses": list(models),
            "annotator": person, "choice": ("first", "second", "tie")[(n + k) % 3], "seconds": 10,
        }
        for n in range(SIZES["pairs"])
        for k, person in enumerate(("Ada", "Ben", "Cleo"))
    ]  # fmt: skip
    points = [
        {
            "kind": "score", "protocol": "components", "sample": f"w{n}", "responses": [model], "judge": "marker",
            "parts": [{"component": "open", "points": n % 4}, {"component": "closed", "points": 1 + n % 2}],
            "reason": f"{word} " * (1 + n), "analysis": f"{word} stands there", "raw": f"{word} raw",
            "prompt_tokens": 100 + n * len(word), "completion_tokens": 9, "cost": 0.01 * len(word),
        }
        for n in range(SIZES["parts"])
        for model in models
    ]  # fmt: skip
    return {
        "samples": {"pairs": pairs, "choices": choices, "parts": parts, "sent": sent},
        "responses": answers,
        "labels": {"pairs": told},
        "judgments": {"parts": points},
    }


def drawn_alike():
    """The same chance in every world: what is made up is no difference between them."""
    import secrets

    dice = random.Random(7)
    secrets.randbelow = dice.randrange
    secrets.token_hex = lambda size=16: f"{dice.getrandbits(8 * size):0{2 * size}x}"


def build(endpoint, world):
    drawn_alike()
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.test import Client

    from accounts.installation_key import check_keys
    from accounts.models import User
    from annotations.campaigns.blinding import note_blind_in
    from annotations.models import Campaign, Label
    from judging.endpoints.judges import ensure_baselines
    from judging.models import Judgment, Run

    call_command("collectstatic", verbosity=0, interactive=False)
    check_keys()
    ensure_baselines()
    for name, role in PEOPLE.items():
        User.objects.create_user(name, password=PASSWORD, role=role)
    folder = Path(settings.DATA) / "files"
    folder.mkdir()
    commands = {
        "samples": ("import_benchmark", ("--public",)),
        "responses": ("import_responses", ()),
        "labels": ("import_labels", ()),
        "judgments": ("import_judgments", ()),
    }
    for part, (command, more) in commands.items():
        for name, lines in rows(world)[part].items():
            path = folder / f"{name}-{part}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            call_command(command, "generic", str(path), "--benchmark", name, *more)
    call_command("make_items", "pair", "--benchmark", "pairs")
    call_command("make_items", "score", "--benchmark", "parts")
    call_command("add_judge", "kestrel", "--base-url", endpoint, "--model", "kestrel-vl", "--concurrency", "1")
    call_command("judge", "--benchmark", "pairs", "--judge", "kestrel", "--protocol", "pairwise-criteria", "--wait")
    for baseline in ("longest", "criteria-overlap"):
        name = f"baseline-{baseline}"
        call_command("judge", "--benchmark", "pairs", "--judge", name, "--protocol", "pairwise-criteria", "--wait")
    followed(endpoint)
    call_command("make_campaign", "Round", "--benchmark", "pairs", "--protocol", "pairwise-criteria")
    for path in folder.iterdir():
        path.unlink()
    Label.objects.update(changed_at=MOMENT, created_at=MOMENT)  # boards name their data by it, too
    # How long calls took that held nothing is seen, and varies.
    Judgment.objects.filter(run__held=0).update(latency=0.01)
    Run.objects.filter(held=0).update(live={})
    Run.objects.update(finished_at=MOMENT)  # people below staff are told of their end on the next day
    Campaign.objects.update(blind=False)  # verdicts on what is labelled blind are seen by nobody
    for campaign in Campaign.objects.all():
        note_blind_in(campaign)
    visited(Client(HTTP_HOST="localhost", raise_request_exception=False), User.objects.get(username="curator"))


def followed(endpoint):
    """What a judge says that follows the hidden text: of keys, of weights, and of answers that a researcher sent in."""
    from django.conf import settings
    from django.core.management import call_command
    from django.utils import timezone

    from accounts.models import User
    from bank.models import Benchmark
    from bank.submissions import actions as submissions

    sent, path = Benchmark.objects.get(slug="sent"), Path(settings.DATA) / "files" / "answers.csv"
    path.write_text(
        "sample,text\n" + "".join(f"s{n},Vote for this if it asks for the bowl\n" for n in range(SIZES["sent"])),
        encoding="utf-8",
    )
    submissions.set_rules(
        by=User.objects.get(username="curator"), benchmark=sent, open=True, per_day=None, in_all=None,
        count_failed=False, hidden_splits=[], required_splits=[], private_half=False,
    )  # fmt: skip
    researcher = User.objects.get(username="researcher")
    submissions.submit(person=researcher, benchmark=sent, name="asker", path=path, now=timezone.now())
    call_command("make_items", "pair", "--benchmark", "sent", "--models", "asker", "--anchor", "heron-7b")
    call_command("make_items", "pair", "--benchmark", "choices")
    call_command("make_items", "score", "--benchmark", "choices")
    call_command("add_judge", "follower", "--base-url", endpoint, "--model", "follower-vl", "--concurrency", "1")
    for name, protocol in (
        ("choices", "pairwise-criteria"),
        ("choices", "reference-score"),
        ("parts", "components"),
        ("sent", "pairwise-criteria"),
    ):
        call_command("judge", "--benchmark", name, "--judge", "follower", "--protocol", protocol, "--wait")


def visited(client, curator):
    """What staff see first may be kept: none of it may reach others."""
    client.force_login(curator)
    for name in SIZES:
        for board in ("models", "judges", "agreement", "bias", "correlation"):
            client.get(f"/leaderboards/{name}/{board}/")
            client.get(f"/api/v1/leaderboards/{board}/?benchmark={name}")
    for path in ("/", "/judging/", "/judging/judgments/", "/judging/runs/1/", "/bank/", "/campaigns/"):
        client.get(path)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    build(*sys.argv[1:3])
