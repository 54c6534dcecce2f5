"""Evaluations: one model asked by one recipe over all its scenarios, and marked where its metric needs marks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from accounts.models import User
from bank.criteria import answer_keys
from bank.errors import BadInput
from bank.models import Benchmark, Recipe, Response, Sample, SampleImage
from bank.models.drafts import REWRITINGS
from bank.recipes import store
from bank.recipes.spec import OPTIONS, YES_NO, Nearest, Numbers, Scenario, Spec, Tree, Turn
from bank.samples import drafts
from judging.models import Evaluation, Judge, Run, RunTask
from judging.protocols import CannotAsk, prompts
from judging.protocols.prompts import checks
from judging.recipes import questions
from judging.runs import item_sets
from judging.runs.actions import ANEW, check_endpoint, create_task_run, lacking_all, retry_failed, tasks_hash
from judging.runs.estimates import REPLY_TOKENS, image_tokens, text_tokens
from judging.work.budget import price

PROTOCOL = "recipe"
ABILITIES = {
    "first-token": ("logprobs", "the log-probabilities of its first token"),
    "prompt": ("prompt_logprobs", "the likelihood of an answer it is given"),
}
TRIED = 5


# ---- what is asked ----


def benchmark_of(scenario: Scenario) -> Benchmark:
    """The benchmark that a scenario asks. Raises BadInput."""
    benchmark = store.benchmark_of(scenario)
    if benchmark is None:
        raise BadInput(
            f"This recipe asks {scenario.benchmark}, and no benchmark here is called that. Import it, or save the "
            "recipe under another name with yours.",
            "recipe",
        )
    return benchmark


def samples_of(spec: Spec, scenario: Scenario) -> tuple[Benchmark, list[Sample]]:
    """The questions of a scenario, in the benchmark's order. Raises BadInput."""
    benchmark = benchmark_of(scenario)
    query = Sample.objects.filter(benchmark=benchmark).in_use().order_by("position", "pk")
    split = {"split": scenario.split} if scenario.split else {}
    draw = {"sample": scenario.sample, "seed": spec.seed} if scenario.sample else {}
    try:
        if scenario.levels:
            parts = [split | {"level": level} for level in scenario.levels]
            conditions = [item_sets.condition(item_sets.canonical(part, of_items=False), benchmark) for part in parts]
            query, split = query.filter(reduce(or_, conditions)), {}
        chosen = item_sets.canonical(split | draw, of_items=False)
        found = list(item_sets.samples(chosen, benchmark=benchmark, query=query))
    except item_sets.BadItemSet as error:
        raise BadInput(str(error), "recipe") from None
    if not found:
        raise BadInput(
            f"{benchmark} has no questions {f'in the split {scenario.split}' if scenario.split else ''}.", "recipe"
        )
    return benchmark, found


def tasks_of(recipe: Recipe, spec: Spec, scenario: Scenario, *, limit: int | None) -> list[RunTask]:
    """The tasks of a recipe in one scenario, unsaved. Raises BadInput in words for what it cannot ask."""
    from bank.recipes import examples  # loads scipy, which most workers never need

    benchmark, samples = samples_of(spec, scenario)
    samples = samples[:limit]
    _check_samples(spec, benchmark, samples)
    about = f"recipe {recipe}"
    shown = {
        "examples": examples.chosen(
            spec.instruction.examples, benchmark=benchmark, asked=samples, seed=spec.seed, about=about
        ),
        questions.WRITTEN: _written(spec, benchmark, samples),
        "pool": _pools(spec, benchmark, samples, about),
    }
    tasks = []
    for sample in samples:
        shows = {name: ids[sample.pk] for name, ids in shown.items() if sample.pk in ids}
        tasks += [RunTask(sample=sample, place=place, shows=shows) for place in questions.places(spec, sample)]
    return tasks


