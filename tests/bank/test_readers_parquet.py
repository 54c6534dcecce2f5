"""Parquet as the Hugging Face Hub has it: pictures as structs of bytes and path, one table in several files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bank.intake import formats
from bank.intake.formats import answers, generic, pairs
from bank.intake.formats.reading import BadFile, first_names, kind_of, rows
from bank.intake.imports.sources import inspect
from bank.models import SampleImage
from tests.bank.conftest import picture
from tests.bank.test_formats import ANSWERS, PAIRS, read

SEEN = {"bytes": picture(), "path": "a.png"}
SAMPLE = {"key": "a", "instruction": "What is it?", "images": SEEN}


@pytest.fixture
def hub(tmp_path):
    """Writes lists of rows as the parts of one table, below ``data``."""

    def make(*parts):
        (tmp_path / "hub" / "data").mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(parts):
            path = tmp_path / "hub" / "data" / f"train-{number:05}-of-{len(parts):05}.parquet"
            pq.write_table(pa.Table.from_pylist(part), path)
        (tmp_path / "hub" / "README.md").write_text("A data set.")
        return tmp_path / "hub"

    return make


@pytest.mark.parametrize(
    ("module", "row"),
    [
        (pairs, PAIRS | {"image": SEEN}),
        (pairs, PAIRS | {"images": [SEEN, SEEN]}),
        (answers, ANSWERS | {"images": [SEEN]}),
        (generic, SAMPLE),
        (generic, SAMPLE | {"images": [SEEN, SEEN]}),
    ],
)
def test_pictures_of_the_hub_come_in_by_every_table_of_ours(module, row, hub):
    folder = hub([row])
    for path in (folder, next(folder.glob("data/*"))):
        assert formats.find("auto", path) is module
        samples, bad, _ = read(module.samples, path)
        assert bad == []
        several = isinstance(row.get("images"), list) and len(row["images"]) > 1
        assert [image.data for image in samples[0].images] == [picture()] * (2 if several else 1)


@pytest.mark.parametrize(
    ("options", "answer", "letter"),
    [
        (["a dog", "a cat"], "a cat", "B"),
        (["a dog", "a cat"], "A", "A"),
        (["B", "A"], "A", "A"),  # a letter is the option's, not its text
        ({"C": "a dog", "D": "a cat"}, "a dog", "C"),
    ],
)
def test_listed_options_have_letters_and_an_answer_may_be_the_text_of_one(options, answer, letter, hub):
    samples, bad, _ = read(generic.samples, hub([SAMPLE | {"options": options, "answer": answer}]))
    assert bad == []
    assert list(samples[0].options.values()) == list(options.values() if isinstance(options, dict) else options)
    assert samples[0].answer == letter


@pytest.mark.parametrize(("options", "answer"), [(["a dog", "a dog"], "a dog"), (["a dog"] * 27, "A")])
def test_options_that_letters_cannot_tell_apart_are_refused(options, answer, hub):
    samples, bad, _ = read(generic.samples, hub([SAMPLE | {"options": options, "answer": answer}]))
    assert (samples, len(bad)) == ([], 1)


def test_files_of_one_table_are_read_as_one(hub, twice):
    folder = hub(*([PAIRS | {"id": number, "image": SEEN}] for number in range(3)))
    assert (kind_of(folder), first_names(folder)) == ("parquet", {*PAIRS, "image"})
    assert inspect(folder).parts == ("samples", "responses", "labels")
    assert [row.where.file for row in rows(folder)] == [f"train-0000{number}-of-00003.parquet" for number in range(3)]
    assert twice(folder) == [3, 6, 3]
    assert SampleImage.objects.count() == 3


def test_a_picture_without_bytes_is_one_by_its_path(hub):
    (sample,), bad, _ = read(generic.samples, hub([SAMPLE | {"images": [SEEN | {"bytes": None}]}]))
    assert ([(image.file, image.required) for image in sample.images], bad) == ([("a.png", False)], [])


def test_a_picture_of_nothing_is_told(hub):
    nothing = {"bytes": None, "path": None}
    assert (
        "images.0: names neither a file nor an address"
        in read(generic.samples, hub([SAMPLE, SAMPLE | {"images": nothing}]))[1][0]
    )
    told = "train-00000-of-00001.parquet, record 0: image: is neither a path, an address nor a picture"
    assert read(pairs.samples, hub([PAIRS | {"image": nothing}]))[1] == [told]


def test_tables_with_other_columns_are_not_one(hub):
    folder = hub([PAIRS], [ANSWERS])
    with pytest.raises(BadFile, match="not one table in several Parquet files"):
        rows(folder)
    with pytest.raises(BadFile, match="is in no format known here"):
        formats.find("auto", folder)


def test_our_own_folder_for_the_hub_comes_back_with_its_pictures(hub, manage, tmp_path, twice):
    assert twice(hub([PAIRS | {"image": SEEN}])) == [1, 2, 1]
    out = tmp_path / "out"
    assert manage("export", "all", "--benchmark", "b", "--format", "huggingface", "--output", out)[0] == 0
    assert formats.find("auto", out) is generic
    assert inspect(out).parts == ("samples", "responses", "labels")
    samples, bad, _ = read(generic.samples, out)
    assert (len(samples[0].images), bad) == (1, [])


def test_rows_heavy_with_pictures_are_held_a_few_at_a_time(hub, monkeypatch):
    held = []
    monkeypatch.setattr("bank.intake.formats.reading.HEAVY", 1000)
    original = pq.ParquetFile.iter_batches

    def watched(self, batch_size, **more):
        held.append(batch_size)
        return original(self, batch_size=batch_size, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    list(rows(hub([PAIRS | {"image": {"bytes": bytes([n]) * 900, "path": "a"}} for n in range(40)])))
    assert held[0] < 40
