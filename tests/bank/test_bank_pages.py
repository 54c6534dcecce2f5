"""The bank in the browser: making benchmarks, editing with history, bulk changes, trees, cross-review, export."""

import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import User
from bank.criteria import CriteriaAccess, Criterion, CriterionRevision, fingerprint, for_staff
from bank.errors import BadInput, Stale
from bank.models import Benchmark, Response, Sample, SampleReview
from bank.models.reviews import GUIDELINE
from bank.samples.benchmarks import make_benchmark, summary_of
from bank.samples.capabilities import tree_of
from bank.samples.capability_trees import TREES, add_template
from bank.samples.editor import change_many, save_sample
from bank.samples.listing import Filter, list_samples
from bank.samples.reviews import close_round, decide, give_review, open_round, rounds_of
from tests.bank.conftest import picture
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
FINE = {name: {"ok": True, "note": ""} for name in GUIDELINE}
FLAWED = FINE | {"clarity": {"ok": False, "note": "Too dark"}}


@pytest.fixture
def curator(client_of):
    return client_of("curator")


def form(**given):
    """What a browser sends for a new sample with two criteria."""
    return {
        "key": "owl",
        "instruction": "Which bird is it?",
        "rows": "2",
        "c0-kind": "exact_reference",
        "c0-text": "An owl.",
        "c0-order": "1",
        "c0-shown_to": "staff",
        "c1-kind": "component",
        "c1-text": "Says what gives it away.",
        "c1-weight": "4",
        "c1-category": "describe",
        "c1-order": "2",
        "c1-shown_to": "staff",
    } | given


def guideline(text):
    return {"key": "1", "kind": "guideline", "category": "", "weight": None, "shown_to": "staff", "text": text}


def written(by, benchmark, key, **fields):
    """A draft by somebody, through the action of the editor."""
    names = dict.fromkeys(("hint", "language", "question_type", "split", "source", "group"), "")
    return save_sample(
        by=by,
        benchmark=benchmark,
        sample=None,
        edition=0,
        fields=names | {"key": key, "instruction": f"About {key}?", "options": {}} | fields,
        capability=None,
        pictures=[],
        criteria=[guideline(f"Knows {key}.")],
    )


def texts(sample, user):
    return [(t.key, t.kind, t.text, t.version) for t in for_staff(user=user, samples=[sample], how="test")[sample.pk]]


def test_a_benchmark_made_in_the_browser_is_private_and_grows_a_template_tree(curator):
    answer = curator.post(
        "/bank/benchmarks/new/",
        {"title": "Birds", "slug": "birds", "version": "1", "tree": "mllm-bench", "majority": "plurality"}
        | {"score_scale": "1 = Poor\n2 = Good"},
    )
    assert answer.status_code == 302
    benchmark = Benchmark.objects.get(slug="birds")
    assert benchmark.visibility == "private"
    assert benchmark.score_scale == [{"value": 1, "label": "Poor"}, {"value": 2, "label": "Good"}]
    assert [node.capability.name for node in tree_of(benchmark) if node.depth == 0] == list(TREES["mllm-bench"])
    again = curator.post(
        "/bank/benchmarks/new/", {"title": "B", "slug": "birds", "version": "1", "majority": "plurality"}
    )
    assert "Benchmark birds@1 already exists" in flat(again)
    titled = {"title": "Birds of Prey, 2nd part", "slug": "", "version": "1", "majority": "plurality"}
    assert curator.post("/bank/benchmarks/new/", titled).status_code == 302
    assert Benchmark.objects.get(title=titled["title"]).slug == "birds-of-prey-2nd-part"
    unnamed = flat(curator.post("/bank/benchmarks/new/", titled | {"title": "鸟"}))
    assert "None can be made of this title" in unnamed
    assert "use letters, digits" in flat(
        curator.post("/bank/benchmarks/new/", {"title": "B", "slug": "a b", "version": "1", "majority": "plurality"})
    )


