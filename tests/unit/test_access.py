"""Roles: what each may do, and whose each is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse.actions.roles import NEEDS, Action, Identity, Role, check_may, read_role, read_roles, role_of
from lakehouse.errors import Forbidden, InvalidInput
from senders import check_sender

ISSUER = "https://login.example.org"


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("role", Role)
def test_every_action_takes_its_role_or_a_greater_one(role: Role, action: Action) -> None:
    ranks = {Role.READER: 0, Role.MAINTAINER: 1, Role.ADMIN: 2}
    if ranks[role] >= ranks[NEEDS[action]]:
        check_may(role, action)
    else:
        with pytest.raises(Forbidden) as refused:
            check_may(role, action)
        assert (refused.value.role, refused.value.needs) == (role, NEEDS[action])


def test_a_reader_may_do_nothing_and_every_action_has_a_role() -> None:
    assert set(NEEDS) == set(Action)
    assert Role.READER not in NEEDS.values()


@pytest.mark.parametrize("text", ["", "Admin", "root", None, 3])
def test_only_three_roles_are_known(text: Any) -> None:
    with pytest.raises(InvalidInput):
        read_role(text)


def roles_in(folder: Path, text: str) -> dict[Identity, Role]:
    path = folder / "roles.toml"
    path.write_text(text, "utf-8")
    return read_roles(path)


def test_identities_have_the_role_that_the_file_gives_them(tmp_path: Path) -> None:
    roles = roles_in(tmp_path, f'admin = ["Ada@Example.org"]\nmaintainer = ["{ISSUER} 00u1x", "bob@example.org"]\n')
    verified = {"email_verified": True}
    assert role_of({"email": "ada@example.org", **verified}, roles) is Role.ADMIN
    assert role_of({"email": "bob@example.org", **verified}, roles) is Role.MAINTAINER
    assert role_of({"iss": ISSUER, "sub": "00u1x"}, roles) is Role.MAINTAINER
    assert role_of({"iss": ISSUER, "sub": "00u1x", "email": "ada@example.org", **verified}, roles) is Role.ADMIN


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"email": "ada@example.org"},
        {"email": "ada@example.org", "email_verified": False},
        {"email": "ada@example.org", "email_verified": "true"},
        {"email": "eve@example.org", "email_verified": True},
        {"email": ["ada@example.org"], "email_verified": True},
        {"name": "ada@example.org", "sub": "ada@example.org"},
        {"iss": "https://elsewhere.example.org", "sub": "00u1x"},
        {"iss": ISSUER, "sub": "00U1X"},
        {"sub": f"{ISSUER} 00u1x"},
        {"iss": "", "sub": "ada@example.org"},
        {"iss": " ", "sub": "ada@example.org"},
        {"iss": "ada@example.org", "sub": ""},
        {"iss": "", "sub": f"{ISSUER} 00u1x"},
        {"iss": f"{ISSUER} 00u1x", "sub": ""},
        {"iss": f" {ISSUER}", "sub": "00u1x"},
        {"iss": ISSUER, "sub": "00u1x "},
        {"iss": ISSUER, "sub": " 00u1x"},
        {"iss": ISSUER, "sub": 1},
        {"email": f"{ISSUER} 00u1x", "email_verified": True},
        {"email": " ada@example.org", "email_verified": True},
        {"email": "ada@example.org\n", "email_verified": True},
        {"email": "ada@example.org", "email_verified": 1},
    ],
)
def test_whoever_is_not_known_for_certain_is_a_reader(tmp_path: Path, claims: dict[str, Any]) -> None:
    roles = roles_in(tmp_path, f'admin = ["ada@example.org", "{ISSUER} 00u1x"]')
    assert role_of(claims, roles) is Role.READER


@pytest.mark.parametrize(
    "text",
    [
        "admin = 3",
        'admin = "ada@example.org"',
        "admin = [3]",
        'admin = [""]',
        'root = ["ada@example.org"]',
        '[admin]\nada = "x"',
        "admin = [",
        'admin = ["ada@example.org"]\nreader = ["ADA@example.org"]',
        'admin = ["ada"]',
        'admin = [" ada@example.org"]',
        'admin = ["https://login.example.org  00u1x"]',
        'admin = ["https://login.example.org "]',
        'admin = ["ada@example.org\\n"]',
    ],
)
def test_a_file_of_roles_that_says_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput):
        roles_in(tmp_path, text)


def test_a_file_of_roles_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        read_roles(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\x00")
    with pytest.raises(InvalidInput):
        read_roles(tmp_path / "bytes.toml")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1:8501", "Via": "1.1 proxy"},
        {"host": "localhost", "x-real-ip": "192.0.2.1"},
        {"host": "localhost", "X-Forwarded-Proto": "https"},
        {"host": "localhost", "X-Forwarded-Server": "proxy"},
        {"host": "localhost", "True-Client-IP": "192.0.2.1"},
        {"host": "localhost", "CF-Connecting-IP": "192.0.2.1"},
        {"Host": "192.0.2.1:8501"},
        {"Host": "localhost.example.org"},
        {"Host": "[::1"},
        {"Host": ""},
    ],
)
def test_what_others_may_have_sent_is_refused_without_a_login(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="through a proxy or by another name"):
        check_sender(headers, login=False)
    check_sender(headers, login=True)
