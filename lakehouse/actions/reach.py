"""Which addresses a console may listen on: only this machine's, unless there is a login."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from lakehouse.errors import Forbidden, InvalidRoles


def has_login(files: Iterable[Path]) -> bool:
    """Whether one of Streamlit's secrets files has a section ``[auth]``, which sets up a login.

    Raises `InvalidInput` for a file that cannot be read: it might be the one that says so.
    """
    found = False
    for path in files:
        if path.is_file():
            try:
                found |= isinstance(tomllib.loads(path.read_text("utf-8")).get("auth"), dict)
            except (OSError, ValueError) as error:
                raise InvalidRoles("the secrets file cannot be read; repair it", path=path, cause=error) from error
    return found


def is_loopback(address: str | None) -> bool:
    """Whether only this machine can reach an address; None listens on all.

    >>> [is_loopback(one) for one in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "", None, "lake.example.org")]
    [True, True, True, False, False, False, False]
    """
    if address == "localhost":
        return True
    try:
        return ip_address(address or "0.0.0.0").is_loopback  # noqa: S104 - what it stands for
    except ValueError:
        return False


def check_reach(address: str | None, *, login: bool) -> None:
    """Raise `Forbidden` for a console that others can reach without a login."""
    if not login and not is_loopback(address):
        raise Forbidden(
            "without a login the console listens on this machine only; leave the address out, or set up a login "
            "in .streamlit/secrets.toml, section [auth]",
            address=address or "all",
        )