@pytest.mark.parametrize(("name", "sizes"), [("mllm-bench", [6, 42]), ("mmbench", [2, 6, 20])])
def test_the_template_trees_have_the_published_sizes(name, sizes):
    """MLLM-Bench, Table 9: 6 levels, 42 capabilities. MMBench, section 3.1: 2, 6 and 20 abilities on L-1 to L-3."""
    benchmark = make_benchmark(slug="t", title="T", tree=name)
    depths = [node.depth for node in tree_of(benchmark)]
    assert [depths.count(depth) for depth in range(len(sizes))] == sizes
    assert add_template(benchmark=benchmark, tree=TREES[name]) == 0


def test_a_sample_written_in_the_browser_is_a_draft_with_criteria_pictures_and_an_author(curator, people, media):
    benchmark = make_benchmark(slug="birds", title="Birds")
    file = SimpleUploadedFile("owl.png", picture(size=(640, 600)), content_type="image/png")
    answer = curator.post(
        f"/bank/benchmarks/{benchmark}/samples/new/",
        form(options="an owl\na heron", answer="A", pictures=file),
    )
    assert answer.status_code == 302
    sample = Sample.objects.get(key="owl")
    assert (sample.status, sample.author, sample.options) == (
        "draft",
        people["curator"],
        {"A": "an owl", "B": "a heron"},
    )
    assert sample.images.get().width == 640
    assert texts(sample, people["curator"]) == [
        ("1", "exact_reference", "An owl.", 1),
        ("2", "component", "Says what gives it away.", 1),
        ("answer", "answer_key", "A", 1),
    ]


def test_a_form_that_is_sent_back_keeps_every_letter_and_the_picture(curator, media):
    benchmark = make_benchmark(slug="birds", title="Birds")
    address = f"/bank/benchmarks/{benchmark}/samples/new/"
    file = SimpleUploadedFile("owl.png", picture(), content_type="image/png")
    page = curator.post(address, form(instruction="", pictures=file))
    assert page.status_code == 200
    assert "An owl." in flat(page)
    held = page.context["editor"].held_tokens[0][0]
    more = flat(curator.post(address, form(more="1", held=held)))
    assert "Says what gives it away." in more
    assert more.count('name="c3-text"') == 1
    assert curator.post(address, form(held=held)).status_code == 302
    assert Sample.objects.get(key="owl").images.count() == 1
    assert Sample.objects.count() == 1
    forged = curator.post(address, form(key="other", held=held[:-2] + "xx"))
    assert forged.status_code == 302
    assert not Sample.objects.get(key="other").images.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"options": "only one"}, "One option is no choice"),
        ({"options": "A: x\nA: y"}, "Two options are called A"),
        ({"options": "x\ny", "answer": "C"}, "one of the options&#x27; letters: A, B"),
        ({"c1-weight": "-1"}, "greater than or equal to 0"),
        ({"instruction": "nul\x00"}, "Null characters are not allowed"),
        ({"key": "k" * 201}, "at most 200"),
    ],
)
def test_what_cannot_be_saved_is_said_at_its_field(given, said, curator):
    benchmark = make_benchmark(slug="birds", title="Birds")
    page = curator.post(f"/bank/benchmarks/{benchmark}/samples/new/", form(**given))
    assert page.status_code == 200
    assert said in flat(page)
    assert not Sample.objects.exists()


def test_a_file_that_is_no_picture_is_refused_with_its_name(curator, media):
    benchmark = make_benchmark(slug="birds", title="Birds")
    file = SimpleUploadedFile("owl.png", b"<svg onload=alert(1)>", content_type="image/png")
    page = curator.post(f"/bank/benchmarks/{benchmark}/samples/new/", form(pictures=file))
    assert "owl.png: not a readable PNG, JPEG or WebP picture" in flat(page)


