"""The pages that look at data, run without a browser: what each shows in each state that a table can be in."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from queries.words import size_text
from tests.browser.conftest import SCHEMA, hours_of

RUN = "8f7c8a10-0000-4000-8000-000000000001"


def figures(app: Any) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def having(app: Any, column: str) -> Any:
    """The first frame with a column."""
    return next(one.value for one in app.dataframe if column in one.value.columns)


def texts(app: Any) -> str:
    return "\n".join(one.value for one in app.text)


def headings(app: Any) -> list[str]:
    return [one.value for one in app.subheader]


# Lake


@pytest.mark.looks
def test_the_lake_page_has_a_row_a_table_with_its_totals(open_page: Any, lake: Any, flights: lakehouse.Table) -> None:
    app = open_page()
    tables = app.dataframe[0].value.set_index("table")
    live = flights.segments()
    assert list(tables.index) == ["flights", "weather"]
    assert tables.loc["flights", "segments"] == len(live)
    assert tables.loc["flights", "rows stored"] == sum(one.rows for one in live)
    assert math.isnan(tables.loc["flights", "rows"])  # some are hidden, and nobody has counted them
    assert tables.loc["weather", "rows"] == 24
    assert tables.loc["flights", "size"] == sum(one.bytes for one in live)
    assert tables.loc["flights", "tombstones"] == len(flights.tombstones())
    assert tables.loc["flights", "head"] == flights.version
    assert tables.loc["flights", "growth"][-1] == sum(one.rows_added - one.rows_deleted for one in flights.log())
    assert figures(app)["Head"] == str(lake.head)


def test_the_lake_page_shows_what_runs(open_page: Any, flights: lakehouse.Table) -> None:
    with flights.begin_append():
        app = open_page()
        assert app.dataframe[0].value.set_index("table").loc["flights", "running"] == 1


# Schema


def test_the_schema_page_shows_columns_of_the_version_and_first_rows(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    before = flights.version
    flights.add_column("place", "STRUCT<zone: INT COMMENT 'of the airport', gate: STRING>", comment="<b>where</b>")
    flights.rename_column("delay", "late")
    app = open_page("schema")
    listed = having(app, "field id").set_index("column")
    assert list(listed.index) == ["at", "carrier", "late", "place", "place.zone", "place.gate"]
    assert list(listed["type"])[:3] == ["TIMESTAMP", "STRING", "BIGINT"]
    assert listed.loc["at", "nullable"] == "no"
    assert listed.loc["at", "role"] == "time by day"
    assert listed.loc["place", "comment"] == "<b>where</b>"
    assert listed.loc["place.zone", "comment"] == "of the airport"
    assert listed.loc["late", "field id"] == "3"
    assert len(app.dataframe[1].value) == 100
    assert f"Version {flights.version_at()}, the newest" in texts(app)
    app = open_page("schema", version=str(before), interval="2013-01-07")
    listed = having(app, "field id").set_index("column")
    assert list(listed.index) == ["at", "carrier", "delay"]
    assert listed.loc["delay", "field id"] == "3"
    assert len(app.dataframe[1].value) == 12
    assert "No row is visible" in open_page("schema", interval="1999").info[0].value


# Versions


def test_the_log_lists_every_version_with_its_tags_and_run(open_page: Any, flights: lakehouse.Table) -> None:
    flights.drop("2013-01-02", properties={"dagster_run_id": RUN})
    log = open_page("versions").dataframe[0].value.set_index("version")
    assert list(log.index) == [commit.version for commit in flights.log()]
    assert log.loc[5, "tags"] == "before-the-drop"
    assert log.loc[flights.version, "run"].endswith(f"/runs/{RUN}")
    assert log.loc[2, "run"] == ""
    assert log.loc[2, "size"] == "+" + size_text(sum(one.bytes for one in flights.segments(as_of=2)))
    assert log.loc[3, "message"] == "# late *rows* <img src=x onerror=alert(1)>"


def test_the_log_says_what_became_of_numbers_that_are_no_versions(open_page: Any, flights: lakehouse.Table) -> None:
    op = flights.begin_replace("2013-01-02")
    op.abort()
    last = flights.append(flights.head(1)).version
    label = "No version is lost: numbers between these"
    (said,) = [one for one in open_page("versions", of="lake").expander if one.label == label]
    sentences = said.text[0].value.splitlines()
    assert sentences[0] == f"{last - 1} was drawn by a replace of flights, which did not commit."
    assert "4 was drawn by a replace of flights, which became version 5." in sentences
    assert label not in [one.label for one in open_page("versions", operation="append").expander]


@pytest.mark.looks
@pytest.mark.parametrize(
    ("parameters", "versions"),
    [
        ({"interval": "2013-01-05"}, [5, 2]),
        ({"operation": "append"}, [3, 2]),
        ({"before": "5"}, [3, 2]),
        ({"interval": "2013-01-01", "operation": "replace"}, []),
        ({"of": "lake", "before": "3"}, [2, 1]),
    ],
)
def test_the_log_is_filtered(
    open_page: Any, flights: lakehouse.Table, parameters: dict[str, str], versions: list[int]
) -> None:
    app = open_page("versions", **parameters)
    assert not app.error
    if versions:
        assert list(app.dataframe[0].value["version"]) == versions
    else:
        assert "No version passes" in app.info[0].value


@pytest.mark.looks
def test_two_versions_are_compared_by_chunk(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("versions", version="7", compare="3")
    assert "From version 3 to version 7" in texts(app)
    found = flights.diff(3, 7)
    chunks = next(one.value for one in app.dataframe if "chunk" in one.value.columns)
    assert list(chunks["chunk"]) == [chunk.start.date().isoformat() for chunk in found.chunks]
    assert figures(app)["Segments"] == "+1 −1"
    assert figures(app)["Tombstones"] == "+2"


def test_changes_of_columns_are_compared_and_listed_over_time(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    assert "Columns over time" not in headings(open_page("versions"))
    before = flights.version
    flights.rename_column("delay", "late")
    flights.add_column("place", "STRUCT<zone: INT>", comment="<b>where</b>")
    flights.drop_column("late")
    flights.add_column("delay", "BIGINT")
    altered = flights.add_column(("place", "gate"), "STRING", first=True).version
    app = open_page("versions", version=str(altered), compare=str(before))
    changes = next(one.value for one in app.dataframe if "change" in one.value.columns)
    assert [(one.column, one.change) for one in changes.itertuples()] == [
        ("delay", "dropped"), ("place", "added"), ("delay", "added"),
    ]  # fmt: skip
    assert next(one.value for one in app.info).startswith("No segment and no tombstone differs")
    assert "Columns over time" in headings(app)
    listed = next(one.value for one in app.dataframe if "from version" in one.value.columns)
    assert list(listed["changes"])[:2] == ["column place.gate added: string", "column delay added: int64"]
    assert list(listed["changes"])[-1] == "created"
    lake.tag("altered", altered)
    app = open_page("versions", version="altered")
    assert f"to version {altered}" in texts(app)
    changes = next(one.value for one in app.dataframe if "change" in one.value.columns)
    assert [(one.column, one.change) for one in changes.itertuples()] == [("place.gate", "added")]
    app = open_page("versions", version=str(flights.append(hours_of(40, 1).drop(["delay"]), schema="ignore").version))
    assert not any("change" in one.value.columns for one in app.dataframe)


@pytest.mark.looks
def test_rows_between_two_versions_are_counted_when_asked(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("versions", version="7", compare="5")
    assert "delete" not in figures(app)
    app.toggle(key="rows").set_value(True).run()
    assert not app.exception
    assert figures(app)["delete"] == "18"


@pytest.mark.looks
def test_a_version_is_compared_with_the_one_before_it(open_page: Any, flights: lakehouse.Table) -> None:
    assert "From version 3 to version 5" in texts(open_page("versions", version="5"))


def test_a_restore_is_reported_confirmed_and_signed(
    open_page: Any, flights: lakehouse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "maintainer")
    app = open_page("versions", version="3")
    before = flights.version
    app.button(key="restore flights 3").click().run()
    assert flights.version == before
    assert "Make flights what it was at version 3" in texts(app)
    assert "50 rows added, 24 rows removed, in 4 chunks." in texts(app)
    effect = having(app, "rows added").set_index("chunk")
    assert effect.loc["2013-01-05"].to_dict() == {"rows added": 24, "rows removed": 24, "rows changed": 0}
    assert effect["rows added"].sum() - effect["rows removed"].sum() == flights.count(as_of=3) - flights.count()
    app.button(key="restore flights 3 yes").click().run()
    assert not app.exception
    restored = flights.log(1)[0]
    assert restored.operation == "restore"
    assert restored.properties["by"]
    assert len(flights.segments()) == len(flights.segments(as_of=3))


@pytest.mark.looks
def test_a_reader_can_neither_tag_nor_restore(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("versions", version="3")
    assert app.button(key="restore flights 3").disabled
    assert app.button(key="tag 3").disabled


# Timeline


@pytest.mark.looks
def test_the_timeline_draws_what_is_there(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline")
    assert figures(app)["Segments"] == str(len(flights.segments()))
    assert figures(app)["Tombstones"] == str(len(flights.tombstones()))
    assert app.select_slider(key="through").value == flights.version


@pytest.mark.looks
def test_the_timeline_of_an_older_version_is_what_it_was(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline", version="3")
    assert figures(app)["Segments"] == str(len(flights.segments(as_of=3)))
    assert figures(app)["Tombstones"] == "0"


@pytest.mark.looks
def test_the_slider_moves_through_history(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline")
    app.select_slider(key="through").set_value(3).run()
    assert app.selectbox(key="version").value == "3"
    assert figures(app)["Tombstones"] == "0"


def test_zooming_changes_the_time_that_is_looked_at(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline", interval="2013-01-01/2013-01-05")
    app.button(key="zoom Zoom in").click().run()
    assert app.text_input(key="interval").value == "2013-01-02T12:00:00/2013-01-03T12:00:00"
    assert figures(app)["Segments"] == "2"
    app.button(key="zoom All").click().run()
    assert app.text_input(key="interval").value == ""
    assert figures(app)["Segments"] == str(len(flights.segments()))


@pytest.mark.looks
def test_a_laser_shows_which_tombstone_is_in_the_way(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline", laser="2013-01-07T13:00")
    assert "Nothing is visible" in texts(app)
    probed = next(one.value for one in app.dataframe if "verdict" in one.value.columns)
    assert list(probed["verdict"]) == ["hidden"]
    hiding = flights.tombstones(interval="2013-01-07")[0]
    assert str(hiding.id) in probed["blocked by"][0]
    happened = next(one.value for one in app.dataframe if "committed" in one.value.columns)
    assert list(happened["version"]) == [7, 2]


@pytest.mark.looks
def test_a_laser_with_keys_sees_only_their_rows(open_page: Any, flights: lakehouse.Table) -> None:
    gone, none, seen = "hidden", "holds no such rows", "visible"
    asked = [("12", "carrier=UA", gone), ("12", "carrier=AA", none), ("12", "", gone), ("13", "carrier=AA", seen)]
    for hour, keys, verdict in asked:
        app = open_page("timeline", laser=f"2013-01-12T{hour}:00", keys=keys)
        probed = next(one.value for one in app.dataframe if "verdict" in one.value.columns)
        assert list(probed["verdict"]) == [verdict]


def test_a_laser_with_a_primary_key_knows_which_upsert_took_its_row(open_page: Any, lake: lakehouse.Lake) -> None:
    table = lake.create_table("keyed", SCHEMA, time="at", primary_key=["delay"])
    table.append(hours_of(0, 1))
    taken = table.upsert(hours_of(0, 1).slice(6, 1))
    for key, verdicts in (("6", ["visible", "hidden"]), ("7", [])):
        app = open_page("timeline", table="keyed", laser="2013-01-01T06:00", keys=f"delay={key}")
        probed = next(one.value for one in app.dataframe if "verdict" in one.value.columns)
        assert [one for one in probed["verdict"] if one != "holds no such rows"] == verdicts
        assert (f"ordinal {taken.version}" in "".join(probed["blocked by"])) == (key == "6")


def test_the_laser_of_a_timeless_table_asks_for_keys_alone(open_page: Any, lake: lakehouse.Lake) -> None:
    schema = pa.schema([("code", pa.string()), ("region", pa.string())])
    table = lake.create_table("codes", schema, primary_key=["code"], cluster_by=["region"])
    table.append(pa.table({"code": ["UA", "B6", "AA"], "region": ["west", "east", "west"]}, schema=schema))
    table.replace(pa.table({"code": ["UA"], "region": ["west"]}, schema=schema), keys={"region": "west"})
    table.upsert(pa.table({"code": ["B6"], "region": ["north"]}, schema=schema))
    for keys, stored, visible in (("code=UA", 2, 1), ("code=AA", 1, 0), ("code=B6", 2, 1), ("region=west", 3, 1)):
        app = open_page("timeline", table="codes", keys=keys)
        assert app.text_input(key="laser").disabled
        said = f"{stored} row{'s' if stored > 1 else ''} stored here: {visible} visible, {stored - visible} hidden."
        assert said in texts(app), keys
    app = open_page("timeline", table="codes")
    assert not any("verdict" in one.value.columns for one in app.dataframe)
    (drawn,) = app.get("vega_lite_chart")
    axes = [one["encoding"]["x"]["axis"] for one in json.loads(drawn.proto.spec)["layer"]]
    assert axes == [None] * len(axes)  # no years 1 to 9999


def test_a_laser_where_everything_was_dropped_names_the_version(open_page: Any, flights: lakehouse.Table) -> None:
    dropped = flights.drop("2013-01-02")
    app = open_page("timeline", laser="2013-01-02T12:00")
    assert f"dropped by version {dropped.version}, a replace" in texts(app)
    assert "nothing ever did" in texts(open_page("timeline", laser="1999-01-01"))


@pytest.mark.looks
def test_a_laser_that_is_mistyped_leaves_the_picture(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline", laser="noon")
    assert not app.exception
    assert "not a time" in app.code[0].value
    assert figures(app)["Segments"] == str(len(flights.segments()))


# Tombstones


def test_the_tombstones_page_shows_what_each_masks_and_when_it_goes(open_page: Any, flights: lakehouse.Table) -> None:
    flights.delete("delay < 7")
    listed = open_page("tombstones").dataframe[0].value
    assert list(listed["tombstone"]) == [
        str(one.id) for one in sorted(flights.tombstones(), key=lambda one: (-one.ordinal, -one.id))
    ]
    by_kind = listed.set_index("kind")
    assert by_kind.loc["row", "its set"] == "21 rows"
    assert by_kind.loc["row", "goes"].startswith("by a compaction of")
    assert "carrier=UA" in list(listed["keys"])
    assert listed["made by"].iloc[0] == f"delete at {flights.version}"


@pytest.mark.looks
def test_tombstones_are_filtered_by_kind_and_time(open_page: Any, flights: lakehouse.Table) -> None:
    assert len(open_page("tombstones", interval="2013-01-12").dataframe[0].value) == 1
    assert "No tombstone" in open_page("tombstones", kind="key").info[0].value
    assert "No tombstone" in open_page("tombstones", version="3").info[0].value


# Key frames


@pytest.mark.looks
def test_the_key_frames_page_shows_which_steps_build_the_version(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("key_frames", interval="2013-01-05")
    steps = next(one.value for one in app.dataframe if "part" in one.value.columns)
    chain = flights.chain("2013-01-05")
    building = steps[steps["part"] == "builds this version"]
    assert list(building["version"]) == [one.version for one in chain]
    assert list(building["live after it"]) == [one.entries for one in chain]
    older = open_page("key_frames", interval="2013-01-05", version="2")
    steps = next(one.value for one in older.dataframe if "part" in one.value.columns)
    assert set(steps[steps["version"] > 2]["part"]) == {"later"}


@pytest.mark.looks
def test_without_a_time_the_chunk_that_changed_last_is_shown(open_page: Any, flights: lakehouse.Table) -> None:
    assert "2013-01-12\nVersion 9 is built from" in texts(open_page("key_frames"))


def test_without_a_time_the_chunk_of_an_upsert_is_shown_and_not_all_time(open_page: Any, lake: lakehouse.Lake) -> None:
    lake.create_table("words", SCHEMA, time="at", primary_key=["delay"]).upsert(hours_of(3, 1))
    said = texts(open_page("key_frames"))
    assert "2013-01-04\nVersion 2 is built from" in said
    assert "Every chunk\nVersion 2 is built from" in said
    lake.create_table("codes", "code STRING NOT NULL", primary_key=["code"]).upsert([{"code": "UA"}])
    said = texts(open_page("key_frames", table="codes"))
    assert "All of time\nVersion 4 is built from" in said
    assert "0001" not in said
    assert "9999" not in said


@pytest.mark.looks
def test_the_film_strip_has_axes_a_legend_and_a_step_a_version(open_page: Any, flights: lakehouse.Table) -> None:
    (drawn,) = open_page("key_frames", interval="2013-01-05").get("vega_lite_chart")
    bars, _ = json.loads(drawn.proto.spec)["layer"]
    assert bars["encoding"]["x"]["title"] == "version"
    assert bars["encoding"]["y"]["title"] == "segments and tombstones"
    assert bars["encoding"]["color"]["legend"]
    (named,) = [one.value for one in open_page("key_frames").dataframe if "versions behind it" in one.value.columns]
    assert set(named["chunk"]) == {f"2013-01-{day:02d}" for day in range(1, 15)}


# Segments


@pytest.mark.looks
def test_segments_are_listed_filtered_and_ordered(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("segments")
    listed = app.dataframe[0].value
    assert len(listed) == len(flights.segments())
    assert list(listed["ordinal"]) == sorted(listed["ordinal"], reverse=True)
    assert listed["made by"].iloc[0] == "replace at 5"
    assert len(open_page("segments", interval="2013-01-09").dataframe[0].value) == 2
    assert len(open_page("segments", where="delay > 200").dataframe[0].value) == 2
    assert "No segment passes" in open_page("segments", where="delay > 9999").info[0].value
    ordered = open_page("segments", order="time").dataframe[0].value
    assert list(ordered["from"]) == sorted(ordered["from"])


def test_segments_show_how_often_rows_were_erased_from_them(open_page: Any, flights: lakehouse.Table) -> None:
    segment = flights.segments(interval="2013-01-09")[0]
    least = segment.min["delay"]
    flights.erase(f"delay = {least} AND at >= '2013-01-09' AND at < '2013-01-10'")
    app = open_page("segments", segment=str(segment.id))
    listed = app.dataframe[0].value.set_index("segment")
    assert listed.loc[str(segment.id), "rewrites"] == 1
    assert listed["rewrites"].sum() == sum(one.rewrites for one in flights.segments())
    assert any("erased rows: 1" in one.value for one in app.text)
    assert "erase" in set(open_page("versions").dataframe[0].value["operation"])


@pytest.mark.looks
def test_a_filter_that_is_no_predicate_is_reported(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("segments", where="delay >")
    assert not app.exception
    assert app.error


@pytest.mark.looks
def test_one_segment_is_shown_in_full(open_page: Any, lake: Any, flights: lakehouse.Table) -> None:
    segment = flights.segments(interval="2013-01-07")[0]
    app = open_page("segments", segment=str(segment.id))
    assert not app.error
    assert any(one.value == f"{lake.warehouse}/{segment.path}" for one in app.code)
    bounds = next(one.value for one in app.dataframe if "least" in one.value.columns).set_index("column")
    assert bounds.loc["delay", "least"] == str(segment.min["delay"])
    groups = next(one.value for one in app.dataframe if "row group" in one.value.columns)
    assert groups["rows"].sum() == segment.rows
    rows = app.dataframe[-1].value
    assert len(rows) == 12
    assert rows["at"].max() < flights.tombstones(interval="2013-01-07")[0].start


def test_a_segment_whose_file_is_gone_is_reported(open_page: Any, lake: Any, flights: lakehouse.Table) -> None:
    segment = flights.segments(interval="2013-01-02")[0]
    file = lake.warehouse / segment.path
    for damage in (lambda: file.write_bytes(b"PAR1 is all that is left"), file.unlink):
        damage()
        app = open_page("segments", segment=str(segment.id))
        assert not app.exception
        assert [one.value for one in app.error] == ["That cannot be shown."] * 2
        assert all(segment.path in one.value for one in app.code if "missing" in one.value)
    assert any("Restore the named file" in one.value for one in app.markdown)
    bounds = next(one.value for one in app.dataframe if "least" in one.value.columns)
    assert len(bounds) == 3


@pytest.mark.parametrize("name", ["versions", "timeline", "tombstones", "key_frames", "segments"])
def test_after_an_expiry_what_is_left_is_shown_and_what_is_gone_is_reported(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table, name: str
) -> None:
    lake.untag("before-the-drop")
    lake.expire(keep_last=1)
    app = open_page(name, laser="2013-01-05T12:00")
    assert not app.exception
    assert not app.error
    gone = open_page(name, version="3")
    assert not gone.exception
    assert "not in the lake" in gone.error[0].value


@pytest.mark.parametrize("name", ["versions", "timeline", "tombstones", "key_frames", "segments"])
def test_an_empty_table_says_what_to_do(open_page: Any, lake: lakehouse.Lake, name: str) -> None:
    lake.create_table("empty", "at timestamp", time="at")
    app = open_page(name)
    assert not app.exception
    assert not app.error
    assert app.info
