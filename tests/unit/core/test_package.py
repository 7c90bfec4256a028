"""What `lakehouse.core` gives, and what it costs to import."""

from __future__ import annotations

import pickle
import subprocess
import sys

import lakehouse.core
from lakehouse.core import Interval, Segment, Timeline, Tombstone, timeline


def test_timeline_is_the_function_even_after_the_module_of_that_name_was_imported() -> None:
    program = (
        "from lakehouse.core.timeline import Slice\n"
        "import lakehouse.core.timeline\n"
        "from lakehouse.core import timeline, Timeline\n"
        "assert timeline([], []) == Timeline()\n"
        "assert lakehouse.core.timeline is timeline\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert timeline([], []) == Timeline()


def test_every_name_that_the_package_lists_is_there() -> None:
    assert [name for name in lakehouse.core.__all__ if not hasattr(lakehouse.core, name)] == []


def test_importing_the_core_brings_in_no_engine_catalog_or_data_frame_library() -> None:
    program = (
        "import sys, lakehouse.core\n"
        "heavy = {'pandas', 'polars', 'duckdb', 'pyspark', 'sqlalchemy', 'dagster', 'streamlit'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_values_go_to_another_process_and_back() -> None:
    segment = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3, min={"client": 1})
    tombstone = Tombstone(id=2, start="2013-01-05", ordinal=4, keys={"client": [1, None]})
    found = timeline([segment], [tombstone])
    assert pickle.loads(pickle.dumps((segment, tombstone, found))) == (segment, tombstone, found)
    assert hash(segment) == hash(pickle.loads(pickle.dumps(segment)))
    assert pickle.loads(pickle.dumps(Interval.of("2013"))) == Interval.of("2013")
