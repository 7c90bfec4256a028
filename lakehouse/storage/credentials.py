"""A store's options and credentials, which are never shown, and the function that renews them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any

from lakehouse.errors import InvalidAddress

PROVIDER = "credential_provider"
"""The option that names the function."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A store's options, which are never shown: neither by `repr` nor in an error."""

    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(sorted(self.options))})"

    @property
    def named(self) -> dict[str, Any]:
        """The options for another process, with a function by its name, as ``module:function``."""
        provider = self.options.get(PROVIDER)
        if provider is None or isinstance(provider, str):
            return dict(self.options)
        kind = provider if hasattr(provider, "__qualname__") else type(provider)
        return {**self.options, PROVIDER: f"{kind.__module__}:{kind.__qualname__}"}

    @property
    def endpoints(self) -> list[str]:
        """The addresses of the store that the options name, without a login in them."""
        return sorted(without_login(str(value)) for name, value in self.options.items() if is_endpoint(name))

    @property
    def provider(self) -> Callable[[], Any] | None:
        """The function that returns credentials, None without one. Raises `InvalidAddress` for what is none."""
        given = self.options.get(PROVIDER)
        if given is None:
            return None
        found = _imported(given) if isinstance(given, str) else given
        if not callable(found):
            raise _no_provider(given)

        def provide() -> Any:
            try:
                given = found()
            except Exception as error:
                raise RuntimeError(f"{PROVIDER} raised {type(error).__name__}") from error  # its text may hold secrets
            return _as_credentials(given)

        return provide

    @property
    def current(self) -> dict[str, Any]:
        """The options with the credentials of now, for a client that calls no function."""
        options, provider = dict(self.options), self.provider
        return options if provider is None else {**options, **provider()}


def _imported(name: str) -> Any:
    """What ``module:function`` names; of a class, an instance."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_provider(name) from error
    return found() if isinstance(found, type) else found


def _as_credentials(given: Any) -> dict[str, Any]:
    """What a function returned, as the client takes it. Raises `RuntimeError` that says what is wrong, and no value."""
    if not isinstance(given, Mapping):
        raise RuntimeError(f"{PROVIDER} returned {type(given).__name__}, not a dict of credentials")
    made = {"expires_at": None, **given}
    if "access_key_id" in made or "secret_access_key" in made:
        made.setdefault("token", None)
        missing = sorted({"access_key_id", "secret_access_key"} - made.keys())
        if missing:
            raise RuntimeError(f"{PROVIDER} returned no {missing[0]}, but {', '.join(sorted(given))}")
    until = made["expires_at"]
    if until is not None and (not isinstance(until, datetime) or until.tzinfo is None):
        raise RuntimeError(f"{PROVIDER} returned an expires_at that is no datetime with a time zone, nor None")
    return made


def _no_provider(given: object) -> InvalidAddress:
    return InvalidAddress(
        "credential_provider is a function without arguments, or its name as module:function, which every process can "
        "import",
        credential_provider=given,
    )


def is_endpoint(name: str) -> bool:
    """Whether an option says where a store is.

    >>> is_endpoint("aws_endpoint_url"), is_endpoint("google_base_url"), is_endpoint("region")
    (True, True, False)
    """
    return "endpoint" in name.lower() or name.lower() in ("base_url", "google_base_url")


def without_login(text: str) -> str:
    """A text without the logins in its addresses.

    >>> without_login("no answer of https://me:mine@store.example.org/lake")
    'no answer of https://store.example.org/lake'
    """
    return re.sub(r"://[^\s/@]*@", "://", text)
