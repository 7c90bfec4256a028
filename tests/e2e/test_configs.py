"""Wrong configurations of the demo's jobs and resources fail with a clear error before Spark starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, os, sys
import dagster as dg
from assets.definitions import defs

found = []
with dg.DagsterInstance.ephemeral() as instance:
    for job, run_config, tags in json.loads(sys.argv[1]):
        definition = defs.resolve_job_def(job) if job else defs.resolve_implicit_global_asset_job_def()
        selection = {} if job else {"asset_selection": [dg.AssetKey("flights")]}
        try:
            result = definition.execute_in_process(
                instance=instance, run_config=run_config, tags=tags, raise_on_error=False, **selection
            )
            failed = [one for one in result.all_events if one.is_failure]
            texts = [one.step_failure_data.error.to_string() for one in failed if one.is_step_failure]
            texts += [str(one.message) for one in failed] + [str(one.event_specific_data) for one in failed]
            found.append([result.success, " ".join(texts)])
        except dg.DagsterError as error:
            found.append([False, str(error)])
    made = len(instance.get_latest_materialization_events([dg.AssetKey("flights")])) and bool(
        instance.get_latest_materialization_event(dg.AssetKey("flights"))
    )
children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
print(json.dumps({"found": found, "children": children, "spark": "pyspark" in sys.modules, "made": made}))
"""
CASES: list[tuple[str, str | None, dict[str, Any], dict[str, str], str]] = [
    ("carrier", "restate_carrier", {"replace_carrier": {"carrier": "XX"}}, {}, "no such carrier; choose one"),
    ("period", "restate_carrier", {"replace_carrier": {"interval": "yesterday"}}, {}, "yesterday"),
    ("time", "restate_carrier", {"replace_carrier": {"interval": "2020-01-01"}}, {}, "no flights of this time"),
    ("late", "late_flights", {"append_late_rows": {"interval": "2013-13"}}, {}, "2013-13"),
    ("type", "late_flights", {"append_late_rows": {"interval": 7}}, {}, "interval"),
    ("task", "lakehouse_compact", {"run_compact": {"task": 99}}, {}, "no such task"),
    ("number", "lakehouse_compact", {"run_compact": {"task": 0}}, {}, "greater than or equal to 1"),
    ("range", None, {}, {"first": "2013-01-03", "last": "2013-01-01"}, "reversed"),
    ("catalog", "late_flights", {}, {"catalog": "nonsense://here"}, "nonsense"),
    ("seconds", "late_flights", {}, {"wait_seconds": "-1"}, "greater than or equal to 0"),
]


def test_a_wrong_configuration_fails_by_name_and_starts_no_spark(tmp_path: Path) -> None:
    runs = []
    for _, job, ops, given, _ in CASES:
        lake: dict[str, Any] = {"catalog": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path / "warehouse")}
        lake |= {"catalog": given["catalog"]} if "catalog" in given else {}
        lake |= {"wait_seconds": float(given["wait_seconds"])} if "wait_seconds" in given else {}
        config: dict[str, Any] = {
            "resources": {"lakehouse": {"config": lake}},
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        }
        if ops:
            config["ops"] = {name: {"config": values} for name, values in ops.items()}
        tags = {f"dagster/asset_partition_range_{end}": given[name] for end, name in
                (("start", "first"), ("end", "last")) if name in given}  # fmt: skip
        runs.append((job, config, tags))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHOUSE_", "DAGSTER_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(runs)],
        cwd=tmp_path,
        env=inherited | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (answer["children"], answer["spark"], answer["made"]) == ([], False, False)
    for (name, *_, said), (success, text) in zip(CASES, answer["found"], strict=True):
        assert not success, name
        assert said in text, f"{name}: {text[-3000:]}"
