"""The harness that sets systems side by side: its rows, its report, and a run with what this tree has itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from benchmarks.peers import report
from benchmarks.peers.data import Totals, make_source, rows, value_sum
from benchmarks.peers.races import Done

ROOT = Path(__file__).resolve().parents[3]


def record(system: str, figures: dict[str, float], *, work: str = "W3", wrong: str = "", error: str = "") -> Any:
    found = {"system": system, "work": work, "repeat": 0, "figures": figures, "wrong": [wrong] if wrong else []}
    return found | ({"error": error} if error else {})


def results(*records: Any) -> dict[str, Any]:
    facts = {"rows": 2000, "repeats": 3, "when": "2026-01-01", "machine": "two cores", "load": 0.1, "versions": {}}
    return {**facts, "records": list(records)}


def line(page: str, begin: str) -> str:
    return next(one for one in page.splitlines() if one.startswith(begin))


def test_the_same_seed_gives_the_same_rows_and_other_ids_give_others() -> None:
    one = rows(100, 1000, days=3)
    assert one.equals(rows(100, 1000, days=3))
    assert one["key"].to_pylist()[0] == "k100"
    assert not one["payload"].equals(rows(200, 1000, days=3)["payload"])
    assert set(pc.utf8_length(one["payload"]).to_pylist()) == {40}


def test_sums_are_exact_in_any_order() -> None:
    values = rows(0, 10_000, days=3)["value"].to_numpy()
    assert float(values.sum()) == float(np.sort(values)[::-1].cumsum()[-1]) == value_sum(rows(0, 10_000, days=3))


def test_a_source_knows_of_its_rows_what_its_files_hold(tmp_path: Path) -> None:
    source = make_source(tmp_path / "s", 2000, 4, 5, is_ordered=True)
    read = pc.sum(source.value).as_py()
    assert source.totals() == Totals(2000, read, 2000)
    assert sum(count for _, count in source.groups().values()) == 2000
    assert sorted(set(source.day.tolist())) == [0, 1, 2, 3]
    quarters = [set(source.sample(20, number)["key"].to_pylist()) for number in range(4)]
    assert [len(one) for one in quarters] == [20] * 4
    assert len(set.union(*quarters)) == 80


def test_a_figure_is_the_median_of_its_repeats_and_says_how_many_times_better_ours_is() -> None:
    ours = [record("lakehouse", {"scan_s": value}) for value in (0.2, 0.9, 0.1)]
    theirs = [record("ducklake", {"scan_s": value}) for value in (0.1, 0.1, 5.0)]
    page = report.page(results(*ours, *theirs))
    assert line(page, "| full scan") == "| full scan, s | 0.2 | 0.1 (**0.5**) |"
    assert "- full scan, s: DuckLake is 2.00 times ahead" in page


def test_more_commits_a_second_are_better() -> None:
    both = [record("lakehouse", {"together_per_s": 300.0}), record("ducklake", {"together_per_s": 60.0})]
    assert line(report.page(results(*both)), "| appends a second") == "| appends a second by 8 threads | 300 | 60 (5) |"


def test_plain_parquet_is_that_of_the_same_engine() -> None:
    found = [
        record("lakehouse", {"ingest_s": 3.0}, work="W1"),
        record("plain-duckdb", {"ingest_s": 2.0}, work="W1"),
        record("plain-duckdb-1", {"ingest_s": 1.0}, work="W1"),
    ]
    assert line(report.page(results(*found)), "| - over plain") == "| - over plain Parquet | 1.50 |  |  |"


def test_an_upsert_is_compared_with_the_merge_of_those_who_have_none() -> None:
    both = [record("lakehouse-spark", {"upsert_s": 0.2}, work="W6"), record("delta", {"merge_s": 4.0}, work="W6")]
    assert line(report.page(results(*both)), "| upsert of") == "| upsert of 10,000 rows, s | 0.2 | (20) |"


def test_a_wrong_result_is_shown_as_wrong() -> None:
    page = report.page(results(record("ducklake", {"scan_s": 0.1}, wrong="rows: expected 1, found 2")))
    assert line(page, "| full scan") == "| full scan, s | 0.1 WRONG |"
    assert "- W3, ducklake: WRONG, rows: expected 1, found 2" in page


def test_a_system_that_failed_stays_in_the_table_with_its_error() -> None:
    page = report.page(results(record("delta", {}, error="OutOfMemoryError: heap"), record("iceberg", {"scan_s": 1.0})))
    assert line(page, "| full scan") == "| full scan, s | FAILED | 1 |"
    assert "- W3, delta: FAILED, OutOfMemoryError: heap" in page


def test_races_count_who_failed_and_whether_rows_were_right() -> None:
    figures = {
        "together: rounds": 2, "together: right": 1, "together: compaction failed": 1, "together: compaction tried": 2,
        "together: delete failed": 0, "together: delete tried": 9,
    }  # fmt: skip
    page = report.page(results(record("ducklake", figures, work="W7")))
    assert line(page, "| together") == "| together | DuckLake | 1/2 | 0/0 | 0/9 | 0/0 | **1/2 WRONG** |"


def test_operations_that_only_touch_did_not_run_beside_each_other() -> None:
    one = Done("compaction", 0, 1.0, 2.0, None)
    assert Done("delete", 0, 1.5, 3.0, None).overlaps(one)
    assert not Done("delete", 0, 2.0, 3.0, None).overlaps(one)


def test_a_table_goes_between_the_marks_of_a_page_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.put_into(page, "new")
    report.put_into(page, "newer")
    assert page.read_text() == f"before\n{report.BEGIN}\n\nnewer\n\n{report.END}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="lacks the marks"):
        report.put_into(page, "new")


def test_what_this_tree_has_itself_runs_side_by_side_with_right_results(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks.peers", "--systems", "lakehouse,plain-duckdb"]
    command += ["--work", "W1,W3,W4,W5,W6,W8", "--rows", "2000", "--repeats", "1", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "lakehouse" in done.stdout
    found = json.loads(out.read_text())["records"]
    assert [one for one in found if one["wrong"] or "error" in one] == []
    done_by = {
        name: {one["work"] for one in found if one["system"] == name} - {"warm"}
        for name in ("lakehouse", "plain-duckdb")
    }
    assert done_by == {"lakehouse": {"W1", "W3", "W4", "W5", "W6", "W8"}, "plain-duckdb": {"W1", "W3", "W4"}}
