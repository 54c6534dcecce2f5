"""Pages of recipes: all of them, one with its board, writing one, asking models by it; and of the desiderata."""

from collections.abc import Callable
from functools import wraps
from itertools import count
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from accounts.http import attached, done, form_page, person
from accounts.rules import allowed, requires
from bank import guard
from bank.errors import BadInput
from bank.forms.fields import whole_number
from bank.models import Recipe, Response, Sample
from bank.recipes import spec as specs
from bank.recipes import store
from bank.recipes import text as recipe_text
from bank.views.common import faults_in, told
from judging.models import Evaluation
from judging.recipes import evaluations
from leaderboard.boards.recipes import board as boards
from leaderboard.boards.recipes import page as pages
from leaderboard.boards.recipes.board import RecipeBoard
from leaderboard.boards.recipes.desiderata import QUALITIES, desiderata
from leaderboard.boards.versus import page as versus
from leaderboard.editions import recipes as recipe_editions
from leaderboard.frozen.page import citation_of
from leaderboard.kept.pages import answered, sees_many_answers
from leaderboard.lookups import known_models
from leaderboard.recipes import answers as answers_page
from leaderboard.recipes import editor as editing
from leaderboard.show import files
from leaderboard.views.forms import EvaluateForm, RecipeForm

HERE = {"section": "recipes"}
TAKEN = "There is a recipe of this name that nobody has used yet: give another name, or change that one"
EXAMPLE = """\
name: {}
scenario:
- benchmark: {}
turns:
- kind: cot
- kind: likelihood
metric: accuracy
"""


def _recipe(request: HttpRequest, name: str) -> Recipe:
    try:
        return store.get(name, request.user)
    except store.UnknownRecipe:
        raise Http404("unknown recipe") from None


@requires("read-judging")
@require_safe
def recipe_list(request: HttpRequest) -> HttpResponse:
    """The newest version of every recipe."""
    with guard.working():
        answered = set(Response.all_objects.exclude(recipe=None).order_by().values_list("recipe", flat=True).distinct())
    own: list[tuple[Any, ...]] = []
    built_in: list[tuple[Any, ...]] = []
    for recipe in store.newest(store.visible_to(request.user)):
        spec = store.spec_of(recipe)
        rows = built_in if recipe.built_in else own
        rows.append((recipe, spec, boards.METRICS[spec.metric], recipe.pk in answered))
    return render(request, "leaderboard/recipes.html", HERE | {"own": own, "built_in": built_in})


@requires("read-judging")
@require_safe
def recipe_detail(request: HttpRequest, name: str) -> HttpResponse:
    """What a recipe does, which endpoints can be asked by it, what is under way, its board, and one answer as given."""
    recipe = _recipe(request, name)
    return _detail(request, recipe, EvaluateForm() if allowed(request.user, "write-judging") else None)


def _detail(request: HttpRequest, recipe: Recipe, form: EvaluateForm | None, **more: Any) -> HttpResponse:
    spec = store.spec_of(recipe)
    progress = _progress(request, recipe)
    may_publish = allowed(request.user, "publish") and (progress["page"] or progress["board_apart"])
    context = {
        "spec": spec,
        "parts": pages.parts_of(spec),
        "yaml": specs.to_yaml(spec),
        "endpoints": pages.endpoints_for(spec),
        "closed": boards.closed_scenarios(recipe) if may_publish else [],
        "edition": boards.newest_edition(recipe),
        "form": form,
        "seen": _seen(request, recipe),
        "versions": Recipe.objects.filter(name=recipe.name).exclude(pk=recipe.pk),
        "used": store.is_used(recipe),
    }
    return render(request, "leaderboard/recipe.html", HERE | progress | context | more)


def _progress(request: HttpRequest, recipe: Recipe) -> dict[str, Any]:
    """The board of a recipe and what is under way, which change while models answer. Where a job draws the board, it
    is on its own page alone.
    """
    board_apart = sees_many_answers(request.user)
    board = RecipeBoard() if board_apart else boards.board(recipe, request.user)
    under_way = []
    # Whether there is anything to mark tells whether answers are right.
    if store.spec_of(recipe).metric != "language" or allowed(request.user, "read-hidden"):
        under_way = pages.under_way(recipe, reasons=allowed(request.user, "read-calls"))
    return {
        "recipe": recipe,
        "board": board,
        "board_apart": board_apart,
        "page": pages.board_page(board) if board.rows else None,
        "under_way": under_way,
        "live": any(not line.action for line in under_way),
    }


