"""Django's STORAGES for files in object storage, by the settings that name a bucket."""

from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

# Where the files of each of Django's storages lie in the bucket.
PREFIXES = {"default": "media", "uploads": "staged", "exports": "exports"}


def storages(*, bucket: str, endpoint: str, region: str, access_key: str, secret_key: str) -> dict[str, Any]:
    """Without keys those of the machine's role are taken. Raises ImproperlyConfigured."""
    if find_spec("storages") is None or find_spec("boto3") is None:
        raise ImproperlyConfigured(
            "S3_BUCKET is set, and django-storages is not here: `make setup EXTRAS=s3` in a clone, or the wheel with "
            "[s3]."
        )
    if endpoint and not endpoint.startswith(("https://", "http://")):
        raise ImproperlyConfigured("S3_ENDPOINT begins with https:// or http://.")
    if bool(access_key) != bool(secret_key):
        raise ImproperlyConfigured("S3_ACCESS_KEY and S3_SECRET_KEY are set together, or neither.")
    from botocore.config import Config

    # Short waits: a page would wait as long. Checksums that are new in botocore are not known to every store, and
    # names of buckets stand in front of the host only where it is Amazon's.
    config = Config(
        connect_timeout=3,
        read_timeout=8,
        retries={"mode": "standard", "total_max_attempts": 2},
        signature_version="s3v4",
        s3={"addressing_style": "path" if endpoint else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    options = {
        "bucket_name": bucket,
        "endpoint_url": endpoint or None,
        "region_name": region or None,
        "access_key": access_key or None,
        "secret_key": secret_key or None,
        "client_config": config,
        "file_overwrite": True,
        # No ACL is sent: by default an object is private, and buckets that know no ACLs refuse any.
        "default_acl": None,
    }
    backend = "storages.backends.s3.S3Storage"
    return {alias: {"BACKEND": backend, "OPTIONS": options | {"location": at}} for alias, at in PREFIXES.items()}