def test_an_edit_is_kept_with_author_and_time_and_raises_the_criterions_version(curator, people):
    benchmark = make_benchmark(slug="birds", title="Birds")
    curator.post(f"/bank/benchmarks/{benchmark}/samples/new/", form())
    sample = Sample.objects.get(key="owl")
    before = fingerprint(benchmark.samples.all())
    CriteriaAccess.objects.all().delete()
    page = curator.get(f"/bank/samples/{sample.pk}/edit/")
    assert "An owl." in flat(page)
    log = CriteriaAccess.objects.get()
    assert (log.who, log.how, log.sample_ids) == (people["curator"], "editor", [sample.pk])
    change = form(
        instruction="Which bird sits there?",
        edition=str(sample.edition),
        note="clearer",
        **{"c0-key": "1", "c0-text": "A barn owl.", "c1-key": "2", "c1-remove": "on"},
    )
    assert curator.post(f"/bank/samples/{sample.pk}/edit/", change).status_code == 302
    revision = sample.revisions.first()
    assert (revision.by, revision.note, revision.edition) == (people["curator"], "clearer", sample.edition + 1)
    assert revision.changes["instruction"] == ["Which bird is it?", "Which bird sits there?"]
    assert "owl" not in json.dumps(revision.changes)
    assert fingerprint(benchmark.samples.all()) != before
    assert texts(sample, people["curator"]) == [("1", "exact_reference", "A barn owl.", 2)]
    history = flat(curator.get(f"/bank/samples/{sample.pk}/history/"))
    assert "Which bird sits there?" in history
    assert "barn owl" not in history
    old = flat(curator.get(f"/bank/samples/{sample.pk}/criteria/history/"))
    assert "An owl." in old
    assert "A barn owl." in old
    raw = CriterionRevision.unguarded.filter(sample=sample).extra(select={"raw": "old"}).values_list("raw", flat=True)
    assert not any("owl" in (text or "") for text in raw)


def test_a_criterion_that_comes_back_under_its_old_name_is_no_earlier_version(people):
    benchmark = make_benchmark(slug="birds", title="Birds")
    sample = written(people["curator"], benchmark, "owl")
    row = guideline("Knows owl.")
    seen = {fingerprint(benchmark.samples.all())}
    fields = {name: getattr(sample, name) for name in "key instruction hint language question_type split".split()}
    fields |= {"options": {}, "source": "", "group": ""}

    def save(criteria):
        sample.refresh_from_db()
        save_sample(
            by=people["curator"],
            benchmark=benchmark,
            sample=sample,
            edition=sample.edition,
            fields=fields,
            capability=None,
            pictures=[],
            criteria=criteria,
        )

    save([])
    seen.add(fingerprint(benchmark.samples.all()))
    save([row])
    seen.add(fingerprint(benchmark.samples.all()))
    assert len(seen) == 3
    assert Criterion.unguarded.get(sample=sample).version == 2
    edition = Sample.objects.get(pk=sample.pk).edition
    save([row])
    assert Sample.objects.get(pk=sample.pk).edition == edition  # the same again is no change


def test_a_stale_form_writes_nothing_says_who_was_faster_and_keeps_what_was_typed(curator, people):
    benchmark = make_benchmark(slug="birds", title="Birds")
    sample = written(people["administrator"], benchmark, "owl")
    opened = str(sample.edition)
    mine = form(edition=opened, instruction="Mine?", **{"c0-key": "1", "c1-text": ""})
    theirs = form(edition=opened, instruction="Theirs?", **{"c0-key": "1", "c1-text": ""})
    assert curator.post(f"/bank/samples/{sample.pk}/edit/", theirs).status_code == 302
    page = curator.post(f"/bank/samples/{sample.pk}/edit/", mine)
    said = flat(page)
    assert page.status_code == 200
    assert "curator changed this sample while you were editing" in said
    assert "Mine?" in said
    assert "Theirs?" in said
    assert Sample.objects.get(pk=sample.pk).instruction == "Theirs?"
    now = page.context["editor"].fields["edition"].value()
    assert curator.post(f"/bank/samples/{sample.pk}/edit/", mine | {"edition": now}).status_code == 302
    assert Sample.objects.get(pk=sample.pk).instruction == "Mine?"


def test_settings_of_a_benchmark_are_locked_the_same_way(curator):
    benchmark = make_benchmark(slug="birds", title="Birds")
    given = {"title": "Owls", "majority": "plurality", "edition": str(benchmark.edition), "score_scale": ""}
    assert curator.post(f"/bank/benchmarks/{benchmark}/edit/", given).status_code == 302
    page = curator.post(f"/bank/benchmarks/{benchmark}/edit/", given | {"title": "Herons"})
    assert "Somebody changed this benchmark" in flat(page)
    assert Benchmark.objects.get(pk=benchmark.pk).title == "Owls"


