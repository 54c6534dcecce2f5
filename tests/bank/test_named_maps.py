"""Files of tools that need no code: read by a map with a name, in the shapes that the tools write."""

import json

import pytest

from bank.intake import formats
from bank.intake.formats.reading import BadFile
from bank.intake.imports.sources import inspect
from tests.bank.test_formats import read

# As `promptfoo eval -o out.json` writes it.
PROMPTFOO = {
    "evalId": "eval-x",
    "results": {
        "version": 3,
        "prompts": [{"raw": "Is {{n}} even?", "provider": "openai:a"}],
        "results": [
            {
                "prompt": {"raw": "Is 2 even?", "label": "Is {{n}} even?"},
                "vars": {"n": 2},
                "provider": {"id": f"openai:{name}", "label": ""},
                "response": {"output": said, "tokenUsage": {"total": 9}},
                "success": score == 1,
                "score": score,
                "gradingResult": {"pass": score == 1, "score": score, "reason": "All assertions passed"},
            }
            for name, said, score in (("a", "Yes.", 1), ("b", "No.", 0))
        ],
    },
}
# As HELM's scenario_state.json.
HELM = {
    "adapter_spec": {"method": "generation"},
    "request_states": [
        {
            "instance": {"input": {"text": "Name a fish."}, "references": [], "split": "test", "id": "id7"},
            "request": {"model": "openai/gpt-x", "prompt": "..."},
            "result": {"success": True, "completions": [{"text": "A cod.", "logprob": 0}]},
        }
    ],
}
LANGFUSE = [
    {
        "id": "s1",
        "traceId": "t1",
        "name": "helpful",
        "value": "0.9",
        "input": "Hi?",
        "output": "Hello.",
        "comment": "ok",
    }
]


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("promptfoo", PROMPTFOO, ("samples", "responses", "judgments")),
        ("helm", HELM, ("samples", "responses")),
        ("langfuse", LANGFUSE, ("samples", "responses", "judgments")),
    ],
)
def test_a_tools_file_is_known_and_holds_what_it_says(name, content, parts, tmp_path):
    path = tmp_path / "out.json"
    path.write_text(json.dumps(content, indent=2))
    assert [module.NAME for module in formats.MODULES.values() if module.recognises(path)] == [name]
    assert inspect(path).parts == parts


def test_the_answers_and_scores_of_promptfoo_come_in(tmp_path):
    path = tmp_path / "out.json"
    path.write_text(json.dumps(PROMPTFOO, indent=2))
    found = formats.MODULES["promptfoo"]
    responses, bad, _ = read(formats.reader(found, "responses"), path)
    assert [(r.model, r.text) for r in responses] == [("openai:a", "Yes."), ("openai:b", "No.")]
    judgments, also, _ = read(formats.reader(found, "judgments"), path)
    assert [(j.judge, j.score, j.analysis) for j in judgments] == [
        ("promptfoo", 1.0, "All assertions passed"),
        ("promptfoo", 0.0, "All assertions passed"),
    ]
    assert bad == also == []


def test_a_json_object_without_rows_is_told(tmp_path):
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"a": {"b": [1, 2]}}, indent=2))
    with pytest.raises(BadFile, match="without a list of objects"):
        list(formats.reader(formats.MODULES["generic"], "samples")(path))
