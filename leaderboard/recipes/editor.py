"""Writing a recipe: its text, what is wrong with it, what a model would get by it, and others to begin from."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from accounts.rules import Viewer
from bank.errors import BadInput
from bank.models import Benchmark, Recipe, Sample, SampleImage
from bank.recipes import store
from bank.recipes import text as recipe_text
from bank.recipes.spec import BadRecipe, Examples, Spec
from judging.models import Collected
from judging.protocols import CannotAsk
from judging.recipes import evaluations, questions
from judging.recipes.conversation import Conversation, RecipeCall
from judging.recipes.likelihoods import Likelihoods
from judging.runs.estimates import text_tokens
from judging.runs.requests import Picture
from leaderboard.boards.recipes import page as pages
from leaderboard.boards.recipes.board import METRICS
from stats.figures import number_of


@dataclass(frozen=True, slots=True)
class Section:
    """A part of what the model gets."""

    title: str
    said: str
    text: str = ""
    pool: tuple[str, ...] = ()
    images: tuple[SampleImage, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A recipe to begin from: ``measures`` is its metric in words, ``text`` its YAML."""

    recipe: Recipe
    measures: str
    text: str


@dataclass(frozen=True, slots=True)
class Editor:
    """The page. ``problem`` says what is wrong with the text, in line ``wrong`` (0: nowhere in particular); ``good`` is
    the last text that was a recipe, of which ``sections`` show what a model gets of the question ``key``, the
    ``at``-th.
    """

    text: str
    good: str
    problem: str
    wrong: int
    sections: list[Section]
    preview_problem: str
    key: str
    at: int
    sum: str

    @property
    def lines(self) -> range:
        return range(1, len(self.text.splitlines()) + 1)


def editor(text: str, good: str, viewer: Viewer, at: int = 0) -> Editor:
    """The page of a text; ``at`` is the number of the question that is shown."""
    spec, error, line = recipe_text.fault_in(text)
    shown = spec or recipe_text.fault_in(good)[0]
    sections, key, preview_problem = _preview(shown, at, viewer) if shown else ([], "", "")
    return Editor(
        text=text,
        good=text if spec else good,
        problem=_problem(error, line) if error else "",
        wrong=line,
        sections=sections,
        preview_problem=preview_problem,
        key=key,
        at=at,
        sum=_sum(shown) if shown else "",
    )


def _problem(error: BadRecipe, line: int) -> str:
    where = f"Line {line}: " if line and not error.line else ""
    guess = f" Did you mean {error.guess}?" if error.guess else ""
    return f"{where}{error}{guess}"


def examples(viewer: Viewer) -> list[Example]:
    """The recipes that came with the installation."""
    found = []
    for recipe in store.newest(store.visible_to(viewer)).filter(built_in=True):
        spec = store.spec_of(recipe)
        found.append(Example(recipe, METRICS[spec.metric].words, recipe_text.of_spec(spec)))
    return found


def _sum(spec: Spec) -> str:
    """How much is asked of one model."""
    try:
        samples: list[Sample] = []
        for scenario in spec.scenario:
            _, of_scenario = evaluations.samples_of(spec, scenario)
            samples += of_scenario
    except BadInput as error:
        return str(error)
    answers = sum(len(questions.places(spec, sample)) for sample in samples)
    calls = sum(len(questions.places(spec, sample)) * evaluations.calls_of(spec, sample) for sample in samples)
    parts = [number_of(len(samples), "question"), number_of(len(spec.turns), "turn")]
    parts.append(f"{number_of(answers, 'answer')} in {number_of(calls, 'call')} for one model")
    return ", ".join(parts)


def _preview(spec: Spec, at: int, viewer: Viewer) -> tuple[list[Section], str, str]:
    """What a model gets of one question, its key, and why that cannot be shown. No answer key is read."""
    scenario = spec.scenario[0]
    try:
        benchmark, samples = evaluations.samples_of(spec, scenario)
        query = evaluations.checked_queries(spec)[0]
    except BadInput as error:
        return [], "", str(error)
    if not Benchmark.objects.visible_to(viewer).filter(pk=benchmark.pk).exists():
        return [], "", "You may not see these questions."
    sample = samples[at % len(samples)]
    stored = tuple(SampleImage.objects.filter(sample=sample).order_by("position")) if spec.instruction.pictures else ()
    condition = replace(spec.conditions[0], corrupted=False)
    plain = spec.model_copy(update={"instruction": spec.instruction.model_copy(update={"examples": Examples()})})
    talk = Conversation(
        spec=plain,
        sample=sample,
        place=0,
        condition=condition,
        order=tuple(sample.options),
        instruction=sample.instruction,
        query=query,
        pictures=tuple(Picture(image) for image in stored),
        pool_keys=("the right answer", "others like it"),
    )
    before = pages.examples_in_words(spec)
    sections = [Section("Before the question", before)] if before else []
    try:
        sections += _turns_of(talk, stored)
    except CannotAsk as error:
        return sections, sample.key, str(error)
    if spec.corruption.strategy != "none":
        sections.append(Section("Once more", f"damaged: {pages.corruption_in_words(spec)}"))
    sections.append(Section("Counts as", METRICS[spec.metric].words))
    return sections, sample.key, ""


def _turns_of(talk: Conversation, stored: tuple[SampleImage, ...]) -> Iterator[Section]:
    """Each turn as it is put, with a stand-in for what the model says in between."""
    turn, call = -1, talk.next_call()
    while call is not None and call.turn < len(talk.spec.turns):
        if call.turn > turn:
            turn = call.turn
            yield _section(talk, call, stored if not turn else ())
        talk = talk.after(_stand_in(talk.spec, call))
        call = talk.next_call()


def _section(talk: Conversation, call: RecipeCall, stored: tuple[SampleImage, ...]) -> Section:
    asked = next(message for message in reversed(call.conversation) if message.role == "user")
    about = f"about {text_tokens(asked.text):,.0f} tokens"
    return Section(f"Turn {call.turn + 1}", about, asked.text, call.pool, stored)


def _stand_in(spec: Spec, call: RecipeCall) -> Collected:
    if call.by == "first-token":
        found = Likelihoods(tuple((answer, 0.0) for answer in call.pool), call.by, 1.0)
        return Collected(likelihoods=found.as_json())
    return Collected(text="(what the model said)", likelihoods={"value": 0.0} if call.by else None)
