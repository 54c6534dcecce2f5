"""An attacker's budget of submissions: what fifty of them tell about keys that are not open (ADR 11).

Five splits of forty questions with four options and two of forty yes-or-no questions, 280 keys, none of them open and
no split hidden. Each attack goes through the real scoring and reads what a submitter reads; each prints what it learnt,
over all keys and over the shown halves alone.
"""

import json
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from accounts.models import User
from bank.models import Benchmark, Sample, SubmissionRules, ToldScore
from bank.submissions import actions, ladder
from bank.submissions.scoring import is_kept
from leaderboard.submissions.page import scores_as_json
from tests.bank.test_submissions import EVERY, LABELS, NOON

pytestmark = pytest.mark.django_db
SPLITS = {f"choice{n}": LABELS for n in range(5)} | {f"yes{n}": ("yes", "no") for n in range(2)}
SIZE, TELLINGS, MORE = 40, 50, 0.05
OWN = ("vanilla", "accuracy")


class Target:
    """The benchmark as an attacker meets it: files go in, what is told comes out. ``keys`` are for counting alone."""

    def __init__(self, folder, manage, people, tmp_path, at_chance):
        self.at_chance = at_chance
        rng, rows, self.keys = random.Random(7), [], {}
        for split, labels in SPLITS.items():
            for n in range(SIZE):
                key = f"{split}-{n}"
                self.keys[key] = rng.choice(labels)
                row = {"key": key, "instruction": "Which?", "split": split, "answer": self.keys[key]}
                rows.append(row | ({"options": {label: label for label in labels}} if labels == LABELS else {}))
        path = folder("samples", rows, name="target.jsonl")
        assert manage("import_benchmark", "generic", path, "--benchmark", "target", "--public")[0] == 0
        self.benchmark = Benchmark.objects.get(slug="target")
        given = EVERY | {"hidden_splits": (), "required_splits": (), "private_half": True}
        self.rules = actions.set_rules(by=people["curator"], benchmark=self.benchmark, **given)
        self.rules.seed = "a fixed one"
        self.rules.save()
        self.folder, self.sent = tmp_path, 0

    def shares(self, said, person):
        """By split, the share right that a person is told of these answers; None where it is not told."""
        self.sent += 1
        path = Path(tempfile.mkdtemp(dir=self.folder)) / "answers.jsonl"
        path.write_text("".join(json.dumps({"sample": key, "text": text}) + "\n" for key, text in said.items()))
        name = f"m{self.sent}"
        submission = actions.submit(person=person, benchmark=self.benchmark, name=name, path=path, now=NOON)
        told = {}
        for score in scores_as_json(submission, person):
            number = next((score["numbers"][name] for name in OWN if score["numbers"].get(name)), None)
            if score["part"] != "kept":
                told[score["split"]] = number and number["value"]
        return told

    def learnt(self, guess, attack):
        """Assert and print how many keys a guess gets right, by kind of question."""
        for kind, chance in (("choice", 0.25), ("yes", 0.5)):
            keys = [key for key in self.keys if key.startswith(kind)]
            right = [key for key in keys if guess[key] == self.keys[key]]
            shown = [key for key in keys if not is_kept(seed=self.rules.seed, cluster=key)]
            of_shown = len(set(right) & set(shown))
            self.at_chance(len(right), len(keys), chance, f"{attack}: {kind}", more=MORE)
            # Of the halves alone there are too few keys for five points: three standard errors of guessing.
            noise = 3 * (chance * (1 - chance) / len(shown)) ** 0.5
            assert of_shown / len(shown) <= chance + noise, attack


@pytest.fixture
def target(folder, manage, people, tmp_path, at_chance):
    return Target(folder, manage, people, tmp_path, at_chance)


@pytest.fixture
def two(people):
    return [people["researcher"], User.objects.create_user("friend", password="a-long-password", role="researcher")]


def labels_of(key):
    return SPLITS[key.rpartition("-")[0]]


def by_split(answers):
    return {split: [key for key in answers if key.rpartition("-")[0] == split] for split in SPLITS}


@pytest.mark.check("I1")
@pytest.mark.soak
@pytest.mark.parametrize(("changes", "together"), [(3, 2)])
def test_hill_climbing_learns_nothing(changes, together, target, two):
    """So many answers a split are changed at a time; what does better is kept. Two people take turns, each with all of
    their own tellings, and share what they are told."""
    rng = random.Random(changes)
    best = {key: rng.choice(labels_of(key)) for key in target.keys}
    reached = dict.fromkeys(SPLITS, 0.0)
    for turn in range(TELLINGS * together):
        said = dict(best)
        if turn:
            for keys in by_split(best).values():
                for key in rng.sample(keys, changes):
                    said[key] = rng.choice([label for label in labels_of(key) if label != best[key]])
        told = target.shares(said, two[turn % together])
        for split, keys in by_split(best).items():
            if told[split] is not None and told[split] > reached[split]:
                reached[split] = told[split]
                best |= {key: said[key] for key in keys}
    target.learnt(best, f"hill climbing by {changes}, {together} together, told {sum(map(bool, reached.values()))}")