def test_publishing_shows_approved_samples_and_nothing_else(curator, client_of, people):
    benchmark = make_benchmark(slug="birds", title="Birds")
    for number, status in enumerate(Sample.Status.values):
        Sample.objects.create(benchmark=benchmark, key=status, instruction="?", status=status, position=number)
    page = flat(curator.get(f"/bank/benchmarks/{benchmark}/publish/"))
    assert "1 approved sample:" in page
    assert "4 samples that are not approved" in page
    curator.post(f"/bank/benchmarks/{benchmark}/publish/", {"visibility": "public"})
    seen = client_of("anonymous").get("/api/v1/samples/?benchmark=birds").json()["results"]
    assert [row["key"] for row in seen] == ["approved"]


def test_bulk_changes_are_counted_confirmed_and_kept_one_by_one(curator, people):
    benchmark = make_benchmark(slug="birds", title="Birds", tree="mllm-bench")
    ocr = benchmark.capabilities.get(name="OCR")
    for number in range(6):
        split = "dev" if number < 4 else "test"
        Sample.objects.create(benchmark=benchmark, key=f"s{number}", instruction="?", split=split, position=number)
    address = f"/bank/benchmarks/{benchmark}/samples/change/?split=dev"
    given = {"split": "test", "capability": str(ocr.pk), "note": "all of them read"}
    page = flat(curator.post(address, given))
    assert "becomes <b>test</b> on 4 samples" in page
    assert not Sample.objects.filter(split="test", capability=ocr).exists()
    change_many(by=people["curator"], samples=Sample.objects.filter(key="s0"), values={"split": "other"})
    page = flat(curator.post(address, given | {"confirmed": "4"}))
    assert "The selection changed meanwhile" in page
    assert curator.post(address, given | {"confirmed": "3"}).status_code == 302
    changed = Sample.objects.filter(capability=ocr)
    assert sorted(changed.values_list("key", flat=True)) == ["s1", "s2", "s3"]
    for sample in changed:
        revision = sample.revisions.get()
        assert revision.changes == {"split": ["dev", "test"], "capability": ["", "Perception / OCR"]}
        assert (revision.by, revision.note) == (people["curator"], "all of them read")
    page = flat(curator.post(address.replace("dev", "test"), {"status": "rejected"}))
    assert "Say why the samples are rejected" in page


def paths(benchmark):
    return [node.capability.path for node in tree_of(benchmark, counts={})]


def test_a_tree_of_any_depth_can_be_changed_in_every_way(curator):
    benchmark = make_benchmark(slug="birds", title="Birds")
    address = f"/bank/benchmarks/{benchmark}/capabilities/"

    def do(what, **given):
        answer = curator.post(address, {"do": what} | given, follow=True)
        return flat(answer)

    parent = ""
    for name in ("Seeing", "Colour", "Red", "Crimson"):
        do("add", name=name, parent=parent)
        parent = str(benchmark.capabilities.get(name=name).pk)
    node = {row.name: str(row.pk) for row in benchmark.capabilities.all()}
    assert paths(benchmark)[-1] == "Seeing / Colour / Red / Crimson"
    do("rename", node=node["Colour"], name="Hue")
    assert paths(benchmark)[-1] == "Seeing / Hue / Red / Crimson"
    assert "cannot move below itself" in do("move", node=node["Seeing"], parent=node["Crimson"])
    do("move", node=node["Red"], parent="")
    assert paths(benchmark) == ["Seeing", "Seeing / Hue", "Red", "Red / Crimson"]
    do("up", node=node["Red"])
    assert paths(benchmark)[0] == "Red"
    assert "already exists" in do("add", name="Hue", parent=node["Seeing"])
    assert "cannot contain a slash" in do("add", name="a / b")
    sample = Sample.objects.create(benchmark=benchmark, key="s", instruction="?", capability_id=int(node["Crimson"]))
    assert "has samples" in do("delete", node=node["Crimson"])
    assert "below it" in do("delete", node=node["Seeing"])
    do("add", name="Crimson", parent=node["Seeing"])
    do("merge", node=node["Red"], into=node["Seeing"])
    sample.refresh_from_db()
    assert sample.capability.path == "Seeing / Crimson"
    assert paths(benchmark) == ["Seeing", "Seeing / Hue", "Seeing / Crimson"]
    do("delete", node=node["Colour"])
    assert paths(benchmark) == ["Seeing", "Seeing / Crimson"]


