"""Other tools' files whose rows say everything by their columns: a map each, see ``mapping``."""

from bank.intake.formats.mapping import ColumnMap, Mapped

# promptfoo: ``promptfoo eval -o results.json``; a row is an answer with the score of its assertions.
PROMPTFOO = Mapped(
    ColumnMap(
        shape="answers",
        columns={
            "prompt": "prompt.raw",
            "model": "provider.id",
            "response": "response.output",
            "score": "score",
            "comment": "gradingResult.reason",
        },
        constants={"judge": "promptfoo"},
    ),
    NAME="promptfoo",
    TITLE="promptfoo (results as JSON)",
)
# Langfuse: an export of traces with one score each, as CSV or JSON.
LANGFUSE = Mapped(
    ColumnMap(
        shape="answers",
        columns={"key": "traceId", "prompt": "input", "response": "output", "score": "value", "comment": "comment"},
        constants={"model": "traced", "judge": "langfuse"},
    ),
    NAME="langfuse",
    TITLE="Langfuse (scores with their traces)",
)
# HELM: ``scenario_state.json``; a row is an instance with the model's completion.
HELM = Mapped(
    ColumnMap(
        shape="answers",
        columns={
            "key": "instance.id",
            "prompt": "instance.input.text",
            "model": "request.model",
            "response": "result.completions.0.text",
        },
    ),
    NAME="helm",
    TITLE="HELM (scenario_state.json)",
)
MAPS = (PROMPTFOO, LANGFUSE, HELM)
