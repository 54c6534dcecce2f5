"""Making a recipe: six blocks beside its YAML, either of which changes the other, and what a model would get."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import yaml

from accounts.rules import Viewer
from bank.corruptions import images, texts
from bank.errors import BadInput
from bank.models import Benchmark, SampleImage
from bank.recipes import text as recipe_text
from bank.recipes.spec import MOST_SHOTS, OPTIONS, YES_NO, BadRecipe, Examples, Spec
from judging.models import Collected, Judge
from judging.protocols import CannotAsk
from judging.recipes import evaluations, questions
from judging.recipes.conversation import Conversation, RecipeCall
from judging.recipes.likelihoods import Likelihoods
from judging.runs.estimates import text_tokens
from judging.runs.requests import Picture
from leaderboard.boards.recipes import METRICS
from leaderboard.pages import recipes as pages
from stats.figures import number_of

# What the address of a block's field stands for: its place in the recipe, joined by dots.
WAYS_OF_EXAMPLES = {
    "none": "none",
    "random": "drawn at random",
    "fixed": "always the same ones",
    "top-text": "nearest by text",
    "top-image": "nearest by picture",
}
LABELS = {"none": "the question's own", "natural": "natural", "neutral": "neutral", "unnatural": "unnatural"}
DEALS = {"first": "the first alone", "seeded": "one is drawn for each question by the seed"}
TURNS = {"cot": "gives reasons", "direct": "answers in words", "likelihood": "is asked for likelihoods"}
POOLS = {OPTIONS: "its options", YES_NO: "yes and no", "own": "these answers"}
BY = {"first-token": "by the first token", "prompt": "by the whole answer"}
DAMAGE = {
    "none": "nothing",
    "image": "pictures, each by other means",
    "text": "questions, each by other means",
    "both": "pictures and questions",
    "single": "one means alone",
    "each": "every means, each alone",
}
PICTURES = {"True": "shown", "False": "left out"}
MARKED = {"right": "right answers", "all": "all answers"}
TEMPLATE = """\
{{ instruction }}
{% for label, text in options %}{{ label }}. {{ text }}
{% endfor %}{{ ask }}"""
MEANS = [*images.METHODS, *texts.METHODS]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a block: ``kind`` is text, long, number, tick or choice."""

    name: str
    label: str
    value: Any = ""
    kind: str = "text"
    choices: Sequence[tuple[str, str]] = ()
    hint: str = ""
    is_changed: bool = False  # from what the recipe says

    @property
    def id(self) -> str:
        return f"of-{self.name.replace('.', '-')}"

    @property
    def is_wide(self) -> bool:
        return self.kind in ("long", "tick") or self.name in ("metric", "judge", "corruption.what", "instruction.deal")


@dataclass(frozen=True, slots=True)
class Block:
    """``key``: what the YAML calls it; ``said``: it in words; ``more``: what can be added or taken out, and the word of
    the button.
    """

    name: str
    title: str
    key: str
    said: str
    fields: list[Field]
    more: list[tuple[str, str]] = field(default_factory=list)


BLOCKS = {  # by name, where it stands in the recipe
    "name": ("name",),
    "scenario": ("scenario",),
    "instruction": ("instruction",),
    "examples": ("instruction", "examples"),
    "turns": ("turns",),
    "metric": ("metric",),
    "corruption": ("corruption",),
}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of what the model gets: ``of`` names the blocks that decide it."""

    title: str
    said: str
    of: str
    text: str = ""
    pool: tuple[str, ...] = ()
    images: tuple[SampleImage, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the YAML: ``of`` names the blocks that it belongs to; ``wrong``: whether something is wrong in it."""

    number: int
    of: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class Editor:
    """The page. ``good`` is the last text that was a recipe: of it are the blocks, which are ``frozen`` while the text
    is none. ``problem`` says what is wrong, ``sections`` what a model gets of the question ``key``, the ``at``-th.
    """

    text: str
    good: str
    frozen: bool
    problem: str
    lines: list[Line]
    blocks: list[Block]
    sections: list[Section]
    preview_problem: str
    key: str
    at: int
    sum: str


