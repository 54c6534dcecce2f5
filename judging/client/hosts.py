"""Which hosts may be called."""

from collections.abc import Sequence
from urllib.parse import urlsplit


def host_allowed(base_url: str, hosts: Sequence[str]) -> bool:
    """Whether an allow-list names the host of an address, with or without its port."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        return False
    host = (parts.hostname or "").lower()
    return bool(host) and (host in hosts or (port is not None and f"{host}:{port}" in hosts))
