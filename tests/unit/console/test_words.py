"""Values as words, addresses, and what is copied."""

import doctest
from datetime import UTC, datetime
from types import ModuleType

import pyarrow as pa
import pytest

import copied
import links
from lakehouse.core import Grain, Interval, Tombstone
from lakehouse.errors import InvalidInput
from queries import laser, refused, words

RUN = "8f7c8a10-0000-4000-8000-000000000001"


def test_sizes_ages_and_counts_read_well() -> None:
    sizes = [0, 999, 1_000, 12_345, 123_456, 5_000_000_000, 7_200_000_000_000_000]
    assert [words.size_text(size) for size in sizes] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12.3 kB",
        "123 kB",
        "5.0 GB",
        "7,200 TB",
    ]
    assert [words.age_text(one) for one in (5, 300, 7300, 200_000)] == ["5 s", "5 min", "2 h", "2 days"]
    assert [words.count_text(one, "segment") for one in (0, 1, 2000)] == ["0 segments", "1 segment", "2,000 segments"]
    assert words.change(3, 1) == "+3 −1"
    assert words.change(0, 0) == ""


def test_times_are_as_short_as_they_can_be_said() -> None:
    assert words.text_of(datetime(2013, 1, 5, tzinfo=UTC)) == "2013-01-05"
    assert words.text_of(datetime(2013, 1, 5, 7, tzinfo=UTC)) == "2013-01-05 07:00"
    assert words.span_text(Interval("2013-01-05", "2013-01-05T07:00:00.000001")) == "2013-01-05 – 2013-01-05 07:00"


def test_keys_are_shown_as_they_can_be_typed() -> None:
    scope = Tombstone(id=1, ordinal=1, keys={"carrier": ["UA", "AA"]}).keys
    assert words.keys_text(scope) == "carrier=UA, carrier=AA"
    schema = pa.schema([("carrier", pa.string()), ("client", pa.int64())])
    assert laser.read_keys(words.keys_text(scope), schema) == {"carrier": ("UA", "AA")}
    assert laser.read_keys("client = 7", schema) == {"client": (7,)}
    assert laser.read_keys("  ", schema) is None


@pytest.mark.parametrize("text", ["client", "nowhere=1", "client=seven"])
def test_keys_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        laser.read_keys(text, pa.schema([("client", pa.int64())]))


def test_a_version_links_to_the_run_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert links.run({"dagster_run_id": RUN}) == f"http://127.0.0.1:3000/runs/{RUN}"
    monkeypatch.setenv("LAKEHOUSE_DAGSTER_URL", "https://dagster.example.org/")
    assert links.run({"dagster_run_id": RUN}) == f"https://dagster.example.org/runs/{RUN}"


@pytest.mark.parametrize("found", ["", "../../evil", "javascript:alert(1)", "8f7c8a10?x=1", "<img>"])
def test_a_property_that_is_no_run_makes_no_link(found: str) -> None:
    assert links.run({"dagster_run_id": found}) == ""
    assert links.run({}) == ""


def test_addresses_hold_what_is_seen() -> None:
    assert links.page("lake") == "/"
    assert links.page("timeline", table="flights", version=7, interval=None) == "/timeline?table=flights&version=7"
    assert links.page("versions", version="a b&c") == "/versions?version=a+b%26c"


def test_a_command_line_is_quoted_for_a_shell() -> None:
    assert copied.command("show", "flights", as_of=7, interval=None) == "lakehouse show flights --as-of 7"
    assert copied.command("show", "a b", segments=True) == "lakehouse show 'a b' --segments"
    assert copied.literal("it's") == '"it\'s"'


@pytest.mark.parametrize("module", [copied, refused, words], ids=lambda one: one.__name__)
def test_examples_run(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


CHUNKS = [
    (Grain.DAY, Interval.of("2013-01-05"), None, "2013-01-05"),
    (Grain.HOUR, Interval.of("2013-01-05T07"), None, "2013-01-05T07"),
    (Grain.WEEK, Interval("2013-01-07", "2013-03-04"), None, "2013-W02 to 2013-W09"),
    (Grain.ALL, Interval(None, None), None, "all of time"),
    (Grain.DAY, Interval("1970-01-01", "4700-09-01"), Interval("2013-01-01", "2013-02-01"), "every chunk"),
    (Grain.DAY, Interval("1970-01-01", "2013-01-13"), Interval("2013-01-01", "2013-02-01"), "2013-01-01 to 2013-01-12"),
    (Grain.YEAR, Interval("9992-01-01", "9999-12-31T23:59:59.999999"), None, "9992 to 9999"),
]


@pytest.mark.parametrize(("grain", "run", "reach", "said"), CHUNKS)
def test_runs_of_chunks_are_named_as_a_user_knows_them(
    grain: Grain, run: Interval, reach: Interval | None, said: str
) -> None:
    assert words.chunk_text(grain, run, reach) == said


def test_advice_is_for_the_page() -> None:
    kept = "ask for fewer rows or columns"
    assert refused.here(f'{kept}, or use engine="spark"') == "Ask for fewer rows or columns."
    for elsewhere in (
        'correct it, or use engine="spark"',
        "pass args=[...] for ?",
        "run lakehouse doctor",
        "use --where",
    ):
        assert refused.here(elsewhere) == ""
