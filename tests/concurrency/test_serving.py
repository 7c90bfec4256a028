"""Query nodes under chaos, shortly; `lakehouse.testing.serving_trial` as a command does it for as long as one likes."""

from pathlib import Path

from lakehouse.testing.serving_trial import run_trial


def test_every_answer_is_its_version_s_while_nodes_are_killed_paused_and_full(tmp_path: Path) -> None:
    report = run_trial(queries=2_000, seconds=6.0, seed=5, folder=tmp_path, nodes=2)
    assert report.wrong == []
    assert report.answers > 10, report
    assert report.versions > 2, report
    assert report.faults.total() > 0, report