@requires("read-judging")
@require_safe
def recipe_progress(request: HttpRequest, name: str) -> HttpResponse:
    """The part of a recipe's page that changes while models answer."""
    return render(request, "leaderboard/_recipe_progress.html", _progress(request, _recipe(request, name)))


def _seen(request: HttpRequest, recipe: Recipe) -> dict[str, Any] | None:
    """One answer: the one after ``?after=``, or the first."""
    responses = Response.all_objects.seen_by(request.user).filter(recipe=recipe)
    after = whole_number(request.GET.get("after", "")) or 0
    first = responses.filter(pk__gt=after, turn=0).order_by("pk").first() or responses.order_by("pk").first()
    if first is None:
        return None
    same = {"sample": first.sample_id, "model": first.model_id, "variant": first.variant, "repeat": first.repeat}
    turns = list(responses.filter(**same).order_by("turn"))
    sample = Sample.objects.select_related("benchmark").prefetch_related("images").get(pk=first.sample_id)
    return {
        "sample": sample,
        "images": list(sample.images.all()),
        "model": first.model.name,
        "invented": first.model.simulated,
        "variant": first.variant,
        "turns": pages.seen_turns(turns),
        "next": f"?after={turns[-1].pk}#seen",
    }


@requires("write-judging")
@form_page
def recipe_new(request: HttpRequest) -> HttpResponse:
    """Write a recipe, or the next version of one, starting from ``?from=``. ``check`` saves nothing: what is wrong, and
    what a model would get, follows the text.
    """
    if request.method == "POST":
        return _recipe_checked(request) if "check" in request.POST else _recipe_saved(request)
    source, changes = request.GET.get("from", ""), ""
    text = EXAMPLE.format(_free("my-recipe"), _with_options(request) or "my-benchmark")
    if source:
        recipe = _recipe(request, source)
        spec = store.spec_of(recipe)
        if recipe.built_in or "copy" in request.GET:
            spec = spec.model_copy(update={"name": _free(f"my-{spec.name}"), "version": 1})
        else:
            changes = spec.name
        text = recipe_text.of_spec(spec)
    return _making(request, editing.editor(text, text, request.user), changes)


def _free(name: str) -> str:
    """This name, or with the first number that makes it one that no recipe has."""
    names = (name if n == 1 else f"{name}-{n}" for n in count(1))
    return next(one for one in names if not Recipe.objects.filter(name=one).exists())


def _is_taken(spec: specs.Spec, changes: str) -> bool:
    """Whether saving would replace a recipe of the same name that nobody has used, and that is not the one which
    ``changes`` names.
    """
    newest = Recipe.objects.filter(name=spec.name).order_by("-version").first()
    if newest is None or newest.built_in or spec.name == changes or store.is_used(newest):
        return False
    return newest.sha256 != specs.digest(spec)


def _with_options(request: HttpRequest) -> str:
    """A benchmark whose questions have options, for the example to begin with."""
    samples = Sample.objects.visible_to(request.user).in_use().exclude(options={}).select_related("benchmark")
    first = samples.first()
    return first.benchmark.slug if first else ""


def _making(request: HttpRequest, editor: editing.Editor, changes: str, form: RecipeForm | None = None) -> HttpResponse:
    context = {
        "editor": editor,
        "form": form or RecipeForm(initial={"yaml": editor.text}),
        "becomes": _becomes(editor, changes),
        "changes": changes,
        "examples": editing.examples(request.user),
    }
    return render(request, "leaderboard/recipe-new.html", HERE | context)


def _becomes(editor: editing.Editor, changes: str) -> tuple[str, str, str]:
    """What saving makes: the name, the version, "" where it makes none, and what stays as it is."""
    spec, *_ = recipe_text.fault_in(editor.good)
    if spec is None:
        return "", "", ""
    newest = Recipe.objects.filter(name=spec.name).order_by("-version").first()
    if newest is None:
        return spec.name, "1", "Not saved yet"
    if _is_taken(spec, changes):
        return spec.name, "", TAKEN
    if not store.is_used(newest):
        return spec.name, str(newest.version), f"Version {newest.version} was not used yet: saving replaces it"
    return spec.name, str(newest.version + 1), f"Version {newest.version} was used and stays as it is"


def _texts(request: HttpRequest) -> list[str]:
    """The YAML as it was typed, and as it last was a recipe."""
    return [request.POST.get(name, "").replace("\r\n", "\n") for name in ("yaml", "good")]


def _recipe_checked(request: HttpRequest) -> HttpResponse:
    text, good = _texts(request)
    at = (whole_number(request.POST.get("at", "")) or 0) + (request.POST["check"] == "another question")
    editor, changes = editing.editor(text, good, request.user, at), request.POST.get("changes", "")
    if "HX-Request" not in request.headers:
        return _making(request, editor, changes)
    context = {"editor": editor, "becomes": _becomes(editor, changes), "oob": True}
    return render(request, "leaderboard/_recipe_checked.html", context)


