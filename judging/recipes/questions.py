"""The questions of a recipe's run: which there are, and each with all that its calls may show."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bank import corruptions
from bank.criteria import answer_keys
from bank.models import Draft, Sample, SampleImage
from bank.recipes import store
from bank.recipes.spec import Condition, Numbers, Spec
from bank.text.digests import keyed_digest
from judging.models import Collected, Run, RunTask
from judging.protocols import CannotAsk
from judging.recipes.conversation import Call, Done, Example, Question
from judging.runs import collecting
from judging.runs.requests import Picture

WRITTEN = "written"  # what a task shows: the drafts of its question in other words


@dataclass(frozen=True, slots=True)
class Place:
    """What a task's ``place`` counts: condition, repeat and rotation."""

    condition: int
    repeat: int
    rotation: int

    def number(self, spec: Spec) -> int:
        return (self.rotation * spec.repeats + self.repeat) * len(spec.conditions) + self.condition

    @classmethod
    def of(cls, number: int, spec: Spec) -> "Place":
        rest, condition = divmod(number, len(spec.conditions))
        rotation, repeat = divmod(rest, spec.repeats)
        return cls(condition, repeat, rotation)


def places(spec: Spec, sample: Sample) -> list[int]:
    """The tasks of a question: its conditions, repeats and rotations."""
    rotations = max(1, len(sample.options)) if spec.rotates else 1
    return [
        Place(condition, repeat, rotation).number(spec)
        for rotation in range(rotations)
        for repeat in range(spec.repeats)
        for condition in range(len(spec.conditions))
    ]


def variant(condition: Condition, rotation: int) -> str:
    """The variant of the response to a question put like this."""
    return collecting.variant(rotation) if rotation else condition.name


@dataclass(frozen=True, slots=True)
class Job:
    """The next call of a task."""

    sample: Sample
    place: int
    question: Question
    done: tuple[Done, ...] = ()

    @property
    def step(self) -> int:
        return len(self.done)

    @property
    def call(self) -> Call:
        """Raises CannotAsk."""
        if self.question.problem:
            raise CannotAsk(self.question.problem)
        call = self.question.next_call(self.done)
        if call is None:
            raise CannotAsk("there is nothing left to ask")
        return call


def jobs(run: Run, rows: Sequence[RunTask]) -> list[Job]:
    """The next call of each of these tasks."""
    assert run.recipe is not None
    spec = store.spec_of(run.recipe)
    done = _done(run, rows)
    questions = _Questions(run, spec, rows)
    return [Job(row.sample, row.place, questions.of(row), done.get((row.sample_id, row.place), ())) for row in rows]


def _done(run: Run, rows: Sequence[RunTask]) -> dict[tuple[int, int], tuple[Done, ...]]:
    """What the earlier calls of unfinished tasks brought."""
    found: dict[tuple[int, int], list[Done]] = {}
    stored = Collected.objects.filter(run=run, sample__in={row.sample_id for row in rows}, last=False)
    for row in stored.order_by("step"):
        done = Done(row.text, row.status, row.likelihoods, row.completion_tokens)
        found.setdefault((row.sample_id, row.place), []).append(done)
    return {key: tuple(steps) for key, steps in found.items()}


