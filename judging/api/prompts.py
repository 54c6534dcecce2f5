"""Prompt templates for scripts."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from bank.imports import BadInput
from judging.models import PromptTemplate
from judging.prompts.stored import add_template


class TemplateSerializer(serializers.ModelSerializer[PromptTemplate]):
    """A version of a prompt template that staff wrote. ``name@version`` is a value of the setting ``prompt``."""

    class Meta:
        model = PromptTemplate
        fields = ("id", "protocol", "name", "version", "text", "sha256", "note", "created_at")


class TemplateIn(serializers.Serializer[Any]):
    """The next version of a name."""

    protocol = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=40)
    text = serializers.CharField(max_length=30_000, trim_whitespace=False)
    note = serializers.CharField(max_length=300, required=False, default="", allow_blank=True)


class Templates(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[PromptTemplate]):
    """Prompt templates that staff wrote; staff add versions. Built-in ones are part of the software."""

    access_rule = "read-judging"
    access_rules = {"create": "write-judging"}
    serializer_class = TemplateSerializer
    queryset = PromptTemplate.objects.all()
    lookup_value_regex = "[0-9]+"
    filters = {"protocol": "protocol", "name": "name"}

    @extend_schema(request=TemplateIn, responses={201: TemplateSerializer})
    def create(self, request: Request) -> Response:
        given = TemplateIn(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            made = add_template(**given.validated_data, by=cast(User, request.user))
        except BadInput as error:
            raise exceptions.ValidationError({error.field or "detail": str(error).split("\n")}) from None
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)
