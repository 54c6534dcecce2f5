"""What is typed to start and change runs, by whatever door it comes (``judging.inputs``)."""

from typing import Any, ClassVar

from rest_framework import serializers

from accounts.models import User
from bank.api.strict import StrictSerializer
from bank.models import Benchmark
from judging.collecting.collectors import COLLECTORS
from judging.models import Judge, Judgment, Run
from judging.protocols.settings import NO_OBJECT
from judging.runs import actions

NOT_A_DICT = NO_OBJECT.replace("{", "{{").replace("}", "}}")  # the framework formats its messages


class JudgeField(serializers.CharField):
    """A judge by its name."""

    def to_internal_value(self, data: Any) -> Any:
        name = super().to_internal_value(data)
        judge = Judge.objects.filter(name=name).first()
        if judge is None:
            writes = self.parent.initial_data.get("kind") in COLLECTORS
            judges = Judge.objects.exclude(base_url="") if writes else Judge.objects.all()
            known = ", ".join(judges.values_list("name", flat=True)) or "none yet"
            called = "endpoint" if writes else "judge"
            raise serializers.ValidationError(
                f"Unknown {called} {name!r}. Known: {known}. Add one with add_judge.", "unknown"
            )
        return judge


class BenchmarkField(serializers.CharField):
    """A benchmark by SLUG or SLUG@VERSION."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return Benchmark.objects.named(super().to_internal_value(data))
        except Benchmark.DoesNotExist as error:
            raise serializers.ValidationError(str(error), "unknown") from None


class RunIn(StrictSerializer):
    """What to judge. The same judge, protocol, settings and items continue the existing run, unless ``new``."""

    elsewhere: ClassVar = {"items": 'Unknown field. Choose items in the settings: {"settings": {"items": ...}}.'}

    kind = serializers.ChoiceField(
        [Run.Kind.JUDGMENTS, Run.Kind.ATTACKS, *COLLECTORS],
        default=Run.Kind.JUDGMENTS,
        help_text=(
            "responses: a model's answers to the benchmark; captions and objects: what its pictures "
            "show; rewrites (questions in other words) and drafts (instructions and criteria), for people to read; "
            "verbs: what instructions ask to do, counted on the benchmark's page; "
            "attacks: how far the judge can be misled"
        ),
    )
    benchmark = BenchmarkField(help_text="SLUG or SLUG@VERSION")
    judge = JudgeField(help_text="its name; for collecting runs, the name of the endpoint")
    protocol = serializers.CharField(default="", help_text="for judgments and attacks")
    model = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=200,
        help_text="the model that the texts belong to",
    )
    settings = serializers.DictField(default=dict, error_messages={"not_a_dict": NOT_A_DICT})
    attacks = serializers.ListField(
        child=serializers.CharField(),
        default=list,
        help_text="NAME or NAME@VERSION, for a run of kind attacks; none: all attacks",
    )
    limit = serializers.IntegerField(
        min_value=1,
        default=None,
        allow_null=True,
        help_text="the first so many items or samples only, to try things out",
    )
    budget = serializers.FloatField(
        default=None, allow_null=True, help_text="US dollars: the run pauses before it is overspent"
    )
    new = serializers.BooleanField(default=False, help_text="start a new run even if the same run exists")
    reuse = serializers.BooleanField(default=False, help_text="answer identical calls from stored ones, at no cost")
    batched = serializers.BooleanField(default=False, help_text="use the endpoint's batch interface")

    def start(self, *, by: User | None = None, **others: Any) -> Run:
        """Start the run, or continue the one that does the same. Raises BadInput."""
        values = dict(self.validated_data) | {"by": by} | others
        kind, model, protocol, attacks = (values.pop(name) for name in ("kind", "model", "protocol", "attacks"))
        if kind in COLLECTORS:
            return actions.start_collecting(kind=kind, model=model, **values)
        return actions.start_run(protocol=protocol, attacks=attacks if kind == Run.Kind.ATTACKS else None, **values)

    def collecting(self) -> actions.Collecting:
        """What a collecting run would ask. Raises BadInput."""
        names = ("kind", "judge", "benchmark", "settings", "model", "limit", "budget", "batched")
        return actions.plan_collecting(**{name: self.validated_data[name] for name in names})


class RetryIn(StrictSerializer):
    """Which failures to retry; without either field, all of them."""

    statuses = serializers.ListField(
        child=serializers.ChoiceField(Judgment.FAILURES), default=list, help_text="none: any status"
    )
    reason = serializers.CharField(
        default=None, allow_null=True, allow_blank=True, help_text="exactly as in the judgments"
    )


class ResumeIn(StrictSerializer):
    """How a paused run resumes."""

    budget = serializers.FloatField(
        default=None,
        allow_null=True,
        help_text="US dollars in total; without a value it stays unchanged",
    )


class RunField(serializers.PrimaryKeyRelatedField[Run]):
    """A run by its number."""

    default_error_messages: ClassVar = {"does_not_exist": "Unknown run {pk_value}."}


class JuryIn(serializers.Serializer[Any]):
    """Several judges as one. The same name with the same runs recomputes the verdicts."""

    name = serializers.CharField(max_length=200, help_text="As boards and files will show it.")
    runs = RunField(
        many=True,
        queryset=Run.objects.select_related("judge", "benchmark"),
        help_text="one run of each member",
    )