def test_rounds_hand_samples_out_evenly_and_nobody_gets_their_own(people):
    benchmark = make_benchmark(slug="birds", title="Birds")
    third = User.objects.create_user("third", role="curator")
    staff = [people["curator"], people["administrator"], third]
    for number in range(12):
        written(staff[number % 3], benchmark, f"s{number}")
    made = open_round(by=third, benchmark=benchmark, samples=list(benchmark.samples.all()), reviewers=staff)
    reviews = list(made.reviews.select_related("sample"))
    assert {review.sample.status for review in reviews} == {"review"}
    assert all(review.reviewer_id != review.sample.author_id for review in reviews)
    counts = [sum(review.reviewer_id == person.pk for review in reviews) for person in staff]
    assert counts == [4, 4, 4]
    with pytest.raises(BadInput, match="no drafts"):
        open_round(by=third, benchmark=benchmark, samples=list(benchmark.samples.all()), reviewers=staff)
    own = written(third, benchmark, "own")
    with pytest.raises(BadInput, match="may not review it"):
        open_round(by=third, benchmark=benchmark, samples=[own], reviewers=[third])
    with pytest.raises(BadInput, match="curators or administrators"):
        open_round(by=third, benchmark=benchmark, samples=[own], reviewers=[people["annotator"]])


@pytest.fixture
def round_of_four(people):
    """Four samples by the curator, under review by the administrator."""
    benchmark = make_benchmark(slug="birds", title="Birds")
    for key in ("a", "b", "c", "d"):
        written(people["curator"], benchmark, key)
    samples = list(benchmark.samples.all())
    made = open_round(by=people["curator"], benchmark=benchmark, samples=samples, reviewers=[people["administrator"]])
    return made


def test_verdicts_send_samples_their_ways_and_the_round_counts_what_was_revised(round_of_four, people, curator):
    admin = people["administrator"]
    given = {"a": ("fine", FINE), "b": ("revise", FLAWED), "c": ("reject", FLAWED), "d": ("fine", FINE)}
    for review in round_of_four.reviews.select_related("sample"):
        verdict, points = given[review.sample.key]
        give_review(review=review, by=admin, verdict=verdict, points=points)
    benchmark = round_of_four.benchmark
    assert dict(benchmark.samples.values_list("key", "status")) == {
        "a": "expert",
        "b": "draft",
        "c": "rejected",
        "d": "expert",
    }
    sent = benchmark.samples.get(key="b")
    assert sent.status_reason == "Image clarity: Too dark."
    waiting = flat(curator.get(f"/bank/benchmarks/{benchmark}/"))
    assert "1 draft waits for a review round, 2 samples for an expert's check" in waiting
    line, counts = rounds_of(benchmark)[0]
    assert [counts[name] for name in ("fine", "revise", "revised", "reject", "waiting")] == [2, 1, 0, 1, 0]
    assert line.closed_at is not None
    assert "Too dark" in flat(curator.get("/bank/reviews/"))
    change = form(key="b", edition=str(sent.edition), instruction="Brighter now?", **{"c0-key": "1", "c1-text": ""})
    assert curator.post(f"/bank/samples/{sent.pk}/edit/", change).status_code == 302
    assert rounds_of(benchmark)[0][1]["revised"] == 1
    page = flat(curator.get(f"/bank/benchmarks/{benchmark}/reviews/"))
    assert '<svg class="vp"' in page
    assert "Too dark" not in flat(curator.get("/bank/reviews/"))
    expert = benchmark.samples.get(key="a")
    with pytest.raises(BadInput, match="somebody else has to check"):
        decide(sample=expert, by=people["curator"], decision="approve")
    with pytest.raises(BadInput, match="Say why"):
        decide(sample=expert, by=admin, decision="reject")
    decide(sample=expert, by=admin, decision="revise", reason="Name the bird.")
    assert "Name the bird." in flat(curator.get("/bank/reviews/"))
    Sample.objects.filter(pk=expert.pk).update(status="expert")
    decide(sample=expert, by=admin, decision="approve")
    decide(sample=benchmark.samples.get(key="d"), by=admin, decision="reject", reason="Twice in the set.")
    assert benchmark.samples.get(key="a").status == "approved"
    last = benchmark.samples.get(key="d")
    assert (last.status, last.status_reason) == ("rejected", "Twice in the set.")
    assert last.revisions.first().changes == {"status": ["expert", "rejected"]}