@pytest.mark.check("I1")
@pytest.mark.parametrize(("changes", "together"), [(3, 2), pytest.param(30, 1, marks=pytest.mark.soak)])
def test_hill_climbing_from_a_score_that_was_told_learns_nothing(changes, together, target, two):
    """The same over all choices as one split, from answers of which half are right: there is a score to climb from."""
    Sample.objects.filter(split__startswith="choice").update(split="choice")
    SubmissionRules.objects.update(required_splits=["choice"])
    keys = [key for key in target.keys if key.startswith("choice")]
    rng = random.Random(changes)

    def other(key, label):
        return rng.choice([one for one in LABELS if one != label])

    best = {key: target.keys[key] if n % 2 else other(key, target.keys[key]) for n, key in enumerate(keys)}
    start, reached, tellings = dict(best), [], 0
    for turn in range(TELLINGS * together):
        said = dict(best)
        for key in rng.sample(keys, changes) if turn else ():
            said[key] = other(key, best[key])
        share = target.shares(said, two[turn % together])["choice"]
        tellings += share is not None
        if share is not None and share > max(reached, default=0.0):
            reached.append(share)
            best = said
    right, before = (sum(of[key] == target.keys[key] for key in keys) for of in (best, start))
    assert tellings
    what = f"hill climbing from half by {changes}, {together} together, told {len(reached)}"
    target.at_chance(right, len(keys), before / len(keys), what, more=MORE)


def random_letters(target, person, seed):
    rng = random.Random(seed)
    for _ in range(TELLINGS):
        said = {key: rng.choice(labels_of(key)) for key in target.keys}
        yield said, target.shares(said, person)


@pytest.mark.check("I1")
def test_a_linear_programme_over_all_that_was_told_learns_nothing(target, two):
    """The sums of random letters are equations about the keys: 35 exact ones gave 40 of 40 keys."""
    asked = list(random_letters(target, two[0], 1))
    rng, guess = random.Random(2), {}
    for split, keys in by_split(target.keys).items():
        labels = SPLITS[split]
        of = [(said, told[split]) for said, told in asked if told[split] is not None]
        rows = np.array([[said[key] == label for key in keys for label in labels] for said, _ in of], dtype=float)
        sums = np.array([share * len(keys) for _, share in of])
        guess |= {key: rng.choice(labels) for key in keys}
        if not of:
            continue
        one = np.kron(np.eye(len(keys)), np.ones(len(labels)))  # each key is one of the labels
        size = rows.shape[1]
        distances = np.concatenate([np.zeros(size), np.ones(len(of))])
        eye = np.eye(len(of))
        found = linprog(
            distances,
            A_ub=np.block([[rows, -eye], [-rows, -eye]]),
            b_ub=np.concatenate([sums, -sums]),
            A_eq=np.hstack([one, np.zeros((len(keys), len(of)))]),
            b_eq=np.ones(len(keys)),
            bounds=[(0, 1)] * size + [(0, None)] * len(of),
        )
        weights = found.x[:size].reshape(len(keys), len(labels))
        guess |= {key: labels[int(row.argmax())] for key, row in zip(keys, weights, strict=True)}
    target.learnt(guess, f"linear programme, {sum(v is not None for _, told in asked for v in told.values())} sums")


@pytest.mark.check("I1")
@pytest.mark.soak
def test_a_vote_of_random_letters_by_their_score_learns_nothing(target, two):
    votes = {key: dict.fromkeys(labels_of(key), 0.0) for key in target.keys}
    for said, told in random_letters(target, two[0], 3):
        for key, label in said.items():
            share = told[key.rpartition("-")[0]]
            votes[key][label] += 0 if share is None else share - 1 / len(labels_of(key))
    rng = random.Random(4)
    guess = {key: max(vote, key=lambda label: (vote[label], rng.random())) for key, vote in votes.items()}
    target.learnt(guess, "majority of random letters")


@pytest.mark.check("I1")
def test_one_letter_everywhere_tells_no_share_of_letters(target, two):
    told = []
    for letter in range(4):
        said = {key: labels_of(key)[letter % len(labels_of(key))] for key in target.keys}
        told += target.shares(said, two[0]).values()
    assert set(told) == {None}


@pytest.mark.check("I1")
def test_after_fifty_tellings_nothing_is_told_where_a_curator_sets_no_limit(target, two):
    said = {key: random.Random(5).choice(labels_of(key)) for key in target.keys}
    for _ in range(ladder.MOST_TOLD):
        target.shares(said, two[0])
    assert set(target.shares(target.keys, two[0]).values()) == {None}, "all right, and not told"
    assert not ToldScore.objects.filter(submission__name=f"m{target.sent}").exists()
    assert any(target.shares(target.keys, two[1]).values()), "somebody else is"
    assert ladder.tellings(target.benchmark) == {"submissions": 51, "people": 2}
