"""By which names the console answers, and for pages of which places."""

import pytest

from hosts import allowed, is_allowed, read_host

OWN = [("127.0.0.1", 8501), ("localhost", 8501), ("::1", 8501), ("lake.example.org", None)]


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8501", None),
        ("LOCALHOST:8501", "http://localhost:8501"),
        ("[::1]:8501", "http://[::1]:8501"),
        ("lake.example.org", "https://lake.example.org"),
        ("lake.example.org:443", "https://lake.example.org:443"),
    ],
)
def test_its_own_addresses_are_answered(host: str, origin: str | None) -> None:
    assert is_allowed([host], [] if origin is None else [origin], OWN)


@pytest.mark.parametrize(
    ("hosts", "origins"),
    [
        (["evil.example.org:8501"], ["http://evil.example.org:8501"]),
        (["127.0.0.1:8501"], ["http://127.0.0.1:9000"]),
        (["127.0.0.1:8501"], ["http://localhost"]),
        (["127.0.0.1:9000"], []),
        (["127.0.0.1"], []),
        (["127.0.0.1:8501"], ["null"]),
        (["127.0.0.1:8501"], ["file://"]),
        (["127.0.0.1:8501"], [""]),
        (["127.0.0.1:8501"], ["http://127.0.0.1:8501@evil.example.org"]),
        (["127.0.0.1:8501"], ["http://evil.example.org/127.0.0.1:8501"]),
        (["127.0.0.1:8501"], ["http://127.0.0.1:8501", "http://evil.example.org"]),
        (["127.0.0.1:8501", "evil.example.org"], []),
        (["lake.example.org.evil.example.org"], []),
        (["lake.example.org:8501"], []),
        (["[::1"], []),
        (["127.0.0.1:x"], []),
        ([""], []),
        ([], []),
    ],
)
def test_other_names_and_pages_of_other_places_are_refused(hosts: list[str], origins: list[str]) -> None:
    assert not is_allowed(hosts, origins, OWN)


def test_names_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_HOSTS", "lake.example.org, other.example.org:8080,")
    found = allowed()
    assert {("lake.example.org", None), ("other.example.org", 8080)} <= found
    assert ("127.0.0.1", None) not in found
    assert read_host("lake.example.org:80") in found