def _check_pictures(benchmark: Benchmark, samples: Sequence[Sample]) -> None:
    pictured = set(SampleImage.objects.filter(sample__benchmark=benchmark).values_list("sample", flat=True))
    if bare := [sample.key for sample in samples if sample.pk not in pictured and not sample.absent_images]:
        raise BadInput(
            f"{benchmark}: {len(bare):,} questions have no picture to corrupt, such as {bare[0]}. Choose others by "
            "split or levels.",
            "recipe",
        )


def _check_samples(spec: Spec, benchmark: Benchmark, samples: Sequence[Sample]) -> None:
    without = [sample.key for sample in samples if len(sample.options) < 2]
    if without and _needs_options(spec):
        raise BadInput(
            f"{benchmark}: {len(without):,} questions have no options to choose from, such as {without[0]}. "
            "Give the likelihood turn another pool (yes-no, a list of answers).",
            "recipe",
        )
    if spec.corruption.strategy == "each" and spec.corruption.image:
        _check_pictures(benchmark, samples)
    if len(spec.conditions) * spec.repeats * 30 > 32_767:
        raise BadInput("So many conditions and repeats are more than a run can hold.", "recipe")


def _needs_options(spec: Spec) -> bool:
    reads_options = any(turn.kind == "likelihood" and turn.pool == OPTIONS for turn in spec.turns)
    return reads_options or spec.rotates or spec.metric in ("mr", "riam")


def _written(spec: Spec, benchmark: Benchmark, samples: Sequence[Sample]) -> dict[int, list[int]]:
    """By question, the drafts of it in other words that people have taken, for corruptions of sentences."""
    rule = spec.corruption
    if not rule.text:
        return {}
    taken = drafts.rewritings(sample.pk for sample in samples)
    if rule.text in REWRITINGS:
        missing = [sample.key for sample in samples if rule.text not in taken.get(sample.pk, {})]
        if missing:
            raise BadInput(
                f"{benchmark}: {len(missing):,} questions are not written as {rule.text}, such as {missing[0]}. Let an "
                f"endpoint write them (manage.py collect rewrites) and take its drafts on the benchmark's page Drafts.",
                "recipe",
            )
    return {sample: sorted(draft.pk for draft in by_part.values()) for sample, by_part in taken.items()}


def _pools(spec: Spec, benchmark: Benchmark, samples: Sequence[Sample], about: str) -> dict[int, list[int]]:
    """By question, the other questions whose keys are in its pool; empty where the pool is made of its own key."""
    from bank.recipes import examples

    pool = next((turn.pool for turn in spec.turns if isinstance(turn.pool, Numbers | Nearest)), None)
    if pool is None:
        return {}
    in_use = benchmark.samples.in_use()
    keys = answer_keys.open_keys(about=about, samples=in_use)
    if missing := [sample.key for sample in samples if sample.pk not in keys]:
        raise BadInput(
            f"{benchmark}: a pool made of keys needs keys that everybody may see; {len(missing):,} questions have "
            f"none, such as {missing[0]}.",
            "recipe",
        )
    if isinstance(pool, Numbers):
        _check_numbers(pool, benchmark, samples, keys)
        return {sample.pk: [] for sample in samples}
    return examples.nearest_keys(keys, samples=in_use.filter(pk__in=keys), asked=samples, n=pool.nearest)


def _check_numbers(pool: Numbers, benchmark: Benchmark, samples: Sequence[Sample], keys: Mapping[int, str]) -> None:
    for sample in samples:
        try:
            list(questions.numbers_around(keys[sample.pk], pool.numbers))
        except CannotAsk:
            raise BadInput(f"{benchmark}: the key of {sample.key} is not a whole number.", "recipe") from None


def calls_of(spec: Spec, sample: Sample) -> int:
    """The calls of one task: a turn each, and with ``by: prompt`` one for each answer of a pool."""
    return sum(_calls_of_turn(turn, sample) for turn in spec.turns)