def editor(text: str, good: str, viewer: Viewer, at: int = 0, posted: Mapping[str, str] | None = None) -> Editor:
    """The page of a text; ``at`` is the number of the question that is shown, ``posted`` what the blocks say, where
    they were changed last.
    """
    spec, error, line = recipe_text.fault_in(text)
    shown = spec or recipe_text.fault_in(good)[0]
    sections, key, preview_problem = _preview(shown, at, viewer) if shown else ([], "", "")
    return Editor(
        text=text,
        good=text if spec else good,
        frozen=spec is None and posted is None,
        problem=_problem(error, line) if error else "",
        lines=_lines(text, line),
        blocks=_with_posted(blocks_of(shown, viewer), posted if posted and not spec else {}) if shown else [],
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


def _lines(text: str, wrong: int) -> list[Line]:
    of = {name: recipe_text.lines_of(text, place) for name, place in BLOCKS.items()}
    for name, key in (("metric", "judge"), ("turns", "repeats"), ("turns", "temperature"), ("instruction", "seed")):
        if found := recipe_text.lines_of(text, [key]):
            of[f"{name} {key}"] = found

    def blocks(number: int) -> str:
        return " ".join(name.split()[0] for name, lines in of.items() if number in lines)

    return [Line(number, blocks(number), number == wrong) for number in range(1, len(text.splitlines()) + 1)]


# ---- the blocks ----


def blocks_of(spec: Spec, viewer: Viewer) -> list[Block]:
    """The name of a recipe and its six blocks, in reading order."""
    parts = {part.title: part.lines for part in pages.parts_of(spec)}
    said = {title: ". ".join(words for _, words in lines) for title, lines in parts.items()}
    instruction = dict(parts["Instruction"])
    return [
        Block("name", "Name", "name", "", [Field("name", "Name", spec.name)]),
        Block(
            "scenario",
            "Questions",
            "scenario",
            ". ".join(f"{benchmark}: {words}" for benchmark, words in parts["Scenario"]),
            list(_of_scenarios(spec, viewer)),
            [("add scenario", "Add questions of another benchmark"), *_removal("scenario", len(spec.scenario))],
        ),
        Block(
            "instruction",
            "Instruction",
            "instruction",
            f"Ways to ask: {instruction['Query']}",
            list(_of_instruction(spec)),
            [("add query", "Add a way to ask"), *_removal("query", len(spec.instruction.queries))],
        ),
        Block("examples", "Examples", "instruction.examples", instruction["Examples"], _of_examples(spec)),
        Block(
            "turns",
            "How it answers",
            "turns",
            said["Inferencer"],
            list(_of_turns(spec)),
            [("add turn", "Add a turn"), *_removal("turn", len(spec.turns))],
        ),
        Block("metric", "What counts", "metric", METRICS[spec.metric].words, _of_metric(spec)),
        Block(
            "corruption",
            "Damage",
            "corruption",
            instruction.get("Corruption", "none"),
            _of_damage(spec),
        ),
    ]


def _removal(what: str, n: int) -> list[tuple[str, str]]:
    return [(f"remove {what}", "Take the last one out")] if n > 1 else []


def _chosen(name: str, label: str, value: Any, choices: Mapping[str, str], hint: str = "") -> Field:
    return Field(name, label, value, "choice", list(choices.items()), hint)


def _of_scenarios(spec: Spec, viewer: Viewer) -> Iterator[Field]:
    slugs = list(dict.fromkeys(Benchmark.objects.visible_to(viewer).order_by("slug").values_list("slug", flat=True)))
    for at, scenario in enumerate(spec.scenario):
        known = {slug: slug for slug in dict.fromkeys([scenario.benchmark, *slugs])}
        yield _chosen(f"scenario.{at}.benchmark", "Benchmark", scenario.benchmark, known)
        yield Field(f"scenario.{at}.split", "Split, empty for all", scenario.split)
        yield Field(f"scenario.{at}.levels", "Levels, empty for all", ", ".join(scenario.levels))
        yield Field(f"scenario.{at}.sample", "How many, empty for all", scenario.sample or "", "number")


def _of_instruction(spec: Spec) -> Iterator[Field]:
    queries = spec.instruction.queries
    for at, query in enumerate(queries):
        label = f"Way {at + 1} to ask" if len(queries) > 1 else "How it is asked"
        hint = "The name of a prompt, or a template with {{ instruction }}, {{ ask }}, options and {{ hint }}."
        yield Field(f"instruction.queries.{at}", label, query, "long", hint="" if at else hint)
    if len(queries) > 1:
        yield _chosen("instruction.deal", "Asked", spec.instruction.deal, DEALS)
    yield _chosen("instruction.pictures", "Pictures", str(spec.instruction.pictures), PICTURES)
    yield _chosen("instruction.verbalizer", "Labels of the options", spec.instruction.verbalizer, LABELS)
    yield Field("seed", "Seed of all draws", spec.seed, "number")


def _of_examples(spec: Spec) -> list[Field]:
    rule = spec.instruction.examples
    fields = [_chosen("instruction.examples.how", "Examples", rule.how, WAYS_OF_EXAMPLES)]
    if rule.how == "none":
        return fields
    fields += [
        Field("instruction.examples.k", f"How many, at most {MOST_SHOTS}", rule.k, "number"),
        Field("instruction.examples.images", "With their pictures", rule.images, "tick"),
    ]
    if rule.how == "fixed":
        fields.append(Field("instruction.examples.keys", "Keys of their questions", ", ".join(rule.keys)))
    return fields


def _of_turns(spec: Spec) -> Iterator[Field]:
    for at, turn in enumerate(spec.turns):
        yield _chosen(f"turns.{at}.kind", f"In turn {at + 1} the model", turn.kind, TURNS)
        if turn.kind != "likelihood":
            continue
        own = isinstance(turn.pool, tuple)
        if own or isinstance(turn.pool, str):
            yield _chosen(f"turns.{at}.pool", "Of", "own" if own else turn.pool, POOLS)
        if isinstance(turn.pool, tuple):
            yield Field(f"turns.{at}.answers", "Answers to choose from", ", ".join(turn.pool))
        yield _chosen(f"turns.{at}.by", "Read", turn.by, BY)
    yield Field("repeats", "Asked so many times", spec.repeats, "number")
    temperature = "" if spec.temperature is None else f"{spec.temperature:g}"
    yield Field("temperature", "Temperature, empty: not sent", temperature)


def _of_metric(spec: Spec) -> list[Field]:
    fields = [_chosen("metric", "The score is", spec.metric, {name: each.words for name, each in METRICS.items()})]
    judges = {"": "nobody", spec.judge: spec.judge or "nobody"}
    judges |= {judge.name: str(judge) for judge in Judge.objects.order_by("name")}
    fields.append(_chosen("judge", "Reasons, or answers that name no option, are read by", spec.judge, judges))
    if spec.metric == "language":
        fields.append(_chosen("marked", "Reasons are marked of", spec.marked, MARKED))
    return fields


def _damaged(spec: Spec) -> str:
    rule = spec.corruption
    if rule.strategy != "composed":
        return str(rule.strategy)
    return "both" if rule.image and rule.text else "image" if rule.image else "text"


def _of_damage(spec: Spec) -> list[Field]:
    rule = spec.corruption
    fields = [_chosen("corruption.what", "What is damaged", _damaged(spec), DAMAGE)]
    if rule.strategy == "single":
        method = rule.image if isinstance(rule.image, str) else str(rule.text)
        fields.append(_chosen("corruption.method", "By", method, {name: name.replace("-", " ") for name in MEANS}))
    if rule.strategy in ("single", "each"):
        none = "drawn by the seed" if rule.strategy == "single" else "every one"
        severities = {"": none} | {str(n): f"{n} of 5" for n in range(1, 6)}
        fields.append(_chosen("corruption.severity", "Strength", str(rule.severity or ""), severities))
    return fields


# ---- from the blocks to the text ----

PREFIX = "field."  # of the names of posted fields


def changed(good: str, posted: Mapping[str, str], viewer: Viewer, do: str = "") -> str:
    """The text of a recipe with what its blocks say; ``do`` adds a part or takes the last one out. Raises BadInput."""
    spec = recipe_text.fault_in(good)[0]
    if spec is None:
        raise BadInput("Change the YAML first: it is no recipe.")
    old, new = yaml.safe_load(good), yaml.safe_load(good)
    for block in _with_posted(blocks_of(spec, viewer), posted):
        for each in block.fields:
            if each.is_changed:
                _put(new, spec, each)
    _do(new, do)
    for key in recipe_text.ORDER:
        if new.get(key) != old.get(key):
            good = recipe_text.with_value(good, key, new.get(key))
    return good


def _with_posted(blocks: Sequence[Block], posted: Mapping[str, str]) -> list[Block]:
    """The blocks with what was chosen in them; a tick that was not posted is off if its block was."""
    if not any(name.startswith(PREFIX) for name in posted):
        return list(blocks)
    return [replace(block, fields=[_posted_field(each, posted) for each in block.fields]) for block in blocks]


def _posted_field(each: Field, posted: Mapping[str, str]) -> Field:
    name = PREFIX + each.name
    if each.kind == "tick":
        value: Any = name in posted
    else:
        value = posted.get(name, str(each.value)).replace("\r\n", "\n")
        value = value if each.kind == "long" else value.strip()
    return replace(each, value=value, is_changed=str(value) != str(each.value))


def _put(new: dict[str, Any], spec: Spec, each: Field) -> None:
    """Write what a field says where it belongs; an empty one leaves the default."""
    first, *rest = each.name.split(".")
    value = _typed(each)
    if first == "corruption":
        _put_damage(new, rest[0], value)
    elif each.name == "instruction.examples.how":
        instruction = new.setdefault("instruction", {})
        instruction["examples"] = _examples(spec, value)
        if value == "none":
            del instruction["examples"]
    elif each.name == "instruction.pictures":
        instruction = new.setdefault("instruction", {})
        instruction.pop("pictures", None)
        if value == "False":
            instruction["pictures"] = False
    elif each.name.endswith(".kind"):
        new["turns"][int(rest[0])] = {"kind": value}
    elif each.name.endswith((".pool", ".answers")):
        turn = new["turns"][int(rest[0])]
        turn["pool"] = ["one answer", "another"] if value == "own" else value
    else:
        _put_plain(new, [first, *rest], value)


def _put_plain(new: dict[str, Any], path: Sequence[str], value: Any) -> None:
    at: Any = new
    for step, after in pairwise(path):
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, [] if after.isdecimal() else {})
    last = path[-1]
    if isinstance(at, list):
        at.extend([""] * (int(last) + 1 - len(at)))
        at[int(last)] = value
    elif value in ("", [], False) and last != "temperature":
        at.pop(last, None)
    else:
        at[last] = value