@pytest.mark.parametrize(
    ("said", "reads"),
    [("Too dark", "Too dark."), ("Which row?", "Which row?"), ("Brighter, please.", "Brighter, please."), ("", None)],
)
def test_what_a_reviewer_said_reads_as_sentences(said, reads, round_of_four, people):
    review = round_of_four.reviews.first()
    points = FLAWED | {"clarity": {"ok": False, "note": said}}
    give_review(review=review, by=people["administrator"], verdict="revise", points=points, note="See to it.")
    review.sample.refresh_from_db()
    first = f"Image clarity: {reads}" if reads else "Image clarity."
    assert review.sample.status_reason == f"{first} See to it."


def test_a_review_must_be_ones_own_and_hang_together(round_of_four, people, client_of):
    review = round_of_four.reviews.first()
    with pytest.raises(BadInput, match="belongs to somebody else"):
        give_review(review=review, by=people["curator"], verdict="fine", points=FINE)
    with pytest.raises(BadInput, match="not fine"):
        give_review(review=review, by=people["administrator"], verdict="fine", points=FLAWED)
    with pytest.raises(BadInput, match="Missing: Data currency"):
        give_review(review=review, by=people["administrator"], verdict="fine", points={})
    with pytest.raises(BadInput, match="what needs to change"):
        give_review(review=review, by=people["administrator"], verdict="revise", points=FINE)
    assert client_of("curator").get(f"/bank/reviews/{review.pk}/").status_code == 404
    admin = client_of("administrator")
    page = flat(admin.get(f"/bank/reviews/{review.pk}/"))
    assert "1 of 4" in page
    assert "Knows a." in page
    assert CriteriaAccess.objects.filter(who=people["administrator"], how="review").count() == 1
    sent = admin.post(f"/bank/reviews/{review.pk}/", dict.fromkeys(GUIDELINE, "ok") | {"verdict": "fine"})
    following = round_of_four.reviews.exclude(pk=review.pk).order_by("pk").first()
    assert sent.headers["Location"] == f"/bank/reviews/{following.pk}/"
    with pytest.raises(BadInput, match="already"):
        give_review(review=review, by=people["administrator"], verdict="fine", points=FINE)


def test_a_round_closed_early_gives_unread_samples_back(round_of_four, people):
    first = round_of_four.reviews.first()
    give_review(review=first, by=people["administrator"], verdict="fine", points=FINE)
    assert close_round(round=round_of_four, by=people["curator"]) == 3
    statuses = sorted(round_of_four.benchmark.samples.values_list("status", flat=True))
    assert statuses == ["draft", "draft", "draft", "expert"]
    assert not SampleReview.objects.filter(verdict="").exists()


def test_two_reviewers_must_both_find_it_fine(people):
    benchmark = make_benchmark(slug="birds", title="Birds")
    sample = written(people["curator"], benchmark, "a")
    others = [people["administrator"], User.objects.create_user("third", role="curator")]
    made = open_round(by=others[0], benchmark=benchmark, samples=[sample], reviewers=others, per_sample=2)
    first, second = made.reviews.select_related("reviewer")
    give_review(review=first, by=first.reviewer, verdict="fine", points=FINE)
    sample.refresh_from_db()
    assert sample.status == "review"
    give_review(review=second, by=second.reviewer, verdict="revise", points=FLAWED)
    sample.refresh_from_db()
    assert sample.status == "draft"


@pytest.fixture
def long(small):
    """120 samples in one benchmark, in three splits, one of them rare."""
    rows = [
        Sample(
            benchmark=small,
            key=f"n{n}",
            instruction=f"Number {n}, ÄRGER" if n % 2 else f"number {n}",
            split="rare" if n in (5, 77) else ("dev" if n % 3 else "test"),
            position=n + 10,
            quality_hints=8 * (n % 10 == 0),
        )
        for n in range(120)
    ]
    Sample.objects.bulk_create(rows)
    return small


