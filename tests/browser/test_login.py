"""Who is let in, and with which role: where people log in, and where they do not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit import config

import lakehouse

ADA = {"is_logged_in": True, "email": "Ada@example.org", "email_verified": True, "iss": "https://id", "sub": "1"}
PAGES = ("lake", "query", "locks", "service", "streams", "serving")


@pytest.fixture
def configure(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Set up a login, by a file of secrets, and the address that the console listens to."""
    before = config.get_option("secrets.files")

    def configured(secrets: str = '[auth]\nclient_id = "x"\n', address: str = "0.0.0.0") -> None:
        file = tmp_path / "secrets.toml"
        file.write_text(secrets)
        config.set_option("secrets.files", [str(file)])
        config.set_option("server.address", address)

    yield configured
    config.set_option("secrets.files", before)
    config.set_option("server.address", "127.0.0.1")


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the file of roles."""

    def written(text: str) -> None:
        (tmp_path / "roles.toml").write_text(text)
        monkeypatch.setenv("LAKEHOUSE_ROLES", str(tmp_path / "roles.toml"))

    return written


def refused(app: Any) -> bool:
    """Whether nothing of the lake is shown."""
    assert not app.exception
    return not app.dataframe and not app.selectbox and not any("sqlite" in one.value for one in app.text)


@pytest.mark.looks
@pytest.mark.parametrize("name", PAGES)
def test_nobody_sees_anything_before_they_log_in(
    open_page: Any, configure: Any, flights: lakehouse.Table, name: str
) -> None:
    configure()
    for user in ({}, {"is_logged_in": False}, {"is_logged_in": False, "email": "ada@example.org"}):
        app = open_page(name, user=user, sql="SELECT * FROM flights")
        assert refused(app)
        assert app.info[0].value == "Log in to see this lake."
        assert [one.label for one in app.button] == ["Log in"]


def test_a_login_that_cannot_be_had_says_what_is_missing(
    open_page: Any, configure: Any, flights: lakehouse.Table
) -> None:
    configure()
    app = open_page().button(key="log in").click().run()
    assert refused(app)
    assert app.error[0].value == "The login is not set up."


@pytest.mark.looks
@pytest.mark.parametrize("name", PAGES)
def test_others_do_not_reach_a_console_without_a_login(
    open_page: Any, configure: Any, flights: lakehouse.Table, name: str
) -> None:
    for address in ("0.0.0.0", "192.0.2.1", ""):
        configure(secrets="", address=address)
        app = open_page(name, user=ADA)
        assert refused(app)
        assert "without a login the console listens on this machine only" in app.code[0].value


@pytest.mark.looks
def test_secrets_that_cannot_be_read_let_nobody_in(open_page: Any, configure: Any, flights: lakehouse.Table) -> None:
    configure(secrets="[auth", address="127.0.0.1")
    app = open_page(user=ADA)
    assert refused(app)
    assert "secrets file cannot be read" in app.code[0].value


@pytest.mark.parametrize(
    ("user", "may"),
    [
        (ADA, True),
        ({**ADA, "email_verified": False}, False),
        ({**ADA, "email": "eve@example.org"}, False),
        ({"is_logged_in": True, "iss": "https://id", "sub": "7"}, True),
        ({"is_logged_in": True, "iss": "https://else", "sub": "7"}, False),
    ],
)
def test_the_file_of_roles_says_who_is_more_than_a_reader(
    open_page: Any,
    configure: Any,
    roles: Any,
    monkeypatch: pytest.MonkeyPatch,
    flights: lakehouse.Table,
    user: dict[str, Any],
    may: bool,
) -> None:
    configure()
    roles('admin = ["ada@example.org", "https://id 7"]')
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "admin")  # which is for those on this machine
    operation = flights.begin_append()
    app = open_page("locks", user=user)
    [release] = [one for one in app.button if one.label == "Release"]
    assert release.disabled is not may
    operation.abort()


def test_an_action_is_signed_with_the_login(
    open_page: Any, configure: Any, roles: Any, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    configure()
    roles('maintainer = ["ada@example.org"]')
    for day in range(20, 32):
        flights.append(flights.scan(interval="2013-01-02").to_arrow(), message=f"{day}")
    [task] = [one for one in lake.plan_tasks(table="flights") if one.kind == "compact"][:1]
    app = open_page("service", user=ADA).button(key=f"cancel {task.id}").click().run()
    app = app.button(key=f"cancel {task.id} yes").click().run()
    assert not app.exception
    assert app.success
    assert task.id in [one.id for one in lake.tasks(state="cancelled")]


@pytest.mark.looks
def test_a_file_of_roles_that_cannot_be_read_is_reported_and_nobody_acts(
    open_page: Any, configure: Any, roles: Any, flights: lakehouse.Table
) -> None:
    configure()
    roles("admin = 3")
    app = open_page("locks", user=ADA)
    assert not app.exception
    assert not [one for one in app.button if one.label == "Release"]
    app = open_page("service", user=ADA)
    assert "a role is a list of identities" in app.code[0].value
