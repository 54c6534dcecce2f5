"""Which hosts may be called, and which addresses their names may lead to."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

USUAL_PORTS = {"https": 443, "http": 80}
TRANSLATED = IPv6Network("64:ff9b::/96")  # IPv4 in IPv6, by NAT64


def host_allowed(base_url: str, hosts: Sequence[str]) -> bool:
    """Whether an allow-list names the host of an address, with or without its port."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        return False
    host = (parts.hostname or "").lower()
    return bool(host) and (host in hosts or (port is not None and f"{host}:{port}" in hosts))


def address_fault(base_url: str, hosts: Sequence[str]) -> str:
    """What is wrong with an address whose host is allowed, in words; "" for nothing.

    Over plain HTTP only this machine is called, and a port that is not the usual one must be named in the list.
    """
    parts = urlsplit(base_url)
    host, usual = (parts.hostname or "").lower(), USUAL_PORTS[parts.scheme]
    if parts.scheme == "http" and not is_this_machine(host):
        return "Over http:// everybody on the way reads the key and the texts: use https://."
    if (parts.port or usual) != usual and f"{host}:{parts.port}" not in hosts:
        return f"Port {parts.port} of {host} is not listed; {host}:{parts.port} in JUDGE_HOSTS would be."
    return ""


def is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public network, and not of this machine, this site or another one's."""
    found: IPv4Address | IPv6Address | None = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in TRANSLATED:
            inner = IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return bool(found and found.is_global and not found.is_multicast)