def _typed(each: Field) -> Any:
    if each.name.endswith((".levels", ".keys", ".answers")):
        return [part.strip() for part in str(each.value).split(",") if part.strip()]
    if each.name == "temperature":
        return _number(each.value, float) if each.value else None
    return _number(each.value, int) if each.kind == "number" and each.value else each.value


def _number(value: str, of: Callable[[str], Any]) -> Any:
    """What cannot be read stays as it is: the status line then says what is wrong with it."""
    try:
        return of(value)
    except ValueError:
        return value


def _put_damage(new: dict[str, Any], what: str, value: Any) -> None:
    rule = new.setdefault("corruption", {})
    if what == "severity":
        rule.pop("severity", None)
        if value:
            rule["severity"] = int(value)
    elif what == "method":
        rule.pop("image", None)
        rule.pop("text", None)
        rule["image" if value in images.METHODS else "text"] = value
    elif value == "none":
        del new["corruption"]
    elif value == "single":
        new["corruption"] = {"strategy": "single", "image": MEANS[0]}
    elif value == "each":
        new["corruption"] = {"strategy": "each", "image": True}
    else:
        kinds = ("image", "text") if value == "both" else (value,)
        new["corruption"] = {"strategy": "composed"} | dict.fromkeys(kinds, True)


def _examples(spec: Spec, how: str) -> dict[str, Any]:
    rule = spec.instruction.examples
    value: dict[str, Any] = {"how": how, "k": rule.k or 1} | ({"images": True} if rule.images else {})
    if how == "fixed":
        try:
            value["keys"] = [sample.key for sample in evaluations.samples_of(spec, spec.scenario[0])[1][: value["k"]]]
        except BadInput:
            value["keys"] = []
    return value