def walk(benchmark, chosen):
    """Every key, page by page, forwards; and backwards again from the end."""
    pages, after = [], ""
    while True:
        listing = list_samples(benchmark, chosen, after=after)
        pages.append([sample.key for sample in listing.rows])
        if not listing.after:
            break
        after = listing.after
    back, before = [pages[-1]], listing.before
    while before:
        listing = list_samples(benchmark, chosen, before=before)
        back.insert(0, [sample.key for sample in listing.rows])
        before = listing.before
    return pages, back


@pytest.mark.parametrize(
    "chosen",
    [
        Filter(),
        Filter(split="dev"),
        Filter(split="rare"),
        Filter(hint="any"),
        Filter(text="number"),
        Filter(level="Perception"),
    ],
)
def test_pages_show_every_sample_once_in_order_both_ways(chosen, long):
    pages, back = walk(long, chosen)
    keys = [key for page in pages for key in page]
    expected = [s.key for s in long.samples.order_by("position", "pk") if _passes(s, chosen)]
    assert keys == expected
    assert back == pages
    assert list_samples(long, chosen).total == len(expected)


@pytest.mark.parametrize("text", ["number", "number 1", "number 11"])
def test_a_text_that_very_many_hold_is_shown_in_order_both_ways(text, long, monkeypatch):
    monkeypatch.setattr("bank.samples.listing.MOST_COUNTED", 5)
    monkeypatch.setattr("bank.samples.listing.STRETCH", 7)
    pages, back = walk(long, Filter(text=text))
    expected = [s.key for s in long.samples.order_by("position", "pk") if _passes(s, Filter(text=text))]
    assert [key for page in pages for key in page] == expected
    assert len(expected) > 5
    assert back == pages
    listing = list_samples(long, Filter(text=text))
    assert (listing.total, listing.capped) == (5, True)


def _passes(sample, chosen):
    return (
        (not chosen.split or sample.split == chosen.split)
        and (not chosen.hint or sample.quality_hints > 0)
        and (not chosen.text or chosen.text in sample.instruction.lower())
        and (not chosen.level or (sample.capability and sample.capability.level == chosen.level))
    )


def test_a_facet_counts_what_choosing_it_would_show(long):
    listing = list_samples(long, Filter(split="dev"))
    facets = {facet.name: {value: n for value, _, n in facet.values} for facet in listing.facets}
    assert facets["split"] == {"dev": 78, "rare": 2, "test": 40}
    assert facets["hint"]["no-criteria"] == long.samples.filter(split="dev", quality_hints__gt=0).count()


def test_a_search_never_looks_into_criteria(long, curator):
    assert "No sample matches" in flat(curator.get(f"/bank/benchmarks/{long}/?q=Three+boats"))
    assert "How many boats?" in flat(curator.get(f"/bank/benchmarks/{long}/?q=MANY+boats"))
    assert list_samples(long, Filter(text="umber 7, ÄRGER")).total == 1
    assert list_samples(long, Filter(text="100%")).total == list_samples(long, Filter(text="n_mber")).total == 0
    assert [sample.key for sample in list_samples(long, Filter(text="n33")).rows] == ["n33"]


def test_counts_follow_what_is_added(small):
    first = summary_of(small)
    assert (first.samples, first.models, first.responses) == (2, 3, 6)
    model = small.samples.first().responses.first().model
    Response.objects.create(sample=small.samples.first(), model=model, variant="x", text="!")
    assert summary_of(Benchmark.objects.get(pk=small.pk)).responses == 7


