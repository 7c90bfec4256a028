"""Who sent a request: this machine, or somebody else through a proxy or by another name."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lakehouse.actions.reach import is_loopback
from lakehouse.errors import Forbidden

_FORWARDED = frozenset(
    {"forwarded", "via", "client-ip", "true-client-ip", "cf-connecting-ip", "fastly-client-ip", "x-real-ip"}
    | {"x-client-ip", "x-cluster-client-ip", "x-envoy-external-address", "x-original-host", "x-original-forwarded-for"}
)
"""Headers in which proxies name the client, besides all that begin with ``x-forwarded``."""


def is_forwarded(headers: Mapping[str, str]) -> bool:
    """Whether a request came through a proxy, or under a name that is not this machine's own.

    >>> is_forwarded({"Host": "localhost:8501"}), is_forwarded({"X-Forwarded-For": "192.0.2.1"})
    (False, True)
    >>> is_forwarded({"Host": "lake.example.org"}), is_forwarded({"host": "[::1]:8501"}), is_forwarded({})
    (True, False, False)
    """
    named = {name.lower(): value for name, value in headers.items()}
    if any(name in _FORWARDED or name.startswith("x-forwarded") for name in named):
        return True
    try:
        host = urlsplit(f"//{named['host']}").hostname if "host" in named else "localhost"
    except ValueError:
        return True
    return not is_loopback(host)


def check_sender(headers: Mapping[str, str], *, login: bool) -> None:
    """Raise `Forbidden` for a request that others may have sent, if there is no login."""
    if not login and is_forwarded(headers):
        raise Forbidden(
            "the console was reached through a proxy or by another name, and has no login; open it on the machine "
            "that it runs on, or set up a login in .streamlit/secrets.toml, section [auth]"
        )
