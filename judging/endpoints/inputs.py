"""What is typed to add a judge (``judging.inputs``)."""

from typing import Any

from rest_framework import serializers

LARGEST = 10**9
OPTIONAL: Any = {"default": None, "allow_null": True}
BLANK: Any = {"default": "", "allow_blank": True}


class JudgeIn(serializers.Serializer[Any]):
    """A judge behind an OpenAI-compatible endpoint, at a host that the installation allows."""

    name = serializers.CharField(max_length=200, help_text="As boards and files will show it.")
    base_url = serializers.CharField(max_length=500, help_text="Up to the version, e.g. https://api.openai.com/v1")
    model = serializers.CharField(max_length=200, help_text="As the endpoint calls it.")
    key_env = serializers.CharField(
        max_length=100,
        **BLANK,
        help_text="The name of a variable in the worker's environment, e.g. OPENAI_API_KEY. Never the key itself.",
    )
    key = serializers.CharField(
        max_length=2_000,
        **BLANK,
        write_only=True,
        help_text="Sealed, and never shown again. Empty: the stored one stays, or it is in a variable.",
    )
    key_header = serializers.CharField(
        max_length=60,
        **BLANK,
        help_text="The header of the key, e.g. api-key at Azure. Empty: Authorization, as Bearer.",
    )
    query = serializers.CharField(
        max_length=200,
        **BLANK,
        help_text="Behind each path, e.g. api-version=2024-10-21 at Azure.",
    )
    headers = serializers.CharField(
        max_length=4_000,
        **BLANK,
        help_text="Sent with each call, one a line, e.g. OpenAI-Organization: org-1. Seen by staff.",
    )
    concurrency = serializers.IntegerField(
        min_value=1, max_value=1024, default=16, help_text="Calls at once, over all workers."
    )
    timeout = serializers.IntegerField(
        min_value=1, max_value=3600, default=120, help_text="Seconds that one call may take."
    )
    rpm = serializers.IntegerField(
        min_value=1,
        max_value=LARGEST,
        **OPTIONAL,
        help_text="Calls a minute, over all workers. Empty: no limit.",
    )
    tpm = serializers.IntegerField(
        min_value=1,
        max_value=LARGEST,
        **OPTIONAL,
        help_text="Tokens a minute, over all workers. Empty: no limit.",
    )
    waits = serializers.CharField(
        max_length=100,
        **BLANK,
        help_text="Minutes before it is tried again where it fails: first, second and so on. Empty: 1, 5, 15, 30, 60.",
    )
    give_up_after = serializers.IntegerField(
        min_value=1,
        max_value=LARGEST,
        **OPTIONAL,
        help_text="Minutes of nothing but errors, after which a run pauses. Empty: 1440, a day.",
    )
    price_in = serializers.FloatField(
        min_value=0,
        max_value=LARGEST,
        **OPTIONAL,
        help_text="US dollars per million tokens sent. Without prices, those that are known of the address and model.",
    )
    price_cached = serializers.FloatField(
        min_value=0,
        max_value=LARGEST,
        **OPTIONAL,
        help_text="The same of tokens that the endpoint has read before. Empty: as others.",
    )
    price_out = serializers.FloatField(
        min_value=0,
        max_value=LARGEST,
        **OPTIONAL,
        help_text="US dollars per million tokens received.",
    )
    family = serializers.CharField(
        max_length=100,
        **BLANK,
        help_text="Of the model, for the bias towards its own family.",
    )
