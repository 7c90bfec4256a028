"""Who may do what: roles, what each action takes, and which role an identity has.

A maintainer may do what can be undone; what cannot, or what ends another's work, takes an administrator.
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
    """What somebody may do: a maintainer all that a reader may, an administrator everything.

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
    """What can be done through the console, beside looking."""

    TAG = "tag"
    UNTAG = "untag"
    RESTORE = "restore"
    RELEASE = "release"
    MAINTAIN = "maintain"
    RUN_TASK = "run task"
    CANCEL_TASK = "cancel task"
    EXPIRE = "expire"
    COLLECT = "collect"


NEEDS: Mapping[Action, Role] = {
    Action.TAG: Role.MAINTAINER,
    Action.RESTORE: Role.MAINTAINER,
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
    lakehouse.errors.Forbidden: this takes a greater role; ask a maintainer (action=tag role=reader needs=maintainer)
    """
    needs = NEEDS[action]
    if not role.includes(needs):
        asked = "an administrator" if needs is Role.ADMIN else "a maintainer"
        raise Forbidden(f"this takes a greater role; ask {asked}", action=action, role=role, needs=needs)


def read_role(text: Any) -> Role:
    """A role by name. Raises `InvalidInput`."""
    try:
        return Role(text)
    except ValueError as error:
        raise InvalidRoles("no such role; use reader, maintainer or admin", role=repr(text)[:100]) from error


@dataclass(frozen=True, slots=True)
class Email:
    """An address that a login verified, in lower case. Never equal to a `Subject`, whatever that is called."""

    address: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody as the issuer of a login knows them; both to the letter."""

    issuer: str
    subject: str


Identity = Email | Subject


def read_roles(path: Path) -> dict[Identity, Role]:
    """Roles by identity, from a file in TOML that lists identities by role; who is not listed is a reader.

    ``admin = ["ada@example.org"]``, ``maintainer = ["https://login.example.org 00u1x"]``: an e-mail address, or issuer
    and subject with one blank between them. Raises `InvalidInput` for a file that is not there or says anything else,
    or an identity listed twice.
    """
    try:
        listed = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRoles("the file of roles cannot be read; mend it", path=path, cause=error) from error
    roles: dict[Identity, Role] = {}
    for name, identities in listed.items():
        role = read_role(name)
        if not isinstance(identities, list):
            raise InvalidRoles("a role lists identities as texts", path=path, role=name)
        for text in identities:
            if roles.setdefault(_identity(text, path), role) is not role:
                raise InvalidRoles("an identity has two roles; list it once", path=path, identity=text)
    return roles


def _identity(text: Any, path: Path) -> Identity:
    """An identity as a file lists it: what has a blank is issuer and subject, else it has to be an address."""
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
    """The role of somebody who logged in, by what the login says of them (OpenID Connect's claims).

    An e-mail address counts only if the login says that it was verified: else anyone could claim anyone's. Claims are
    taken to the letter, but for an address's case: blanks around them make another identity.

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
