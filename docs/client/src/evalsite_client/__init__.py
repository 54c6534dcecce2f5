"""A client of evalsite's API, sync (``Client``) and async (``AsyncClient``)."""

from evalsite_client.asynchronous import AsyncClient
from evalsite_client.shared import (
    ApiError,
    Assignment,
    Benchmark,
    Campaign,
    Conflict,
    Label,
    NotAllowed,
    Run,
    Submission,
    Upload,
    UploadFailed,
    bars,
)
from evalsite_client.synchronous import Client

__all__ = [
    "ApiError",
    "Assignment",
    "AsyncClient",
    "Benchmark",
    "Campaign",
    "Client",
    "Conflict",
    "Label",
    "NotAllowed",
    "Run",
    "Submission",
    "Upload",
    "UploadFailed",
    "bars",
]
