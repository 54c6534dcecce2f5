"""Marks for the reasons that models gave by a recipe (ChEF, C.4), five each: of right conclusions, or of all answers
to see how marks go with being right (Figure 18b).
"""

from bank.models import Benchmark, Item, Response
from bank.models.items import ItemResponse, content_hash
from bank.recipes import marked_answers
from bank.recipes.spec import Spec
from judging import protocols
from judging.models import Evaluation, Judge, Run, RunItem
from judging.runs.actions import create_judging_run

PROTOCOL = "reasoning-quality"
MARKS_EACH = 5


def start_marks(evaluation: Evaluation, spec: Spec, benchmark: Benchmark, *, budget: float | None) -> Run | None:
    """The run in which the recipe's judge marks the reasons that have no marks, of right answers or of all; None if all
    have.

    To be called in a transaction that holds the evaluation.
    """
    frame = marked_answers.as_frame(evaluation.recipe, spec, benchmark, model=evaluation.model_name)
    answers = frame[(frame["condition"] == "") & (frame["repeat"] == 0)]
    if spec.marked == "right":
        answers = answers[answers["right"] == 1]
    if answers.empty:
        return None
    reasoning = next(at for at, turn in enumerate(spec.turns) if turn.kind == "cot")
    reasons = Response.all_objects.filter(
        recipe=evaluation.recipe,
        model__name=evaluation.model_name,
        sample__in=answers["sample"].tolist(),
        variant="",
        repeat=0,
        turn=reasoning,
    )
    marked = RunItem.objects.filter(run__recipe=evaluation.recipe, run__kind=Run.Kind.MARKS)
    reasons = reasons.exclude(pk__in=marked.values("item__places__response"))
    items = [_item(evaluation, response) for response in reasons.order_by("sample__position", "pk")]
    if not items:
        return None
    return create_judging_run(
        kind=Run.Kind.MARKS,
        judge=Judge.objects.get(name=spec.judge),
        benchmark=benchmark,
        recipe=evaluation.recipe,
        evaluation=evaluation,
        model_name=evaluation.model_name,
        protocol=PROTOCOL,
        settings=protocols.get(PROTOCOL).settings({"repeats": MARKS_EACH}),
        item_ids=[item.pk for item in items],
        budget=budget,
        by=evaluation.by,
    )


def _item(evaluation: Evaluation, response: Response) -> Item:
    """The item of one explanation: out of sight of boards, campaigns and other runs."""
    digest = content_hash(kind=Item.Kind.SCORE, sample_id=response.sample_id, response_ids=[response.pk])
    item, made = Item.all_objects.get_or_create(
        content_hash=digest,
        defaults={"kind": Item.Kind.SCORE, "sample_id": response.sample_id, "recipe": evaluation.recipe},
    )
    if made:
        ItemResponse.objects.create(item=item, position=0, response=response)
    return item