class _Questions:
    """Questions of some tasks, with what they share read at once."""

    def __init__(self, run: Run, spec: Spec, rows: Sequence[RunTask]) -> None:
        self.run, self.spec = run, spec
        shown = {pk for row in rows for name, ids in row.shows.items() if name != WRITTEN for pk in ids}
        written = Draft.objects.in_bulk({pk for row in rows for pk in row.shows.get(WRITTEN, ())})
        self.written = {
            row.pk: {written[pk].part: written[pk].text for pk in row.shows.get(WRITTEN, ()) if pk in written}
            for row in rows
        }
        ids = shown | {row.sample_id for row in rows}
        self.images: dict[int, list[SampleImage]] = {}
        for image in SampleImage.objects.filter(sample__in=ids).order_by("position"):
            self.images.setdefault(image.sample_id, []).append(image)
        self.samples = Sample.objects.in_bulk(shown)
        of_pool = {row.sample_id for row in rows if "pool" in row.shows}
        asked = Sample.objects.filter(pk__in=shown | of_pool)
        about = f"run {run.pk}"
        self.keys = answer_keys.open_keys(about=about, samples=asked) if spec.uses_keys else {}

    def of(self, row: RunTask) -> Question:
        place = Place.of(row.place, self.spec)
        condition = self.spec.conditions[place.condition]
        sample = row.sample
        order = tuple(collecting.rotated(list(sample.options), place.rotation))
        images = self.images.get(sample.pk, [])
        pictures = tuple(Picture(image) for image in images)
        instruction = sample.instruction
        if condition.corrupted:
            written = self.written[row.pk]
            plan = corruption_of(self.spec, sample, pictures=bool(images), written=written)
            seed = seed_of(self.spec, sample)
            pictures = tuple(Picture(image, corruption=plan.image, seed=seed) for image in images)
            instruction = corruptions.apply_text(instruction, plan.text, seed, written)
            order = tuple(corruptions.apply_order(order, plan.text, seed))
        problem, examples, pool = "", list[Example](), tuple[str, ...]()
        try:
            examples = [self._example(pk) for pk in row.shows.get("examples", ())[: condition.shots]]
            pool = self._pool(row)
        except CannotAsk as error:
            problem = str(error)
        return Question(
            spec=self.spec,
            sample=sample,
            condition=condition,
            order=order,
            instruction=instruction,
            query=query_of(self.spec, sample, self.run.settings["queries"], place.repeat),
            pictures=pictures,
            examples=tuple(examples),
            pool_keys=pool,
            problem=problem,
        )

    def _example(self, pk: int) -> Example:
        """Raises CannotAsk where its key has been hidden since the run began."""
        if pk not in self.samples or pk not in self.keys:
            raise CannotAsk("an example's key is no longer open to everybody")
        pictures = [Picture(image) for image in self.images.get(pk, [])]
        return Example(self.samples[pk], answer_keys.synonyms(self.keys[pk])[0], tuple(pictures))

    def _pool(self, row: RunTask) -> tuple[str, ...]:
        if "pool" not in row.shows:
            return ()
        texts = [
            answer_keys.synonyms(self.keys[pk])[0] for pk in (row.sample_id, *row.shows["pool"]) if pk in self.keys
        ]
        span = next((turn.pool.numbers for turn in self.spec.turns if isinstance(turn.pool, Numbers)), 0)
        if span and texts:
            texts = list(numbers_around(texts[0], span))
        texts = list(dict.fromkeys(texts))
        return tuple(sorted(texts, key=lambda text: keyed_digest(self.spec.seed, row.sample.key, text)))


def numbers_around(key: str, span: int) -> Iterator[str]:
    """The whole numbers from ``span`` below the key to as many above. Raises CannotAsk if the key is no number."""
    try:
        value = int(key)
    except ValueError:
        raise CannotAsk("the key is not a whole number") from None
    return (str(value + step) for step in range(-span, span + 1))


def corruption_of(
    spec: Spec, sample: Sample, *, pictures: bool, written: Collection[str] = ()
) -> corruptions.Composition:
    """What is done to a question, by the recipe's seed and the question's key. ``written``: in which other words the
    question is stored.
    """
    rule = spec.corruption
    seed = seed_of(spec, sample)
    if rule.strategy == "single":
        named = rule.image if isinstance(rule.image, str) else str(rule.text)
        return corruptions.single(named, severity=rule.severity, seed=seed)
    options = len(sample.options)
    return corruptions.compose(
        seed=seed, image=bool(rule.image) and pictures, text=bool(rule.text), options=options, written=written
    )


def seed_of(spec: Spec, sample: Sample) -> str:
    return f"{spec.seed}:{sample.key}"


def query_of(spec: Spec, sample: Sample, queries: Sequence[str], repeat: int) -> str:
    """The wording of a question: the first, or one of the pool by the seed."""
    if spec.instruction.deal == "first":
        return queries[0]
    return queries[dealt_query(spec.seed, sample.key, len(queries), repeat)]


def dealt_query(seed: int, key: str, queries: int, repeat: int) -> int:
    """Which of so many wordings a question gets; its repeats get one after the other."""
    dealt = sorted(range(queries), key=lambda at: keyed_digest(seed, key, str(at)))
    return dealt[repeat % queries]
