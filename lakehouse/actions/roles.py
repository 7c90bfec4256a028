"""Who may do what: roles, the least role for each action, and the role of an identity.

A maintainer may do what can be undone; what cannot, or what ends another's work, needs an administrator.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from lakehouse.errors import Forbidden, InvalidRoles


class Role(StrEnum):
    """What a user may do: a maintainer all that a reader may, an administrator everything.

    >>> Role.ADMIN.includes(Role.MAINTAINER), Role.READER.includes(Role.MAINTAINER)
    (True, False)
    """

    READER = "reader"
    MAINTAINER = "maintainer"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Whether this role may do all that the other may."""
        ranked = list(Role)
        return ranked.index(self) >= ranked.index(other)


class Action(StrEnum):
    """What can be changed through the console."""

    TAG = "tag"
    UNTAG = "untag"
    RESTORE = "restore"
    SAVE_QUERY = "save query"
    RELEASE = "release"
    MAINTAIN = "maintain"
    RUN_TASK = "run task"
    CANCEL_TASK = "cancel task"
    EXPIRE = "expire"
    COLLECT = "collect"


NEEDS: Mapping[Action, Role] = {
    Action.TAG: Role.MAINTAINER,
    Action.RESTORE: Role.MAINTAINER,
    Action.SAVE_QUERY: Role.MAINTAINER,
    Action.MAINTAIN: Role.MAINTAINER,
    Action.RUN_TASK: Role.MAINTAINER,
    Action.CANCEL_TASK: Role.MAINTAINER,
    Action.UNTAG: Role.ADMIN,
    Action.RELEASE: Role.ADMIN,
    Action.EXPIRE: Role.ADMIN,
    Action.COLLECT: Role.ADMIN,
}
"""The least role for each action."""


def check_may(role: Role, action: Action) -> None:
    """Raise `Forbidden` unless the role is enough for the action.

    >>> check_may(Role.READER, Action.TAG)
    Traceback (most recent call last):
    lakehouse.errors.Forbidden: this needs a greater role; ask a maintainer (action=tag role=reader needs=maintainer)
    """
    needs = NEEDS[action]
    if not role.includes(needs):
        asked = "an administrator" if needs is Role.ADMIN else "a maintainer"
        raise Forbidden(f"this needs a greater role; ask {asked}", action=action, role=role, needs=needs)


def read_role(text: Any) -> Role:
    """A role by name. Raises `InvalidInput`."""
    try:
        return Role(text)
    except ValueError as error:
        raise InvalidRoles("no such role; use reader, maintainer or admin", role=repr(text)[:100]) from error


@dataclass(frozen=True, slots=True)
class Email:
    """An address that a login verified, in lower case. Never equal to a `Subject`, whatever its text."""

    address: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A user as known to the issuer of a login; both are compared exactly."""

    issuer: str
    subject: str


Identity = Email | Subject


def read_roles(path: Path) -> dict[Identity, Role]:
    """Roles by identity, from a TOML file that lists identities by role; those not listed are readers.

    ``admin = ["ada@example.org"]``, ``maintainer = ["https://login.example.org 00u1x"]``: an e-mail address, or issuer
    and subject with one blank between them. Raises `InvalidInput` for a file that is missing or says anything else, or
    an identity listed twice.
    """
    try:
        listed = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRoles("the roles file cannot be read; repair it", path=path, cause=error) from error
    roles: dict[Identity, Role] = {}
    for name, identities in listed.items():
        role = read_role(name)
        if not isinstance(identities, list):
            raise InvalidRoles("a role is a list of identities, each a text", path=path, role=name)
        for text in identities:
            if roles.setdefault(_identity(text, path), role) is not role:
                raise InvalidRoles("an identity has two roles; list it once", path=path, identity=text)
    return roles


def _identity(text: Any, path: Path) -> Identity:
    """An identity from a file: with a blank it is issuer and subject, else it has to be an address."""
    if isinstance(text, str) and not text.startswith(" ") and text.isprintable():
        issuer, blank, subject = text.partition(" ")
        if blank and subject and subject == subject.strip():
            return Subject(issuer, subject)
        if not blank and "@" in text:
            return Email(text.casefold())
    raise InvalidRoles(
        "not an identity; list an e-mail address, or issuer and subject with one blank between them",
        path=path,
        identity=repr(text)[:200],
    )


def role_of(claims: Mapping[str, Any], roles: Mapping[Identity, Role]) -> Role:
    """The role of a user who logged in, by the login's claims (OpenID Connect).

    An e-mail address counts only if the login says that it is verified, or anyone could claim anyone's. Claims are
    compared exactly, except for the case of an address: blanks around them make another identity.

    >>> roles = {Email("ada@example.org"): Role.ADMIN}
    >>> role_of({"email": "Ada@example.org", "email_verified": True}, roles)
    <Role.ADMIN: 'admin'>
    >>> role_of({"email": "ada@example.org"}, roles)
    <Role.READER: 'reader'>
    """
    identities: list[Identity] = []
    match claims:
        case {"iss": str(issuer), "sub": str(subject)} if issuer and subject:
            identities.append(Subject(issuer, subject))
    match claims:
        case {"email_verified": True, "email": str(address)}:
            identities.append(Email(address.casefold()))
    found = (roles.get(one, Role.READER) for one in identities)
    return max(found, key=list(Role).index, default=Role.READER)