def _recipe_saved(request: HttpRequest) -> HttpResponse:
    form, changes = RecipeForm(request.POST), request.POST.get("changes", "")
    if form.is_valid():
        with faults_in(form, "yaml"):
            spec = specs.from_yaml(form.cleaned_data["yaml"])
            if _is_taken(spec, changes):
                raise BadInput(f"{TAKEN}.")
            recipe, changed = store.save(spec, by=person(request))
            words = f"{recipe} is saved." if changed else f"{recipe} says the same already."
            return done(request, words, "leaderboard:recipe", str(recipe))
    text, good = _texts(request)
    return _making(request, editing.editor(text, good, request.user), changes, form)


@requires("read-judging")
@require_safe
def recipe_yaml(request: HttpRequest, name: str) -> HttpResponse:
    recipe = _recipe(request, name)
    response = HttpResponse(specs.to_yaml(store.spec_of(recipe)), content_type="application/yaml; charset=utf-8")
    return attached(response, f"{recipe.name}-{recipe.version}.yaml")


@requires("write-judging")
@require_POST
def recipe_remove(request: HttpRequest, name: str) -> HttpResponse:
    recipe = _recipe(request, name)
    with told(request):
        store.remove(recipe)
        return done(request, f"{recipe} is removed.", "leaderboard:recipes")
    return redirect("leaderboard:recipe", str(recipe))


@requires("publish")
@require_POST
def recipe_publish(request: HttpRequest, name: str) -> HttpResponse:
    """Publish an edition of what rests on hidden keys in a recipe's board."""
    recipe = _recipe(request, name)
    with told(request):
        edition = recipe_editions.publish(recipe, by=person(request))
        messages.success(request, f"Edition {edition.number} is published.")
    return redirect(reverse("leaderboard:recipe", args=[str(recipe)]) + "#board")


@requires("write-judging")
@require_POST
def evaluate(request: HttpRequest, name: str) -> HttpResponse:
    """Ask an endpoint by a recipe, or say what it would take. ``try`` asks the first five questions alone."""
    recipe = _recipe(request, name)
    form = EvaluateForm(request.POST)
    if not form.is_valid():
        return _detail(request, recipe, form)
    data = form.cleaned_data
    asked = {"judge": data["endpoint"], "model": data["model"], "limit": data["limit"]}
    if "try" in request.POST:
        asked["limit"] = evaluations.TRIED
    try:
        if "estimate" in request.POST:
            evaluations.check_abilities(store.spec_of(recipe), data["endpoint"])
            return _detail(request, recipe, form, estimate=evaluations.estimate(recipe, **asked))
        evaluation = evaluations.start_evaluation(recipe=recipe, budget=data["budget"], by=person(request), **asked)
    except BadInput as error:
        form.add_error("endpoint" if error.field == "judge" else None, str(error))
        return _detail(request, recipe, form)
    over = evaluation.finished_at and not evaluation.state_reason
    words = "Everything is answered already." if over else f"{evaluation.model_name} is being asked."
    return done(request, words, reverse("leaderboard:recipe", args=[str(recipe)]) + "#board")


