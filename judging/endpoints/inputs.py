"""What is typed to add a judge (``judging.inputs``)."""

from typing import Any

from rest_framework import serializers

LARGEST = 10**9


class JudgeIn(serializers.Serializer[Any]):
    """A judge behind an OpenAI-compatible endpoint, at a host that the installation allows."""

    name = serializers.CharField(max_length=200, help_text="As boards and files will show it.")
    base_url = serializers.CharField(max_length=500, help_text="Up to the version, e.g. https://api.openai.com/v1")
    model = serializers.CharField(max_length=200, help_text="As the endpoint calls it.")
    key_env = serializers.CharField(
        max_length=100,
        required=False,
        default="",
        allow_blank=True,
        help_text="The name of a variable in the worker's environment, e.g. OPENAI_API_KEY. Never the key itself.",
    )
    concurrency = serializers.IntegerField(min_value=1, max_value=1024, required=False, default=16)
    timeout = serializers.IntegerField(min_value=1, max_value=3600, required=False, default=120)
    rpm = serializers.IntegerField(
        min_value=1,
        max_value=LARGEST,
        required=False,
        default=None,
        allow_null=True,
        help_text="Over all workers. Empty: no limit.",
    )
    tpm = serializers.IntegerField(
        min_value=1,
        max_value=LARGEST,
        required=False,
        default=None,
        allow_null=True,
        help_text="Over all workers. Empty: no limit.",
    )
    waits = serializers.CharField(
        max_length=100,
        required=False,
        default="",
        allow_blank=True,
        help_text="Where it fails: the first time, the second and so on. Empty: 1, 5, 15, 30, 60.",
    )
    give_up_after = serializers.IntegerField(
        min_value=1,
        max_value=LARGEST,
        required=False,
        default=None,
        allow_null=True,
        help_text="Of nothing but errors; it then pauses. Empty: 1440, a day.",
    )
    price_in = serializers.FloatField(
        min_value=0,
        max_value=LARGEST,
        required=False,
        default=None,
        allow_null=True,
        help_text="US dollars per million tokens sent.",
    )
    price_out = serializers.FloatField(
        min_value=0,
        max_value=LARGEST,
        required=False,
        default=None,
        allow_null=True,
        help_text="US dollars per million tokens received.",
    )
    family = serializers.CharField(
        max_length=100,
        required=False,
        default="",
        allow_blank=True,
        help_text="Of the model, for the bias towards its own family.",
    )
