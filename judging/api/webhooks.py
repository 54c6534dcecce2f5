"""The API of webhooks, for administrators."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Delivery, Webhook
from bank.api.base import sent
from bank.api.resources import posted
from judging.api import Resource
from judging.webhooks import WebhookIn, add_webhook, remove_webhook, send_test

MOST_TOLD = 500  # deliveries


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook: an address that is told of events. Its secret is told once, when it is made."""

    class Meta:
        model = Webhook
        fields = ("id", "url", "events", "active", "failing_since", "created_at")


class MadeWebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook with its secret, with which deliveries are signed."""

    class Meta:
        model = Webhook
        fields = (*WebhookSerializer.Meta.fields, "secret")


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """What a webhook was told, and what became of it: the ``status`` of HTTP at the last try, or in ``words`` why there
    was none; ``not_before`` when it is tried next, if it is.
    """

    class Meta:
        model = Delivery
        fields = ("id", "event", "created_at", "tries", "tried_at", "status", "words", "not_before")


class Webhooks(Resource[Webhook]):
    """Webhooks: who is told of runs, campaigns, submissions and editions."""

    access_rule = "administer"
    serializer_class = WebhookSerializer
    queryset = Webhook.objects.all()

    @extend_schema(request=WebhookIn, responses={201: MadeWebhookSerializer})
    def create(self, request: Request) -> Response:
        webhook, _ = add_webhook(**sent(request, WebhookIn), by=self.request.user)
        return Response(MadeWebhookSerializer(webhook).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a webhook with its log."""
        remove_webhook(webhook=self.get_object(), by=self.request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @posted(None, {204: None})
    def test(self, request: Request, pk: str) -> Response:
        """Have a delivery sent that tells nothing."""
        send_test(webhook=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(responses=DeliverySerializer(many=True), parameters=[])
    @action(detail=True, pagination_class=None)
    def deliveries(self, request: Request, pk: str) -> Response:
        """What it was told, the newest first, up to 500."""
        return Response(DeliverySerializer(self.get_object().deliveries.all()[:MOST_TOLD], many=True).data)
