"""The released data sets come in with the counts that their descriptions give."""

import json
from collections import Counter

import pytest

from annotations.models import Annotator, Label
from bank.criteria import Criterion
from bank.intake.formats import mia_bench
from bank.intake.formats.reading import Problem
from bank.models import Benchmark, Capability, Item, Response, Sample, SampleImage
from judging.models import Judgment, Run

pytestmark = pytest.mark.django_db


def test_mllm_bench_comes_in_whole(shared_data, manage, media):
    target = ("--benchmark", "mllm-bench")
    status, out, err = manage("import_benchmark", "auto", shared_data / "mllm-bench", *target, "--public")
    assert status == 0
    assert "420 samples, 407 images, 1,049 criteria" in out
    assert err.count("the picture is missing") == 13
    assert "sample 395: holds an address" in err
    benchmark = Benchmark.objects.get()
    assert (benchmark.anchor.name, benchmark.majority) == ("llava-v1.5-13b", "mllm-bench")
    # data/README.md: 1: 49 samples, 2: 115, 3: 254, 4: 2.
    per_sample = Counter(Criterion.unguarded.values_list("sample", flat=True))
    assert Counter(per_sample.values()) == {1: 49, 2: 115, 3: 254, 4: 2}
    levels = Counter(sample.capability.level for sample in benchmark.samples.select_related("capability"))
    assert list(levels.values()) == [70, 110, 60, 100, 40, 40]
    assert benchmark.capabilities.exclude(parent=None).count() == 42
    assert SampleImage.objects.filter(kind="jpg").count() == 407

    assert manage("import_responses", "auto", shared_data / "mllm-bench", *target)[0] == 0
    statuses = Counter(Response.objects.exclude(status="ok").values_list("model__name", "status"))
    assert statuses == {("gpt-4-1106-vision-preview", "filtered"): 4, ("gemini-1.5-flash-002", "empty"): 1}
    assert Response.objects.count() == 9 * 420

    status, out, _ = manage("import_judgments", "auto", shared_data / "mllm-bench", *target)
    assert (status, "2,520 items, 1 run, 5,040 judgments" in out) == (0, True)
    assert Run.objects.get().judge.name == "gpt-4-turbo-2024-04-09"
    assert Counter(Judgment.objects.values_list("status", flat=True)) == {"ok": 5040}
    assert Counter(Judgment.objects.values_list("order", flat=True)) == {"01": 2520, "10": 2520}
    votes = (shared_data / "mllm-bench" / "votes").glob("*.gz")
    assert "Made nothing new; 840 were there already" in manage("import_judgments", "auto", next(votes), *target)[1]
    # Canonical order is candidate, then anchor.
    last = set(Item.objects.filter(places__position=1).values_list("places__response__model__name", "places__position"))
    assert {name for name, position in last if position == 1} == {"llava-v1.5-13b"}


def test_llmfao_comes_in_whole(llmfao_folder, manage, media):
    folder, target = llmfao_folder, ("--benchmark", "llmfao")
    assert manage("import_benchmark", "auto", folder, *target, "--public")[0] == 0
    assert manage("import_responses", "auto", folder, *target)[0] == 0
    assert Response.objects.filter(status="empty").count() == 69
    status, out, _ = manage("import_labels", "auto", folder / "crowd-comparisons.csv", *target, "--saw-nothing")
    assert (status, "2,139 items, 1 campaign, 124 annotators, 8,931 labels" in out) == (0, True)
    assert Counter(Label.objects.values_list("choice", flat=True)) == {"tie": 3471, "first": 2911, "second": 2549}
    assert Annotator.objects.count() == 124
    for judge in ("gpt3", "gpt4"):
        path = folder / f"{judge}-crowd-comparisons.csv"
        assert "1 run, 2,139 judgments" in manage("import_judgments", "auto", path, *target)[1]
    assert Item.objects.count() == 2139
    gpt4 = Judgment.objects.filter(run__judge__name="gpt4")
    assert Counter(gpt4.values_list("choice", flat=True)) == {"first": 943, "second": 1130, "tie": 66}


def test_mmbench_comes_in_whole(shared_data, manage, media):
    folder, target = shared_data / "mmbench", ("--benchmark", "mmbench")
    status, out, err = manage("import_benchmark", "auto", folder, *target, "--public")
    assert (status, err) == (0, "")
    assert "54 samples, 54 images, 54 criteria" in out
    counts = Counter(Sample.objects.values_list("source", "language"))
    assert counts == {("MMBench", "en"): 20, ("MMBench", "zh"): 20, ("CCBench", "zh"): 14}
    assert len(set(SampleImage.objects.values_list("sha256", flat=True))) == 34
    assert Counter(len(options) for options in Sample.objects.values_list("options", flat=True)) == {4: 50, 3: 4}
    assert set(Criterion.unguarded.values_list("kind", "shown_to")) == {("answer_key", "staff")}
    assert Counter(c.text for c in Criterion.unguarded.all()) == {"A": 15, "B": 23, "C": 7, "D": 9}
    # The paper's 20 leaves under two levels, and seven categories of CCBench.
    leaves = Capability.objects.filter(children=None)
    assert Counter(leaf.path.count(" / ") for leaf in leaves) == {2: 20, 0: 7}
    assert set(Capability.objects.filter(parent=None, children__gt=0).values_list("name", flat=True)) == {
        "Perception",
        "Reasoning",
    }
    assert (
        "Made nothing new; 54 were there already" in manage("import_benchmark", "auto", folder, *target, "--public")[1]
    )