def _shape(tree: Tree) -> tuple[int, int]:
    """How deep a tree of classes is, and about how wide at each step."""
    steps = max(len(leaf.split("/")) for leaf in tree.tree)
    return steps, round(len(tree.tree) ** (1 / steps)) or 1


def _calls_of_turn(turn: Turn, sample: Sample) -> int:
    if turn.kind != "likelihood":
        return 1
    pool = turn.pool
    if isinstance(pool, Tree):
        steps, width = _shape(pool)
        return steps * (width if turn.by == "prompt" else 1)
    if turn.by == "first-token":
        return 1
    if isinstance(pool, Numbers):
        return 2 * pool.numbers + 1
    if isinstance(pool, Nearest):
        return pool.nearest + 1
    if pool == OPTIONS:
        return len(sample.options)
    return 2 if pool == YES_NO else len(pool)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of an evaluation: ``stored`` answers need no call. ``absent`` questions cannot be asked, since a picture
    of theirs is not stored here. ``cost`` in US dollars, None without prices.
    """

    questions: int
    absent: int
    answers: int
    stored: int
    calls: int
    sent: int
    received: int
    cost: float | None


def _means(spec: Spec, tasks: Sequence[RunTask]) -> tuple[float, float, float]:
    """The calls of a task, the tokens that they send, and those that they receive."""
    counts = [calls_of(spec, task.sample) for task in tasks]
    tokens = [number * _tokens(spec, task) for number, task in zip(counts, tasks, strict=True)]
    calls = sum(counts) / len(tasks)
    thoughts = sum(turn.kind == "cot" for turn in spec.turns)
    return calls, sum(tokens) / len(tasks), thoughts * REPLY_TOKENS["first"] + (calls - thoughts) * 4


def estimate(recipe: Recipe, *, judge: Judge, model: str = "", limit: int | None = None) -> Estimate:
    """Estimate of what is left to do, from the texts of a few questions. Raises BadInput."""
    spec = store.spec_of(recipe)
    checked_queries(spec)
    name = model.strip() or judge.model
    questions_asked = absent = answers = stored = calls = 0
    sent = received = 0.0
    for scenario in spec.scenario:
        tasks = tasks_of(recipe, spec, scenario, limit=limit)
        samples = {task.sample for task in tasks}
        missing = _missing(recipe, spec, tasks, name)
        questions_asked += len(samples)
        absent += sum(questions.lacks_picture(spec, sample) for sample in samples)
        answers += len(tasks)
        stored += len(tasks) - len(missing)
        missing = [task for task in missing if not questions.lacks_picture(spec, task.sample)]
        if missing:
            calls_each, sent_each, received_each = _means(spec, missing[:: max(1, len(missing) // 24)])
            calls += round(calls_each * len(missing))
            sent += sent_each * len(missing)
            received += len(missing) * received_each
    return Estimate(
        questions=questions_asked,
        absent=absent,
        answers=answers,
        stored=stored,
        calls=calls,
        sent=round(sent),
        received=round(received),
        cost=price(judge, round(sent), round(received)),
    )


def _tokens(spec: Spec, task: RunTask) -> float:
    """Of one call: the question, and its examples reckoned to be as long."""
    sample = task.sample
    images = list(SampleImage.objects.filter(sample=sample)) if spec.instruction.pictures else []
    own = text_tokens("\n".join((sample.instruction, sample.hint, *map(str, sample.options.values()))))
    pictures = sum(image_tokens(image, {}) for image in images)
    shots = len(task.shows.get("examples", ()))
    return own * (1 + shots) + pictures * (1 + (shots if spec.instruction.examples.images else 0)) + 20


# ---- starting and going on ----


@transaction.atomic
def start_evaluation(
    *,
    recipe: Recipe,
    judge: Judge,
    model: str = "",
    limit: int | None = None,
    budget: float | None = None,
    by: User | None = None,
) -> Evaluation:
    """Let an endpoint answer by a recipe, or go on with the evaluation that does the same. Raises BadInput.

    What is answered already is not asked again. A new ``budget`` replaces the old one.
    """
    spec = store.spec_of(recipe)
    name = check_endpoint(judge, budget, limit, model, purpose="answer")
    check_abilities(spec, judge)
    checked_queries(spec)
    _check_scenarios(recipe, spec, limit)
    same = Evaluation.objects.select_for_update().filter(recipe=recipe, judge=judge, model_name=name, limit=limit)
    evaluation = same.order_by("-pk").first()
    if evaluation is None or evaluation.runs.filter(state=Run.State.CANCELLED).exists():
        evaluation = Evaluation.objects.create(
            recipe=recipe, judge=judge, model_name=name, limit=limit, budget=budget, by=by
        )
    else:
        if budget is not None:
            evaluation.budget = budget
        evaluation.state_reason, evaluation.finished_at = "", None
        evaluation.save(update_fields=["budget", "state_reason", "finished_at"])
        for run in evaluation.runs.filter(state__in=Run.HALTED):
            run.budget = _left(evaluation, but=run)
            run.save(update_fields=["budget"])
            Run.objects.filter(pk=run.pk).update(**ANEW)
    advance(evaluation)
    evaluation.refresh_from_db()
    return evaluation


def _check_scenarios(recipe: Recipe, spec: Spec, limit: int | None) -> None:
    """Raises BadInput for what cannot be asked or marked, before anything is paid for."""
    if spec.metric == "language" and not Judge.objects.filter(name=spec.judge).exists():
        raise BadInput(
            f"{spec.judge} is to mark the reasons, and no judge here is called that. Save the recipe under another "
            "name with yours.",
            "recipe",
        )
    for scenario in spec.scenario:
        samples = {task.sample for task in tasks_of(recipe, spec, scenario, limit=limit)}
        if all(questions.lacks_picture(spec, sample) for sample in samples):
            raise BadInput(lacking_all(benchmark_of(scenario), len(samples), "questions"), "recipe")


def check_abilities(spec: Spec, judge: Judge) -> None:
    """Raises BadInput for a recipe that the endpoint cannot carry out, or was never tested for."""
    for way in sorted(spec.ways):
        ability, words = ABILITIES[way]
        if ability not in judge.abilities:
            raise BadInput(
                f"It is not known whether {judge.name} returns {words}: test it first (manage.py probe_judge "
                f"{judge.name}, or the button on its page).",
                "judge",
            )
        if not judge.abilities[ability]:
            raise BadInput(
                f"{judge.name} does not return {words}, as its test showed. Use a recipe whose last turn is direct"
                f"{' or reads the first token (by: first-token)' if way == 'prompt' else ''}.",
                "judge",
            )
    shown = spec.instruction.pictures and any(_has_pictures(scenario) for scenario in spec.scenario)
    if judge.abilities.get("vision") is False and shown:
        raise BadInput(f"{judge.name} cannot see pictures, as its test showed.", "judge")


def _has_pictures(scenario: Scenario) -> bool:
    return SampleImage.objects.filter(sample__benchmark=benchmark_of(scenario)).exists()


def checked_queries(spec: Spec) -> list[str]:
    """The templates of a recipe's queries, each rendered once with marked texts. Raises BadInput."""
    texts = []
    for query in spec.instruction.queries:
        try:
            built_in = query in prompts.names(PROTOCOL)
            owner = PROTOCOL if built_in else "responses"  # what staff wrote for answers of models
            text = query if "{{" in query else prompts.get(owner, query).text
        except prompts.UnknownPrompt as error:
            words = f"{error} A query is the name of a prompt, or a template with {{{{ instruction }}}}."
            raise BadInput(words, "recipe") from None
        if faults := checks.query_faults(text):
            raise BadInput(f"The query {query[:60]!r}: {' '.join(faults)}", "recipe")
        texts.append(text)
    return texts


