"""API of the bank."""

from dataclasses import asdict
from typing import Any, cast

from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import exceptions, mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

import bank.criteria
from accounts.http import person
from accounts.rules import IN_BODY, allowed, demand, through, where
from bank.api.base import FILES, conflicts, sent
from bank.api.exports import WAITS, answer_of
from bank.api.resources import Visible, posted
from bank.api.rows import TakesRows
from bank.api.strict import StrictSerializer, described
from bank.errors import BadInput, Stale
from bank.forms.benchmarks import Export
from bank.models import Benchmark, Draft, EvaluatedModel, Item, Sample, with_answers
from bank.models import Response as ModelResponse
from bank.picked import picked
from bank.recipes import store
from bank.samples import capabilities, drafts
from bank.samples.benchmarks import change_benchmark, find_benchmark, make_benchmark, set_visibility
from bank.samples.capability_trees import TITLES
from bank.samples.editor import change_sample
from bank.samples.items import make_some, plan_items
from bank.views.benchmarks import exported


class ReadOnly(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """Lists by cursor and single rows, under the access rule that the class carries."""

    access_rule = "read-public"
    filters: dict[str, str] = {}


class BenchmarkSerializer(serializers.ModelSerializer[Benchmark]):
    anchor = serializers.CharField(source="anchor.name", default=None, allow_null=True)

    class Meta:
        model = Benchmark
        fields = (
            "id",
            "slug",
            "version",
            "title",
            "description",
            "licence",
            "anchor",
            "visibility",
            "majority",
            "score_scale",
            "created_at",
        )


HIDDEN = {"criteria": "read-criteria", "analyses": "read-analyses", "names": "read-names"}  # wishes of an export
# What the page's form takes, which checks it.
EXPORT = inline_serializer("Export", {name: described(field) for name, field in Export.base_fields.items()})


class StepField(serializers.Serializer[Any]):
    value = serializers.FloatField()
    label = serializers.CharField(required=False, default="", allow_blank=True, max_length=60)  # type: ignore[assignment]


class BenchmarkChanges(StrictSerializer):
    """The facts of a benchmark, and who sees it."""

    title = serializers.CharField(max_length=200)
    description = serializers.CharField(max_length=20_000, allow_blank=True)
    licence = serializers.CharField(max_length=200, allow_blank=True)
    anchor = serializers.SlugRelatedField(
        slug_field="name", queryset=EvaluatedModel.objects.all(), allow_null=True, help_text="a model by its name"
    )
    majority = serializers.ChoiceField(Benchmark.Majority.choices)
    score_scale = StepField(many=True)


class BenchmarkIn(BenchmarkChanges):
    """A new benchmark; it is private until it is published."""

    slug = serializers.SlugField(max_length=80)
    version = serializers.CharField(max_length=40, default="1")
    tree = serializers.ChoiceField(["", *TITLES], default="", help_text="a capability tree to begin with")

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for name in map(str, BenchmarkChanges().fields):
            fields[name].required = name == "title"
        return fields


class VisibilityIn(StrictSerializer):
    visibility = serializers.ChoiceField(Benchmark.Visibility.choices, help_text="public: everybody sees it")


QUOTAS = inline_serializer(
    "Quota",
    {
        "path": serializers.CharField(),
        "quota": serializers.IntegerField(allow_null=True),
        "owner": serializers.CharField(),
        "approved": serializers.IntegerField(),
        "under_way": serializers.IntegerField(help_text="drafts, and those under review"),
        "rejected": serializers.IntegerField(),
        "missing": serializers.IntegerField(allow_null=True),
    },
    many=True,
)


class Benchmarks(Visible, ReadOnly):
    """Benchmarks that the caller may see."""

    serializer_class = BenchmarkSerializer
    queryset = Benchmark.objects.select_related("anchor")
    filters = {"slug": "slug", "version": "version"}
    access_rules = {
        **dict.fromkeys(("create", "partial_update"), "write-bank"),
        "publish": "publish",
        "quotas": "write-bank",
        "export": "write-bank",
    }
    access_of = through(Benchmark, "slug")

    @extend_schema(request=BenchmarkIn, responses={201: BenchmarkSerializer})
    def create(self, request: Request) -> Response:
        """Make a benchmark without samples; only staff see it until it is published. For staff."""
        benchmark = make_benchmark(**sent(request, BenchmarkIn))
        return Response(self.get_serializer(benchmark).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=BenchmarkChanges(partial=True), responses=BenchmarkSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a benchmark's facts. For staff."""
        benchmark = self.get_object()
        changes = sent(request, BenchmarkChanges, partial=True)
        if "anchor" in changes:  # of all models that there are
            demand(request, "write-bank")
        with conflicts(Stale):
            change_benchmark(benchmark=benchmark, edition=benchmark.edition, **changes)
        return Response(self.get_serializer(self.get_object()).data)

    @posted(VisibilityIn, BenchmarkSerializer)
    def publish(self, request: Request, pk: str) -> Response:
        """Let everybody see its approved samples and its boards, or staff alone again. For staff."""
        given = sent(request, VisibilityIn)
        set_visibility(benchmark=self.get_object(), by=person(request), **given)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(responses=QUOTAS, parameters=[])
    @action(detail=True, pagination_class=None)
    def quotas(self, request: Request, pk: str) -> Response:
        """How many approved samples each capability is to have, who sees to it, and how far it is. For curators."""
        rows = capabilities.quotas_of(self.get_object())
        return Response([asdict(row) | {"missing": row.missing} for row in rows])

    @posted(EXPORT, FILES | WAITS)
    def export(self, request: Request, pk: str) -> HttpResponseBase:
        """A table as a file: samples as JSON Lines, if nothing else is said. Hidden text leaves only with a reason, and
        is logged. A large file is written by a worker, or any `later`: the answer is 202 with where it will be. For
        curators.
        """
        sent = request.data if isinstance(request.data, dict) else {}
        if unknown := sorted(set(sent) - set(Export.base_fields)):
            raise exceptions.ValidationError(dict.fromkeys(unknown, "There is no such field."))
        for wish, rule in HIDDEN.items():
            if sent.get(wish):
                demand(request, rule, of=self.get_object())
        form = Export({"what": "samples", "shape": "jsonl"} | dict(sent.items()))
        answer = exported(form, self.get_object(), person(request)) if form.is_valid() else None
        if answer is None:
            raise exceptions.ValidationError(cast(Any, form.errors))
        return answer_of(answer)


class DraftSerializer(serializers.ModelSerializer[Draft]):
    """What an endpoint wrote for a sample: ``part`` is a way of saying its question in other words, or ``sample``; the
    text of that is JSON of ``instruction`` and ``criteria``.
    """

    benchmark = serializers.CharField(source="sample.benchmark.__str__")
    sample = serializers.CharField(source="sample.key")
    text = serializers.SerializerMethodField()

    class Meta:
        model = Draft
        fields = ("id", "benchmark", "sample", "part", "text", "origin", "state", "created_at", "decided_at")

    def get_text(self, draft: Draft) -> str:
        """Empty once it was decided about what may now be a criterion."""
        return draft.text if draft.part != Draft.SAMPLE or draft.state == Draft.State.WAITING else ""


class Drafts(ReadOnly):
    """Drafts by endpoints, which count for nothing until a person takes them. For curators and administrators; reading
    what may become criteria is logged.
    """

    access_rule = "write-bank"
    serializer_class = DraftSerializer
    queryset = Draft.objects.select_related("sample__benchmark").order_by("pk")
    filters = {"benchmark": "sample__benchmark__slug", "sample": "sample__key", "part": "part", "state": "state"}

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        serializer = super().get_serializer(*args, **kwargs)
        if args:
            shown = args[0] if kwargs.get("many") else [args[0]]
            proposed = [draft.sample_id for draft in shown if draft.part == Draft.SAMPLE]
            if proposed:
                bank.criteria.record(who=person(self.request), how="drafts", sample_ids=proposed)
        return serializer

    @posted(None, DraftSerializer)
    def take(self, request: Request, pk: str) -> Response:
        """Take a question in other words; what is to become part of a sample is taken in its editor."""
        return self._decided(request, drafts.take)

    @posted(None, DraftSerializer)
    def dismiss(self, request: Request, pk: str) -> Response:
        return self._decided(request, drafts.dismiss)

    def _decided(self, request: Request, decide: Any) -> Response:
        draft = self.get_object()
        try:
            decide(drafts=Draft.objects.filter(pk=draft.pk), by=person(request))
        except BadInput as error:
            raise exceptions.ValidationError({"part": [str(error)]}) from None
        return Response(self.get_serializer(self.get_object()).data)


PUBLIC_COLUMNS = ("key", "kind", "category", "weight", "text")


class SampleSerializer(serializers.ModelSerializer[Sample]):
    benchmark = serializers.CharField(source="benchmark.__str__")
    capability = serializers.SerializerMethodField()
    images = serializers.SerializerMethodField()
    absent_images = serializers.SerializerMethodField()
    public_criteria = serializers.SerializerMethodField()

    class Meta:
        model = Sample
        fields = (
            "id",
            "benchmark",
            "key",
            "instruction",
            "hint",
            "language",
            "question_type",
            "options",
            "split",
            "capability",
            "source",
            "group",
            "images",
            "absent_images",
            "public_criteria",
            "status",
        )

    def get_capability(self, sample: Sample) -> list[str]:
        return sample.capability.path.split(" / ") if sample.capability else []

    def get_images(self, sample: Sample) -> list[dict[str, Any]]:
        return [
            image.as_dict() | {"url": reverse("bank:image", args=[image.sha256, image.kind])}
            for image in sample.images.all()
        ]

    def get_public_criteria(self, sample: Sample) -> list[dict[str, Any]]:
        """Those that the benchmark shows to everybody; of all samples of the page in one query."""
        by_sample: dict[int, Any] = cast(dict[str, Any], self.context).setdefault("public_criteria", {})
        if sample.pk not in by_sample:
            shown = self.parent.instance if isinstance(self.parent, serializers.ListSerializer) else [sample]
            page, viewer = list(shown or [sample]), self.context["request"].user
            by_sample |= {row.pk: [] for row in page} | bank.criteria.for_public(samples=page, viewer=viewer)
        return [picked(text, PUBLIC_COLUMNS) for text in by_sample[sample.pk]]

    def get_absent_images(self, sample: Sample) -> list[dict[str, Any]]:
        """Pictures that are named but not here, without the names of their files, which may tell too much."""
        names = ("position", "url", "description")
        return [{name: image.get(name, "") for name in names} for image in sample.absent_images]


class SampleChanges(StrictSerializer):
    """What of a sample changes; pictures and criteria stay. Each change is a revision with its ``note``."""

    elsewhere = dict.fromkeys(("images", "criteria"), "Pictures and criteria change in the editor.")

    instruction = serializers.CharField(max_length=200_000, trim_whitespace=False)
    hint = serializers.CharField(max_length=20_000, allow_blank=True)
    language = serializers.CharField(max_length=16, allow_blank=True)
    question_type = serializers.CharField(max_length=40, allow_blank=True)
    options = serializers.DictField(child=serializers.CharField(), help_text="by letter; none, or two to 26")
    split = serializers.CharField(max_length=40, allow_blank=True)
    capability = serializers.CharField(max_length=700, allow_blank=True, help_text="its path, joined by ' / '")
    source = serializers.CharField(max_length=200, allow_blank=True)  # type: ignore[assignment]
    group = serializers.CharField(max_length=200, allow_blank=True)
    status = serializers.ChoiceField(Sample.Status.choices, help_text="rejected needs a note")
    note = serializers.CharField(max_length=500, allow_blank=True)

    def validate_options(self, options: dict[str, str]) -> dict[str, str]:
        if len(options) not in (0, *range(2, 27)) or not all(name.isalnum() and len(name) < 3 for name in options):
            raise serializers.ValidationError("None, or two to 26 of them, each by a letter or number.")
        return options


class CriterionSerializer(serializers.Serializer[bank.criteria.Text]):
    key = serializers.CharField()
    kind = serializers.CharField()
    category = serializers.CharField()
    weight = serializers.FloatField(allow_null=True)
    shown_to = serializers.CharField()
    version = serializers.IntegerField()
    text = serializers.CharField()


class Samples(Visible, TakesRows, ReadOnly):
    """Samples that the caller may see: image, instruction, options; of what they are judged by only what is public."""

    part = "samples"
    serializer_class = SampleSerializer
    queryset = Sample.objects.select_related("benchmark", "capability").prefetch_related("images")
    filters = {
        "benchmark": "benchmark__slug",
        "version": "benchmark__version",
        "key": "key",
        "split": "split",
        "question_type": "question_type",
        "language": "language",
    }
    access_rules = {"criteria": "read-criteria", **dict.fromkeys(("create", "partial_update"), "write-bank")}
    access_of = through(Sample, "benchmark__slug")

    @extend_schema(request=SampleChanges(partial=True), responses=SampleSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a sample; its criteria are read and kept, which is logged. For staff."""
        sample = self.get_object()
        values, by = sent(request, SampleChanges, partial=True), person(request)
        if "capability" in values:
            path, nodes = values["capability"], sample.benchmark.capabilities
            values["capability"] = nodes.filter(path=path).first()
            if path and values["capability"] is None:
                raise exceptions.ValidationError({"capability": f"{sample.benchmark} has no capability {path!r}."})
        with conflicts(Stale):
            changed = change_sample(by=by, sample=sample, note=values.pop("note", ""), values=values)
        return Response(self.get_serializer(changed).data)

    @extend_schema(responses=CriterionSerializer(many=True), parameters=[])
    @action(detail=True, pagination_class=None)
    def criteria(self, request: Request, pk: str) -> Response:
        """What the sample is judged by. For curators and administrators; each call is logged."""
        sample = self.get_object()
        criteria = bank.criteria.for_staff(user=person(request), samples=[sample], how="api")
        return Response(CriterionSerializer(cast(Any, criteria.get(sample.pk, [])), many=True).data)


class ModelSerializer(serializers.ModelSerializer[EvaluatedModel]):
    class Meta:
        model = EvaluatedModel
        fields = ("id", "name", *EvaluatedModel.CARD)
        read_only_fields = ("name",)
        extra_kwargs = {"price_in": {"min_value": 0}, "price_out": {"min_value": 0}}


class Models(mixins.UpdateModelMixin, ReadOnly):
    """Evaluated models that have a response to something the caller may see. Staff change the card with PATCH."""

    access_rules = {"partial_update": "write-bank"}
    http_method_names = ["get", "head", "options", "patch"]
    serializer_class = ModelSerializer
    queryset = EvaluatedModel.objects.all()
    filters = {"name": "name", "organisation": "organisation"}

    def get_queryset(self) -> Any:
        if allowed(self.request.user, "read-bank"):
            return self.queryset
        responses = ModelResponse.objects.visible_to(self.request.user)
        return self.queryset.filter(pk__in=responses.values("model"))


class ResponseSerializer(serializers.ModelSerializer[ModelResponse]):
    sample = serializers.CharField(source="sample.key")
    benchmark = serializers.CharField(source="sample.benchmark.__str__")
    model = serializers.CharField(source="model.name")

    class Meta:
        model = ModelResponse
        fields = ("id", "benchmark", "sample", "model", "variant", "text", "status", "reason", "tokens")


class Responses(TakesRows, ReadOnly):
    """Models' answers. Not for annotators: a blind campaign hides who answered. What others submitted is for staff."""

    part = "responses"
    access_rule = "read-labels"
    access_rules = {"create": "write-bank"}
    serializer_class = ResponseSerializer
    lookup_value_regex = "[0-9]+"
    filters = {
        "benchmark": "sample__benchmark__slug",
        "version": "sample__benchmark__version",
        "sample": "sample__key",
        "model": "model__name",
        "status": "status",
    }

    def get_queryset(self) -> Any:
        return ModelResponse.objects.seen_by(self.request.user).select_related("sample__benchmark", "model")


class RecipeResponseSerializer(ResponseSerializer):
    """A model's answer by a recipe: ``variant`` is the condition, ``turn`` the step of the conversation."""

    recipe = serializers.CharField(source="recipe.__str__")

    class Meta:
        model = ModelResponse
        fields = (
            *("id", "recipe", "benchmark", "sample", "model", "variant", "repeat", "turn", "text", "status", "reason"),
            *("tokens", "option_order", "likelihoods"),
        )


class RecipeResponses(Responses):
    """Models' answers by recipes, each turn and repeat, with the log-likelihoods of a pool where these were read."""

    part = "recipe_responses"
    serializer_class = RecipeResponseSerializer
    filters = {**Responses.filters, "recipe": "recipe__name", "variant": "variant"}

    def get_queryset(self) -> Any:
        rows = ModelResponse.all_objects.seen_by(self.request.user).exclude(recipe=None)
        rows = rows.filter(recipe__in=store.visible_to(self.request.user))
        return rows.select_related("sample__benchmark", "model", "recipe")


class ItemSerializer(serializers.ModelSerializer[Item]):
    sample = serializers.CharField(source="sample.key")
    benchmark = serializers.CharField(source="sample.benchmark.__str__")
    responses = serializers.SerializerMethodField()

    class Meta:
        model = Item
        fields = ("id", "kind", "benchmark", "sample", "responses")

    def get_responses(self, item: Item) -> list[dict[str, Any]]:
        """None while people label the item blind, below staff: they name the models."""
        if item.hides_authors_from(self.context["request"].user):
            return []
        return [
            {"id": response.pk, "model": response.model.name, "variant": response.variant}
            for response in item.ordered_responses()
        ]


class MakeItemsSerializer(StrictSerializer):
    """What ``manage.py make_items`` takes. ``after``: where an earlier answer said to go on."""

    benchmark = serializers.CharField(max_length=130, help_text="SLUG or SLUG@VERSION")
    kind = serializers.ChoiceField(choices=Item.Kind.choices)
    models = serializers.ListField(child=serializers.CharField(max_length=200), required=False, max_length=10_000)
    anchor = serializers.CharField(required=False, allow_blank=True, max_length=200)
    sample = serializers.IntegerField(required=False, min_value=1)
    seed = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    rotations = serializers.BooleanField(required=False)
    bare = serializers.BooleanField(required=False)
    size = serializers.IntegerField(required=False, allow_null=True, min_value=3, max_value=26)
    least = serializers.IntegerField(required=False, min_value=0, max_value=1_000_000)
    apart = serializers.BooleanField(required=False)
    after = serializers.IntegerField(required=False, min_value=0)


class MadeItemsSerializer(serializers.Serializer[Any]):
    made = serializers.IntegerField(help_text="Items that were not there before")
    after = serializers.IntegerField(allow_null=True, help_text="Send it again with this; null where all are there")


class Items(Visible, ReadOnly):
    """What is judged and labelled, responses in canonical order."""

    access_rule = "read-labels"
    access_rules = {"create": "write-bank"}
    access_ofs = {"create": IN_BODY}
    serializer_class = ItemSerializer
    queryset = Item.objects.select_related("sample__benchmark").prefetch_related(with_answers())
    filters = {
        "benchmark": "sample__benchmark__slug",
        "version": "sample__benchmark__version",
        "sample": "sample__key",
        "kind": "kind",
    }

    @extend_schema(request=MakeItemsSerializer, responses={200: MadeItemsSerializer})
    def create(self, request: Request) -> Response:
        """Make items from stored responses, for some seconds at a time; none is made twice."""
        values = sent(request, MakeItemsSerializer)
        after = values.pop("after", 0)
        try:
            values["benchmark"] = find_benchmark(values["benchmark"], where(request.user, "write-bank"))
            plan = plan_items(**values)
        except BadInput as error:
            raise serializers.ValidationError({"detail": str(error)}) from None
        made, after = make_some(plan, after=after)
        return Response({"made": made, "after": after if after < len(plan.samples) else None})
