"""The questions of a recipe's run: which there are, and each with all that its calls may show."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from bank import corruptions
from bank.criteria import answer_keys
from bank.models import Draft, Sample
from bank.recipes import store
from bank.recipes.spec import Condition, Numbers, Spec
from bank.text.digests import keyed_digest
from judging.collecting import collectors
from judging.models import Collected, Run, RunTask
from judging.protocols import CannotAsk
from judging.recipes.conversation import Conversation, Example
from judging.runs import plan
from judging.runs.requests import Picture

WRITTEN = "written"  # what a task shows: the drafts of its question in other words


class Place(NamedTuple):
    """A task's ``place``: it counts all conditions of the first repeat, then of the others, then of each rotation."""

    condition: int
    repeat: int
    rotation: int

    @classmethod
    def of_task(cls, number: int, spec: Spec) -> "Place":
        rest, condition = divmod(number, len(spec.conditions))
        rotation, repeat = divmod(rest, spec.repeats)
        return cls(condition, repeat, rotation)


def lacks_picture(spec: Spec, sample: Sample) -> bool:
    """Whether a picture that the question shows is not stored here."""
    return bool(spec.instruction.pictures and sample.absent_images)


def places(spec: Spec, sample: Sample) -> list[int]:
    """The tasks of a question: its conditions, repeats and rotations."""
    rotations = max(1, len(sample.options)) if spec.rotates else 1
    return list(range(rotations * spec.repeats * len(spec.conditions)))


def variant_and_repeat(place: int, spec: Spec) -> tuple[str, int]:
    """The variant and repeat of the response to a question put like this."""
    condition, repeat, rotation = Place.of_task(place, spec)
    return collectors.variant(rotation) if rotation else spec.conditions[condition].name, repeat


def conversations(run: Run, rows: Sequence[RunTask]) -> list[Conversation]:
    """Each of these tasks as far as it has come."""
    assert run.recipe is not None
    done: dict[tuple[int, int], list[Collected]] = {}
    stored = Collected.objects.filter(run=run, sample__in={row.sample_id for row in rows}, last=False)
    for row in stored.order_by("step"):
        done.setdefault((row.sample_id, row.place), []).append(row)
    questions = _Questions(run, store.spec_of(run.recipe), rows)
    return [questions.conversation(row, done.get((row.sample_id, row.place), [])) for row in rows]


def _shown_samples(rows: Sequence[RunTask]) -> Iterator[int]:
    """As examples, or for their keys."""
    for row in rows:
        for name, ids in row.shows.items():
            if name != WRITTEN:
                yield from ids


class _Questions:
    """Questions of some tasks, with what they share read at once."""

    def __init__(self, run: Run, spec: Spec, rows: Sequence[RunTask]) -> None:
        self.run, self.spec = run, spec
        shown = set(_shown_samples(rows))
        written = Draft.objects.in_bulk({pk for row in rows for pk in row.shows.get(WRITTEN, ())})
        self.written = {
            row.pk: {written[pk].part: written[pk].text for pk in row.shows.get(WRITTEN, ()) if pk in written}
            for row in rows
        }
        ids = shown | {row.sample_id for row in rows}
        self.images = plan.images_by_sample(sample__in=ids)
        self.samples = Sample.objects.in_bulk(shown)
        of_pool = {row.sample_id for row in rows if "pool" in row.shows}
        asked = Sample.objects.filter(pk__in=shown | of_pool)
        about = f"run {run.pk}"
        self.keys = answer_keys.open_keys(about=about, samples=asked) if spec.uses_keys else {}

    def conversation(self, row: RunTask, done: Sequence[Collected]) -> Conversation:
        place = Place.of_task(row.place, self.spec)
        condition = self.spec.conditions[place.condition]
        sample = row.sample
        order = tuple(collectors.rotated(list(sample.options), place.rotation))
        images = self.images.get(sample.pk, []) if self.spec.instruction.pictures else []
        pictures = tuple(Picture(image) for image in images)
        instruction = sample.instruction
        if condition.corrupted:
            written = self.written[row.pk]
            steps = corruption_of(self.spec, condition, sample, pictures=bool(images), written=written)
            seed = seed_of(self.spec, sample)
            pictures = tuple(Picture(image, corruption=steps.image, seed=seed) for image in images)
            instruction = corruptions.apply_text(instruction, steps.text, seed, written)
            order = tuple(corruptions.apply_order(order, steps.text, seed))
        problem, examples, pool = "", list[Example](), tuple[str, ...]()
        try:
            examples = [self._example(pk) for pk in row.shows.get("examples", ())[: condition.shots]]
            pool = self._pool(row)
        except CannotAsk as error:
            problem = str(error)
        return Conversation(
            spec=self.spec,
            sample=sample,
            place=row.place,
            condition=condition,
            order=order,
            instruction=instruction,
            query=query_of(self.spec, sample, self.run.settings["queries"], place.repeat),
            pictures=pictures,
            examples=tuple(examples),
            pool_keys=pool,
            problem=problem,
            done=tuple(done),
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
    spec: Spec, condition: Condition, sample: Sample, *, pictures: bool, written: Collection[str]
) -> corruptions.Composition:
    """The corruption of a question, by the recipe's seed and the question's key. ``written``: in which other words the
    question is stored.
    """
    if condition.step:
        return corruptions.step_of(condition.step)
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
    """The wording of so many that a question gets; its repeats get one after the other."""
    dealt = sorted(range(queries), key=lambda at: keyed_digest(seed, key, str(at)))
    return dealt[repeat % queries]