def advance(evaluation: Evaluation) -> Run | None:
    """Start what comes next, if its time has come; returns the run that is under way. Repeating it changes nothing."""
    with transaction.atomic():
        evaluation = Evaluation.objects.select_for_update().select_related("recipe", "judge").get(pk=evaluation.pk)
        if evaluation.finished_at:
            return None
        spec = store.spec_of(evaluation.recipe)
        going = evaluation.runs.exclude(state=Run.State.FINISHED).order_by("pk").first()
        if going is not None:
            return going
        try:
            for scenario in spec.scenario:
                if run := _start_run(evaluation, spec, scenario):
                    return run
            if spec.metric == "language":
                from judging.recipes.marking import start_marks  # loads pandas, which most workers never need

                for scenario in spec.scenario:
                    benchmark = benchmark_of(scenario)
                    if run := start_marks(evaluation, spec, benchmark, budget=_left(evaluation)):
                        return run
        except BadInput as error:
            Evaluation.objects.filter(pk=evaluation.pk).update(state_reason=str(error), finished_at=Now())
            return None
        Evaluation.objects.filter(pk=evaluation.pk).update(finished_at=Now())
        return None


def retry(evaluation: Evaluation) -> int:
    """Ask again what failed, and go on with what paused; returns how many answers had failed. Raises BadInput."""
    number = sum(retry_failed(run=run) for run in evaluation.runs.exclude(state=Run.State.CANCELLED))
    start_evaluation(
        recipe=evaluation.recipe, judge=evaluation.judge, model=evaluation.model_name, limit=evaluation.limit
    )
    return number


