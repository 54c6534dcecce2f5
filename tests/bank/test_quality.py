"""Hints that are found by themselves."""

import io

import pytest
from PIL import Image, ImageDraw

import bank.criteria
from bank import images
from bank.criteria import CriteriaAccess
from bank.models import Sample
from bank.samples import quality
from bank.samples.quality import BY_NAME, gives_away, hints_for, hints_in, near_duplicates

pytestmark = pytest.mark.both_databases


def scene(*, size=(800, 600), shift=0, kind="PNG"):
    """Bytes of a drawing with a gradient, so that its hash tells something."""
    image = Image.linear_gradient("L").rotate(shift, expand=False).resize((800, 600)).convert("RGB")
    draw = ImageDraw.Draw(image)
    for step in range(6):
        x = (step * 97 + shift * 13) % 680
        draw.rectangle([x, 90 * step, x + 110, 90 * step + 70], fill=(40 * step, 255 - 40 * step, (90 * step) % 255))
    image = image.resize(size)
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize(
    ("shown", "references", "options", "said"),
    [
        ("Is the red lighthouse on the left?", [("exact_reference", "The red lighthouse")], {}, True),
        ("Is the red lighthouse on the left?", [("exact_reference", "red light")], {}, False),  # no whole words
        ("Is it blue?", [("guideline", "Is it blue?")], {}, False),  # a guideline may repeat the question
        ("Which one is it?", [("answer_key", "one")], {}, False),  # too short to tell anything
        ("Which? ABCD", [("answer_key", "ABCD")], {"ABCD": "this", "B": "that"}, False),  # an option's letter
        ("Say CAFÉ  Müller!", [("answer_key", "café müller")], {}, True),
    ],
)
def test_an_instruction_gives_the_answer_away_only_with_its_whole_words(shown, references, options, said):
    assert gives_away([shown], references, options) is said


def test_an_answer_is_not_put_together_from_two_texts():
    assert not gives_away(["Where is the red", "lighthouse now"], [("exact_reference", "red lighthouse")], {})


def test_the_short_edge_counts_from_512_pixels():
    given = {"shown": ["?"], "options": {}, "absent": False, "criteria": [("guideline", "x")]}
    assert hints_for(sizes=[(512, 2000)], **given) == 0
    assert [hint.name for hint in hints_in(hints_for(sizes=[(2000, 511)], **given))] == ["small"]
    assert [hint.name for hint in hints_in(hints_for(sizes=[], **given))] == ["no-image"]


def test_a_picture_that_is_named_but_not_stored_is_no_missing_one():
    mask = hints_for(shown=["?"], options={}, sizes=[], absent=True, criteria=[])
    assert [hint.name for hint in hints_in(mask)] == ["no-criteria"]


def test_smaller_and_recompressed_copies_look_alike_and_other_pictures_do_not(media):
    first = images.ingest(scene(), keep=False).phash
    copy = images.ingest(scene(size=(400, 300), kind="JPEG"), keep=False).phash
    other = images.ingest(scene(shift=7), keep=False).phash
    found = near_duplicates([(1, first, ""), (2, copy, ""), (3, other, "")])
    assert found == {1: {2}, 2: {1}}


def test_pictures_shared_on_purpose_or_plain_are_no_duplicates():
    same = "00ff13a0c7d15e22"
    assert near_duplicates([(1, same, "park"), (2, same, "park"), (3, same, "")]) == {1: {3}, 2: {3}, 3: {1, 2}}
    assert near_duplicates([(1, "0" * 16, ""), (2, "0" * 16, "")]) == {}


@pytest.mark.parametrize("bits", [0, 1, 5, 6])
def test_up_to_five_bits_may_differ_wherever_they_stand(bits):
    base = 0x0123456789ABCDEF
    spread = sum(1 << (place * 11 + 3) for place in range(bits)) if bits < 6 else sum(1 << (n * 10) for n in range(6))
    found = near_duplicates([(1, f"{base:016x}", ""), (2, f"{base ^ spread:016x}", "")])
    assert (found == {1: {2}, 2: {1}}) is (bits <= 5)


@pytest.fixture
def brought(folder, manage):
    """A benchmark with one sample of each fault, by the import command."""
    for name, data in (("a.png", scene()), ("b.jpg", scene(size=(640, 520), kind="JPEG")), ("c.png", scene(shift=7))):
        (folder.root / name).write_bytes(data)
    rows = [
        {"key": "a", "instruction": "What stands here?", "images": ["a.png"], "criteria": [{"text": "Names it."}]},
        {"key": "b", "instruction": "What lies here?", "images": ["b.jpg"], "criteria": [{"text": "Names it."}]},
        {"key": "c", "instruction": "Is it a grey heron?", "images": ["c.png"], "answer": "a grey heron"},
        {"key": "d", "instruction": "Write a poem."},
    ]
    assert manage("import_benchmark", "generic", folder("samples", rows), "--benchmark", "faulty", "--public")[0] == 0
    return Sample.objects.filter(benchmark__slug="faulty")


def named(samples):
    return {sample.key: {hint.name for hint in hints_in(sample.quality_hints)} for sample in samples}


def test_what_an_import_brings_has_its_hints_and_looking_again_finds_the_same(brought, people):
    expected = {"a": {"duplicate"}, "b": {"duplicate"}, "c": {"gives-away"}, "d": {"no-image", "no-criteria"}}
    assert named(brought.all()) == expected
    assert not CriteriaAccess.objects.exists()  # the file's own text was at hand
    brought.update(quality_hints=BY_NAME["small"].bit)
    benchmark = brought.first().benchmark
    counts = quality.check(benchmark=benchmark, user=people["curator"])
    assert named(brought.all()) == expected
    assert counts == {"no-image": 1, "small": 0, "duplicate": 2, "no-criteria": 1, "gives-away": 1}
    log = CriteriaAccess.objects.get()
    assert (log.who, log.how, log.sample_count) == (people["curator"], "quality", 4)


def test_the_sample_page_names_the_twin_and_the_list_filters_by_hint(brought, client_of):
    client = client_of("curator")
    page = client.get(f"/bank/samples/{brought.get(key='a').pk}/").content.decode()
    assert "near-duplicate" in page
    assert f'href="/bank/samples/{brought.get(key="b").pk}/"' in page
    rows = client.get("/bank/benchmarks/faulty/?hint=gives-away").content.decode()
    assert "grey heron?" in rows
    assert "Write a poem" not in rows
    assert bank.criteria.CriteriaAccess.objects.count() == 0
