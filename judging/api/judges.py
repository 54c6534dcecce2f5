"""The API of judges and prompt templates."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rules import allowed
from bank.api.base import Conflict, conflicts, sent
from bank.api.resources import posted
from bank.api.strict import StrictSerializer
from bank.errors import BadInput
from judging.api import Resource
from judging.endpoints.inputs import JudgeIn
from judging.endpoints.judges import add_judge, name_maker
from judging.endpoints.probing import probe_judge
from judging.inputs import fields_of
from judging.models import Judge, PromptTemplate
from judging.protocols.prompts.stored import TemplateIn, add_template, discard_template


class JudgeSerializer(serializers.ModelSerializer[Judge]):
    """A judge. How its endpoint is reached is for staff; a stored key is never told."""

    has_key = serializers.SerializerMethodField(help_text="whether a key is stored")

    class Meta:
        model = Judge
        fields = (
            "id",
            "name",
            "model",
            "host",
            "base_url",
            "key_env",
            "has_key",
            "key_header",
            "query",
            "headers",
            "baseline",
            "family",
            "concurrency",
            "rpm",
            "tpm",
            "timeout",
            "waits",
            "give_up_after",
            "price_in",
            "price_cached",
            "price_out",
            "abilities",
            "simulated",
        )
        staff_only = ("base_url", "key_env", "has_key", "key_header", "query", "headers")

    def get_has_key(self, judge: Judge) -> bool:
        return bool(judge.key)

    def to_representation(self, judge: Judge) -> dict[str, Any]:
        data = super().to_representation(judge)
        if not allowed(self.context["request"].user, "write-judging"):
            for name in self.Meta.staff_only:
                data.pop(name)
        return data


class JudgeChanges(StrictSerializer, JudgeIn):
    """Limits and prices of a judge, its key or the variable of it, and how it is reached."""

    elsewhere = dict.fromkeys(("name", "base_url", "model"), "That is another judge: add it under another name.")
    name = base_url = model = None  # type: ignore[assignment]  # what its verdicts are known by stays


class Judges(mixins.RetrieveModelMixin, Resource[Judge]):
    """Judges; staff add and change them and test what their endpoints can do."""

    access_rules = dict.fromkeys(("create", "partial_update", "probe"), "write-judging")
    serializer_class = JudgeSerializer
    queryset = Judge.objects.all()
    filters = {"name": "name", "baseline": "baseline"}

    @extend_schema(request=JudgeIn, responses={201: JudgeSerializer})
    def create(self, request: Request) -> Response:
        return self.responded(add_judge(**sent(request, JudgeIn)), made=True)

    @extend_schema(request=JudgeChanges(partial=True), responses=JudgeSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a judge's limits, prices, key or how it is reached; runs that start afterwards use them. For staff."""
        judge = self.get_object()
        given = sent(request, JudgeChanges, partial=True)
        if not judge.base_url and set(given) == {"family"}:
            with conflicts(BadInput):
                return self.responded(name_maker(judge=judge, **given))
        if not judge.base_url:
            raise Conflict({"detail": f"{judge} has no endpoint."})
        replaced = {"key_env"} if given.get("key") else set()
        known = {name: getattr(judge, name) for name in fields_of(JudgeIn) if name not in replaced | {"key"}}
        return self.responded(add_judge(**known | given))

    @posted(None, {200: JudgeSerializer})
    def probe(self, request: Request, pk: str) -> Response:
        """Test with a few short calls what the endpoint can do; runs that start afterwards use the results."""
        judge = self.get_object()
        with conflicts(BadInput):
            probe_judge(judge=judge)
        return self.responded(judge)


class TemplateSerializer(serializers.ModelSerializer[PromptTemplate]):
    """A version of a prompt template that staff wrote. ``name@version`` is a value of the setting ``prompt``."""

    class Meta:
        model = PromptTemplate
        fields = ("id", "protocol", "name", "version", "text", "sha256", "note", "as_published", "created_at")


class Templates(mixins.RetrieveModelMixin, Resource[PromptTemplate]):
    """Prompt templates that staff wrote; staff add versions. Built-in ones are part of the software."""

    access_rules = dict.fromkeys(("create", "destroy"), "write-judging")
    serializer_class = TemplateSerializer
    queryset = PromptTemplate.objects.all()
    filters = {"protocol": "protocol", "name": "name"}

    @extend_schema(request=TemplateIn, responses={201: TemplateSerializer})
    def create(self, request: Request) -> Response:
        return self.responded(add_template(**sent(request, TemplateIn), by=self.request.user), made=True)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete the newest version of a name that no run has used. For staff."""
        discard_template(template=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)