def advance_open() -> None:
    """Start what comes next in every evaluation that is not over: a job calls it when something has changed."""
    for evaluation in Evaluation.objects.filter(finished_at=None):
        if not evaluation.runs.exclude(state=Run.State.FINISHED).exists():
            advance(evaluation)


def _left(evaluation: Evaluation, but: Run | None = None) -> float | None:
    """The rest of the budget for another run, in US dollars."""
    if evaluation.budget is None:
        return None
    others = evaluation.runs.exclude(pk=but.pk) if but else evaluation.runs
    spent = sum(others.values_list("spent", flat=True))
    return max(evaluation.budget - spent, 1e-9)


def _missing(recipe: Recipe, spec: Spec, tasks: Sequence[RunTask], model: str) -> list[RunTask]:
    """The tasks without an answer."""
    benchmark = tasks[0].sample.benchmark
    responses = Response.all_objects.filter(recipe=recipe, model__name=model, sample__benchmark=benchmark)
    answered = set(responses.values_list("sample_id", "variant", "repeat"))
    return [task for task in tasks if (task.sample_id, *questions.variant_and_repeat(task.place, spec)) not in answered]


def _start_run(evaluation: Evaluation, spec: Spec, scenario: Scenario) -> Run | None:
    """The run of what nobody has asked in a scenario yet; None if there is nothing. What failed waits for a retry."""
    tasks = tasks_of(evaluation.recipe, spec, scenario, limit=evaluation.limit)
    asked = set(RunTask.objects.filter(run__evaluation=evaluation).values_list("sample", "place"))
    unanswered = _missing(evaluation.recipe, spec, tasks, evaluation.model_name)
    missing = [task for task in unanswered if (task.sample_id, task.place) not in asked]
    if not missing:
        return None
    settings: dict[str, Any] = {"recipe": str(evaluation.recipe), "queries": checked_queries(spec)}
    settings["temperature"] = spec.temperature
    if spec.max_tokens:
        settings["max_tokens"] = spec.max_tokens
    if spec.repeats > 1:
        settings["seed"] = spec.seed
    return create_task_run(
        missing,
        kind=Run.Kind.RECIPE,
        judge=evaluation.judge,
        benchmark=missing[0].sample.benchmark,
        recipe=evaluation.recipe,
        evaluation=evaluation,
        protocol=PROTOCOL,
        settings=settings,
        items_hash=tasks_hash(missing),
        model_name=evaluation.model_name,
        budget=_left(evaluation),
        by=evaluation.by,
    )
