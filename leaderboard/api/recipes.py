"""API of recipes: the recipes themselves, evaluations by them, their boards, and the desiderata."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.rules import allowed
from bank.api.base import sent
from bank.api.resources import posted
from bank.api.strict import StrictSerializer
from bank.models import Recipe
from bank.recipes import spec as specs
from bank.recipes import store
from judging.models import Evaluation, Judge, Run
from judging.recipes import evaluations
from leaderboard.api import NO_ROWS_YET, RowsView, as_rows, waits
from leaderboard.boards.recipes import board as boards
from leaderboard.boards.recipes.desiderata import QUALITIES, DesiderataRow, QualityCorrelationRow, desiderata
from leaderboard.editions import recipes as recipe_editions
from leaderboard.kept.pages import answered
from leaderboard.rows import Row


class RecipeSerializer(serializers.ModelSerializer[Recipe]):
    """A version of a recipe: ``spec`` is its YAML as an object, which POST takes as it is."""

    spec = serializers.SerializerMethodField()

    class Meta:
        model = Recipe
        fields = ("id", "name", "version", "sha256", "built_in", "created_at", "spec")

    def get_spec(self, recipe: Recipe) -> dict[str, Any]:
        spec = store.spec_of(recipe)
        return {"name": spec.name, "version": spec.version} | spec.model_dump(mode="json", exclude_defaults=True)


PUBLISHED = inline_serializer("PublishedEdition", {"edition": serializers.IntegerField(help_text="its number")})


class Recipes(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Recipe]):
    """Recipes: how models are asked, and how their answers become a number (ChEF). Curators write them.

    A version that was used never changes: another content under its name makes the next version. ``<name>`` is NAME,
    its newest version, or NAME@VERSION.
    """

    access_rule = "read-judging"
    access_rules: ClassVar = {**dict.fromkeys(("create", "destroy"), "write-judging"), "publish": "publish"}
    serializer_class = RecipeSerializer
    queryset = Recipe.objects.order_by("pk")
    filters: ClassVar = {"name": "name"}
    lookup_field = "name"
    lookup_value_regex = "[-a-z0-9@]+"

    def get_queryset(self) -> Any:
        return store.visible_to(self.request.user).order_by("pk")

    def get_object(self) -> Recipe:
        try:
            return store.get(self.kwargs["name"], self.request.user)
        except store.UnknownRecipe:
            raise NotFound from None

    @extend_schema(
        request={"application/json": OpenApiTypes.OBJECT}, responses={201: RecipeSerializer, 200: RecipeSerializer}
    )
    def create(self, request: Request) -> Response:
        """Store a recipe. 201 for a new or changed version, 200 where one says the same."""
        recipe, changed = store.save(specs.parsed(request.data), by=cast(User, request.user))
        return Response(
            self.get_serializer(recipe).data, status=status.HTTP_201_CREATED if changed else status.HTTP_200_OK
        )

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Request, name: str = "") -> Response:
        """Remove a version that nothing was collected with. For staff."""
        store.remove(self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @posted(None, {201: PUBLISHED})
    def publish(self, request: Request, name: str = "") -> Response:
        """Publish an edition of what rests on hidden keys in the recipe's board: {"edition": its number}."""
        edition = recipe_editions.publish(self.get_object(), by=cast(User, request.user))
        return Response({"edition": edition.number}, status=status.HTTP_201_CREATED)


class EvaluationSerializer(serializers.ModelSerializer[Evaluation]):
    """A model asked by a recipe: ``runs`` are those of its scenarios, and of marks; ``state`` is that of the last."""

    recipe = serializers.CharField()
    endpoint = serializers.CharField(source="judge.name")
    model = serializers.CharField(source="model_name")
    runs = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()

    class Meta:
        model = Evaluation
        fields = (
            *("id", "recipe", "endpoint", "model", "limit", "budget", "state", "state_reason", "runs"),
            *("created_at", "finished_at"),
        )

    def get_runs(self, evaluation: Evaluation) -> list[int]:
        return [run.pk for run in sorted(evaluation.runs.all(), key=lambda run: run.pk)]

    def get_state(self, evaluation: Evaluation) -> str:
        if evaluation.state_reason:
            return "stopped"
        if evaluation.finished_at:
            return str(Run.State.FINISHED)
        runs = sorted(evaluation.runs.all(), key=lambda run: run.pk)
        return runs[-1].state if runs else str(Run.State.QUEUED)


class EvaluationIn(StrictSerializer):
    """Which endpoint is asked by which recipe. The same again goes on with what is there."""

    recipe = serializers.CharField(help_text="NAME or NAME@VERSION")
    endpoint = serializers.CharField(help_text="the name of a judge with an endpoint")
    model = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=200, help_text="the name that the answers belong to"
    )
    limit = serializers.IntegerField(
        min_value=1, required=False, default=None, allow_null=True, help_text="questions of each scenario"
    )
    budget = serializers.FloatField(required=False, default=None, allow_null=True, help_text="US dollars")
    estimate = serializers.BooleanField(
        required=False, default=False, help_text="say what it would take, and start nothing"
    )