@requires("write-judging")
@require_POST
def evaluation_retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask again what failed, and go on with what paused."""
    evaluation = get_object_or_404(Evaluation.objects.select_related("recipe", "judge"), pk=pk)
    with told(request):
        number = evaluations.retry(evaluation)
        messages.success(request, f"{number:,} failed answers are asked for again." if number else "It goes on.")
    return redirect("leaderboard:recipe", str(evaluation.recipe))


OfRecipe = Callable[[HttpRequest, Recipe], HttpResponse]


def _prepared(*takes: str) -> Callable[[OfRecipe], Callable[[HttpRequest, str], HttpResponse]]:
    """A page of a recipe, drawn by a job where there are many answers by recipes. ``takes``: what it may be asked."""

    def declare(view: OfRecipe) -> Callable[[HttpRequest, str], HttpResponse]:
        @wraps(view)
        def answer(request: HttpRequest, name: str) -> HttpResponse:
            recipe = _recipe(request, name)  # nothing is drawn of one that is not there
            return answered(request, lambda: view(request, recipe), takes=takes, by_role=True, of_recipes=True)

        return answer

    return declare


@requires("read-public")
@require_safe
@_prepared("a", "b", "against", "model", "format")
def recipe_board(request: HttpRequest, recipe: Recipe) -> HttpResponse:
    """The board of a recipe, for everybody: what rests on hidden keys is left out below staff."""
    spec = store.spec_of(recipe)
    board = boards.board(recipe, request.user)
    a, b, against, model = (request.GET.get(name, "")[:200] for name in ("a", "b", "against", "model"))
    known = known_models([*(row.model for row in board.rows), a, b])
    compared, problem, first, second = None, "", "", ""
    try:
        if a and b:
            first, second = known.shown(a), known.shown(b)
            compared = boards.compare(recipe, request.user, a, b)
        elif against:
            other = _recipe(request, against)
            first, second = str(recipe), str(other)
            compared = boards.compare_recipes(recipe, other, request.user, model)
    except BadInput as error:
        problem = str(error)
    if "format" in request.GET:
        rows = board.as_json() if compared is None else [row.as_json() for row in compared]
        return files.answer(rows, request.GET["format"], f"recipe-{recipe.name}")
    models = list(dict.fromkeys(row.model for row in board.rows if row.scenario not in (*board.published, boards.ALL)))
    context = {
        "section": "leaderboards",
        "compared": versus.measures_table(first, second, compared, "points") if compared else None,
        "problem": problem,
        "pick": [("a", "One"), ("b", "Other")],
        "others": boards.comparable(recipe, request.user),
        "against": against,
        "model": model,
        "invented": [name for name, model in known.items() if model.simulated],
        "chosen": (a, b) if a or b else models[:2],
        "models": models,
        "recipe": recipe,
        "spec": spec,
        "parts": pages.parts_of(spec),
        "board": board,
        "page": pages.board_page(board) if board.rows else None,
        "offered": files.offered(),
    }
    return render(request, "leaderboard/recipe-board.html", context)


@requires("read-public")
@require_safe
@_prepared(*answers_page.CHOICES, "page")
def recipe_answers(request: HttpRequest, recipe: Recipe) -> HttpResponse:
    """The answers of a model that its figures by a recipe are made of, of which those below staff see the open ones."""
    chosen = {key: value[:200] for key in answers_page.CHOICES if (value := request.GET.get(key, "").strip())}
    board = boards.board(recipe, request.user)
    known = [row.model for row in board.rows]
    model = chosen.setdefault("model", known[0] if known else "")
    if model not in known and model:
        raise Http404("no answers of this model")
    answers, withheld, notes = boards.answers_of(recipe, model, request.user)
    marks = boards.marks_of(recipe, model, request.user) if board.metric.name == "language" else {}
    context = {
        "section": "leaderboards",
        "recipe": recipe,
        "model": model,
        "invented": known_models([model])[model].simulated,
        "title": board.metric.title,
        "figures": answers_page.figures(board, model),
        "answers": answers_page.listed(request, recipe, answers, chosen, marks) if len(answers) else None,
        "damages": [
            found
            for row in board.rows
            if row.model == model and row.scenario == chosen.get("scenario", row.scenario)
            if (found := pages.damage_of(row, chosen.get("condition", "")))
        ],
        "withheld": withheld,
        "marks_closed": board.metric.name == "language" and not marks,
        "notes": notes,
    }
    return render(request, "leaderboard/recipe-answers.html", context)


@requires("read-public")
@require_safe
def desiderata_page(request: HttpRequest) -> HttpResponse:
    """Models by accuracy and the six desiderata of ChEF. ``?calibration=NAME`` and so on choose recipes."""
    takes = (*QUALITIES, pages.TOGETHER, "format", "part")
    return answered(request, lambda: _desiderata(request), takes=takes, by_role=True, of_recipes=True)


def _desiderata(request: HttpRequest) -> HttpResponse:
    known = (*QUALITIES, pages.TOGETHER)
    chosen = {name: request.GET[name][:100] for name in known if request.GET.get(name)}
    board = desiderata(request.user, chosen)
    if "format" in request.GET:
        part = board.together if request.GET.get("part") == "together" else board.rows
        return files.answer([row.as_json() for row in part], request.GET["format"], "desiderata")
    where = request.build_absolute_uri(request.path) + (f"?{urlencode(chosen)}" if chosen else "")
    context = {
        "section": "leaderboards",
        "board": board,
        "page": pages.desiderata_page(board, chosen) if board.rows else None,
        "citation": citation_of("More than right answers: models by seven qualities", "desiderata", where),
        "offered": files.offered(),
        "query": urlencode(chosen),
        "together": [("How they go together, CSV", f"?{urlencode(chosen | {'part': 'together', 'format': 'csv'})}")],
    }
    return render(request, "leaderboard/desiderata.html", context)