def _do(new: dict[str, Any], do: str) -> None:
    verb, _, what = do.partition(" ")
    if what == "query":
        parts = new.setdefault("instruction", {}).setdefault("queries", ["default"])
        added: Any = TEMPLATE
    elif what == "turn":
        parts, added = new["turns"], {"kind": "cot"}
    elif what == "scenario":
        parts, added = new["scenario"], {"benchmark": "another-benchmark"}
    else:
        return
    if verb == "remove":
        parts.pop()
        if what == "query" and len(parts) == 1:
            new["instruction"].pop("deal", None)
    elif what == "turn":
        parts.insert(len(parts) - 1, added)  # reasons come before the answer
    else:
        parts.append(added)


# ---- what a model gets ----


def _sum(spec: Spec) -> str:
    """How much is asked of one model."""
    try:
        samples = [sample for scenario in spec.scenario for sample in evaluations.samples_of(spec, scenario)[1]]
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
    sections = [Section("Before the question", before, "examples")] if before else []
    try:
        sections += _turns_of(talk, stored)
    except CannotAsk as error:
        return sections, sample.key, str(error)
    if spec.corruption.strategy != "none":
        sections.append(Section("Once more", f"damaged: {pages.corruption_in_words(spec)}", "corruption"))
    sections.append(Section("Counts as", METRICS[spec.metric].words, "metric"))
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
    of = "turns" if call.turn else "instruction scenario"
    return Section(f"Turn {call.turn + 1}", about, of, asked.text, call.pool, stored)


def _stand_in(spec: Spec, call: RecipeCall) -> Collected:
    if call.by == "first-token":
        found = Likelihoods(tuple((answer, 0.0) for answer in call.pool), call.by, 1.0)
        return Collected(likelihoods=found.as_json())
    return Collected(text="(what the model said)", likelihoods={"value": 0.0} if call.by else None)