class Evaluations(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Evaluation]):
    """Evaluations by recipes; staff start them, and have asked again what failed.

    Those whose right answers are marked are for staff: whether there is anything to mark tells what is right.
    """

    access_rule = "read-judging"
    access_rules: ClassVar = {"create": "write-judging", "retry": "write-judging"}
    serializer_class = EvaluationSerializer
    queryset = Evaluation.objects.select_related("recipe", "judge").prefetch_related("runs").order_by("pk")
    filters: ClassVar = {"recipe": "recipe__name", "model": "model_name"}

    def get_queryset(self) -> Any:
        viewer = self.request.user
        shown = self.queryset.filter(recipe__in=store.visible_to(viewer))
        return shown if allowed(viewer, "read-hidden") else shown.exclude(recipe__spec__metric="language")

    @extend_schema(request=EvaluationIn, responses=EvaluationSerializer)
    def create(self, request: Request) -> Response:
        """Start, or go on with, an evaluation: 201; with ``estimate`` what it would take: 200."""
        data = sent(request, EvaluationIn)
        judge = Judge.objects.filter(name=data.pop("endpoint")).first()
        if judge is None:
            raise ValidationError({"endpoint": "There is no endpoint of this name."})
        try:
            recipe = store.get(data.pop("recipe"))
            if data.pop("estimate"):
                data.pop("budget")
                found = evaluations.estimate(recipe, judge=judge, **data)
                return Response({name: getattr(found, name) for name in found.__slots__})
            made = evaluations.start_evaluation(recipe=recipe, judge=judge, by=cast(User, request.user), **data)
        except store.UnknownRecipe as error:
            raise ValidationError({"recipe": str(error)}) from None
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @posted(None, EvaluationSerializer)
    def retry(self, request: Request, pk: str = "") -> Response:
        """Ask again what failed, and go on with what paused."""
        evaluations.retry(self.get_object())
        return Response(self.get_serializer(self.get_object()).data)


class OfAll(RowsView):
    """Rows that are about no single benchmark."""

    access_rule = "read-public"
    accepted: tuple[str, ...] = ()

    def parameters(self, request: Request) -> dict[str, str]:
        given = {name: str(value)[:200] for name, value in request.query_params.items() if name != "format"}
        if unknown := sorted(given.keys() - set(self.accepted)):
            raise ValidationError({unknown[0]: f"Not a parameter here. There are: {', '.join(self.accepted)}."})
        return given

    def answered(self, request: Request, rows: Callable[[], Sequence[Row]]) -> HttpResponse:
        """The rows, or that a job computes them yet."""
        return answered(
            request,
            lambda: Response([row.as_json() for row in rows()]),
            takes=("format", *self.accepted),
            of_recipes=True,
            accept=request.accepted_renderer.media_type,
            waits=waits,
        )


class RecipeRows(OfAll):
    """The board of a recipe: each model in each scenario, and over all of them; or two models pairwise, or one model by
    this recipe and another.
    """

    accepted = ("recipe", "a", "b", "against", "model")

    @extend_schema(
        parameters=[
            OpenApiParameter("recipe", str, required=True, description="NAME or NAME@VERSION"),
            OpenApiParameter("a", str, description="a model, compared with the model b on the same questions"),
            OpenApiParameter("b", str),
            OpenApiParameter("against", str, description="another recipe, compared on the answers of model"),
            OpenApiParameter("model", str),
        ],
        responses=as_rows("RecipesRows", {boards.RecipeRow: {}, boards.RecipeMeasure: {}}) | NO_ROWS_YET,
    )
    def get(self, request: Request) -> HttpResponse:
        given = self.parameters(request)
        name = given.get("recipe", "")
        if not name:
            raise ValidationError({"recipe": "Say which: NAME or NAME@VERSION."})
        try:
            recipe = store.get(name, request.user)
            other = store.get(given["against"], request.user) if "against" in given else None
        except store.UnknownRecipe:
            raise NotFound from None

        def rows() -> Sequence[Row]:
            if other:
                return boards.compare_recipes(recipe, other, request.user, given.get("model", ""))
            if "a" in given or "b" in given:
                return boards.compare(recipe, request.user, given.get("a", ""), given.get("b", ""))
            return boards.board(recipe, request.user).rows

        return self.answered(request, rows)


class Desiderata(OfAll):
    """Models by accuracy and the six desiderata; ``part=together``: how these correlate over models."""

    accepted = ("part", *QUALITIES)

    @extend_schema(
        parameters=[
            OpenApiParameter("part", str, description="together: Pearson's correlation of every two"),
            *(OpenApiParameter(name, str, description="the recipe that measures it") for name in QUALITIES),
        ],
        responses=as_rows("DesiderataRows", {DesiderataRow: {}, QualityCorrelationRow: {}}) | NO_ROWS_YET,
    )
    def get(self, request: Request) -> HttpResponse:
        given = self.parameters(request)
        part = given.pop("part", "")
        if part not in ("", "together"):
            raise ValidationError({"part": "together, or nothing."})

        def rows() -> Sequence[Row]:
            board = desiderata(request.user, given)
            return board.together if part else board.rows

        return self.answered(request, rows)