@pytest.mark.parametrize("shape", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("what", ["samples", "responses", "items", "labels", "judgments"])
def test_a_download_is_what_the_command_writes(what, shape, small, curator, manage, folder, tmp_path):
    manage("make_items", "pair", "--benchmark", "small")
    verdicts_on(small, folder, manage)
    answer = curator.post(f"/bank/benchmarks/{small}/export/", {"what": what, "shape": shape})
    body = b"".join(answer.streaming_content)
    path = tmp_path / f"out.{shape}"
    assert manage("export", what, "--benchmark", "small", "--format", shape, "--output", path)[0] == 0
    assert body == path.read_bytes()
    assert answer.headers["Content-Disposition"] == f'attachment; filename="small-1-{what}.{shape}"'
    assert b"Three boats" not in body
    assert body


def verdicts_on(small, folder, manage):
    """A label of Ada Lovelace, and a judgment whose analysis quotes a criterion."""
    pair = {"kind": "pair", "sample": "a", "responses": ["m1", "m2"], "choice": "first"}
    told = pair | {"judge": "j", "analysis": "It says: Three boats.", "raw": "Three boats. First."}
    for what, row in (("labels", pair | {"annotator": "Ada Lovelace"}), ("judgments", told)):
        assert manage(f"import_{what}", "generic", folder(what, [row]), "--benchmark", str(small))[0] == 0


def test_what_judges_wrote_leaves_the_page_only_with_a_reason_and_is_logged(small, curator, people, folder, manage):
    verdicts_on(small, folder, manage)
    address = f"/bank/benchmarks/{small}/export/"
    given = {"what": "judgments", "shape": "jsonl"}
    assert b"Three boats" not in b"".join(curator.post(address, given).streaming_content)
    assert "only with a reason" in flat(curator.post(address, given | {"analyses": "on"}))
    assert not CriteriaAccess.objects.exists()
    answer = curator.post(address, given | {"analyses": "on", "reason": "a look at the judge"})
    assert json.loads(b"".join(answer.streaming_content))["raw"] == "Three boats. First."
    log = CriteriaAccess.objects.get()
    assert (log.who, log.how, log.reason) == (people["curator"], "export of analyses", "a look at the judge")
    assert log.sample_ids == [small.samples.get(key="a").pk]


def test_annotators_leave_the_page_by_pseudonym_unless_names_are_asked_for(small, curator, folder, manage):
    verdicts_on(small, folder, manage)
    address, given = f"/bank/benchmarks/{small}/export/", {"what": "labels", "shape": "jsonl"}
    assert b"Lovelace" not in b"".join(curator.post(address, given).streaming_content)
    assert b"Ada Lovelace" in b"".join(curator.post(address, given | {"names": "on"}).streaming_content)
    assert "That belongs to labels" in flat(curator.post(address, given | {"what": "items", "names": "on"}))


def test_criteria_leave_only_with_a_reason_and_every_reading_is_logged(small, curator, people):
    address = f"/bank/benchmarks/{small}/export/"
    given = {"what": "samples", "shape": "jsonl", "criteria": "on"}
    assert "it goes out only with a reason" in flat(curator.post(address, given))
    assert "That belongs to samples" in flat(curator.post(address, given | {"what": "items"}))
    assert not CriteriaAccess.objects.exists()
    answer = curator.post(address, given | {"reason": "backup"})
    body = b"".join(answer.streaming_content)
    log = CriteriaAccess.objects.get()
    assert (log.who, log.how, log.reason, log.sample_count) == (people["curator"], "export", "backup", 2)
    rows = [json.loads(line) for line in io.BytesIO(body)]
    assert rows[0]["criteria"][0]["text"] == "Three boats."
    assert answer.headers["Cache-Control"] == "no-store"


def test_up_to_four_models_stand_side_by_side_as_the_address_says(small, curator):
    sample = small.samples.get(key="a")
    ids = dict(sample.responses.values_list("model__name", "model_id"))
    page = flat(curator.get(f"/bank/samples/{sample.pk}/?model={ids['m3']}&model={ids['m1']}"))
    assert "m3 on a" in page
    assert "m1 on a" in page
    assert "m2 on a" not in page
    assert f"model={ids['m3']}" in page  # and goes along to the next sample


def test_an_edit_while_the_form_was_open_is_stale_for_the_action_too(people):
    benchmark = make_benchmark(slug="birds", title="Birds")
    sample = written(people["curator"], benchmark, "a")
    with pytest.raises(Stale):
        save_sample(
            by=people["curator"],
            benchmark=benchmark,
            sample=sample,
            edition=sample.edition - 1,
            fields={},
            capability=None,
            pictures=[],
            criteria=[],
        )