def test_mia_bench_comes_in_whole(shared_data, manage, media):
    folder, target = shared_data / "mia-bench", ("--benchmark", "mia-bench")
    status, out, _ = manage("import_benchmark", "auto", folder, *target, "--public")
    assert (status, "400 samples, 1,038 criteria" in out) == (0, True)
    assert set(Criterion.unguarded.values_list("kind", "shown_to")) == {("component", "public")}
    assert Counter(row.category for row in Criterion.unguarded.all()) == {
        "describe": 311,
        "mention": 221,
        "length_limit": 213,
        "linguistics": 140,
        "grammar": 72,
        "textual": 40,
        "math": 31,
        "perspective": 10,
    }
    assert sum(row.weight for row in Criterion.unguarded.all()) == 3996
    warnings = [p for p in mia_bench.samples(folder) if isinstance(p, Problem)]
    weights = [p for p in warnings if p.field == "component_weight"]
    assert {p.where.record: p.reason for p in weights} == {
        241: "4, 2, 2 sum to 8, not 10; kept as they are",
        247: "4, 4 sum to 8, not 10; kept as they are",
    }
    assert Counter(p.field for p in warnings)["component_type"] == 22
    assert [p.where.record for p in warnings if p.field == "instruction"] == [133, 262]
    assert [p.where.record for p in warnings if p.field == "image"] == [193]  # no http:// before it
    absent = Sample.objects.values_list("absent_images", flat=True)
    assert all(image["url"] for (image,) in absent)
    answers = ("import_responses", "auto", folder / "example_inference_result.jsonl", *target)
    status, _, err = manage(*answers)
    assert (status, "name it with --model" in err) == (1, True)
    assert "1 model, 1 response" in manage(*answers, "--model", "some-model")[1]
    assert Response.objects.get().sample.key == "0"
    assert (
        "Made nothing new; 400 were there already" in manage("import_benchmark", "auto", folder, *target, "--public")[1]
    )


def test_pope_comes_in_whole(shared_data, manage, media):
    folder, target = shared_data / "pope", ("--benchmark", "pope")
    status, out, err = manage("import_benchmark", "auto", folder, *target, "--public")
    assert (status, "8,910 samples, 8,910 criteria" in out) == (0, True)
    assert "coco_pope_random.json, line 2910: [ before the first line" in err
    subsets = Counter(key.split("-")[0] for key in Sample.objects.values_list("key", flat=True))
    assert subsets == {"random": 2910, "popular": 3000, "adversarial": 3000}
    assert len(set(Sample.objects.values_list("group", flat=True))) == 500
    keys = Counter((c.sample.key.split("-")[0], c.text) for c in Criterion.unguarded.select_related("sample"))
    assert keys == {(subset, "yes"): 1500 for subset in subsets} | {
        ("random", "no"): 1410,
        ("popular", "no"): 1500,
        ("adversarial", "no"): 1500,
    }
    again = manage("import_benchmark", "auto", folder / "coco_pope_random.json", *target, "--public")
    assert "Made nothing new; 2,910 were there already" in again[1]


def test_the_alt_test_data_comes_in_whole(shared_data, manage, media):
    folder, target = shared_data / "alt-test-lesion", ("--benchmark", "alt-test")
    assert "500 samples, 500 images" in manage("import_benchmark", "auto", folder, *target, "--public")[1]
    assert len(set(SampleImage.objects.values_list("sha256", flat=True))) == 100
    features = Counter(Sample.objects.values_list("source", flat=True))
    assert features == dict.fromkeys(("Asymmetry", "Blue", "Border", "Color", "Dermo"), 100)
    assert len(set(Sample.objects.values_list("group", flat=True))) == 100
    assert [step["value"] for step in Benchmark.objects.get().score_scale] == [0, 1, 2, 3, 4, 5, 6]
    assert "500 items, 1 campaign, 6 annotators, 2,980 labels" in manage("import_labels", "auto", folder, *target)[1]
    by_person = Counter(Label.objects.values_list("annotator__name", flat=True))
    assert by_person == {f"student_{n}": 500 for n in (1, 2, 5)} | {
        "student_3": 488,
        "student_4": 499,
        "student_6": 493,
    }
    assert "4 runs, 2,000 judgments" in manage("import_judgments", "auto", folder, *target)[1]
    assert set(Item.objects.values_list("kind", "places")) == {("score", None)}
    table = json.loads((folder / "human_annotations.json").read_text())
    stored = Label.objects.values_list("annotator__name", "item__sample__key", "score")
    assert {(by, key): score for by, key, score in stored} == {
        (by, key): score for by, scores in table.items() for key, score in scores.items()
    }


def test_mllm_as_a_judge_comes_in_whole(shared_data, manage, media):
    folder, target = shared_data / "mllm-as-a-judge", ("--benchmark", "mllm-as-a-judge")
    assert "4 samples" in manage("import_benchmark", "auto", folder, *target, "--public")[1]
    assert Counter(Sample.objects.values_list("source", flat=True)) == {"mm-vet": 3, "coco": 1}
    assert "5 models, 10 responses" in manage("import_responses", "auto", folder, *target)[1]
    assert "7 items, 1 campaign, 1 annotator, 7 labels" in manage("import_labels", "auto", folder, *target)[1]
    labels = Label.objects.order_by("item__kind", "pk").select_related("item")
    assert [label.score for label in labels if label.item.kind == "score"] == [5.0, 2.0, 3.0]
    assert [label.choice for label in labels if label.item.kind == "pair"] == ["tie", "first", "first"]
    (batch,) = (label for label in labels if label.item.kind == "batch")
    ranked = [batch.item.ordered_responses()[place].model.name for (place,) in batch.ranking]
    assert ranked == ["gpt4", "gemini", "cogvlm", "llava"]
