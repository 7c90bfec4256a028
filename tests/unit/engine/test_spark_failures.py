"""What errors of Spark's jobs are read as."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from lakehouse.engine.spark.failures import explaining_jobs
from lakehouse.errors import EngineUnavailable, SegmentUnreadable


@pytest.mark.parametrize(
    "text",
    [
        "[PATH_NOT_FOUND] Path does not exist: file:/data/my lake/0af1/00000-0.parquet. SQLSTATE: 42K03",
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
            "file:///data/my%20lake/0af1/00000-0.parquet. File does not exist. SQLSTATE: KD001"
        ),
    ],
)
def test_a_file_that_a_job_cannot_read_is_named(text: str) -> None:
    with pytest.raises(SegmentUnreadable) as raised, explaining_jobs():
        raise AnalysisException(text)
    assert raised.value.facts["path"] == "/data/my lake/0af1/00000-0.parquet"


def test_workers_without_the_package_are_named_with_the_remedy() -> None:
    with pytest.raises(EngineUnavailable, match="PYSPARK_PYTHON"), explaining_jobs():
        raise PySparkException("Traceback: ModuleNotFoundError: No module named 'lakehouse'")
    with pytest.raises(PySparkException), explaining_jobs():
        raise PySparkException("ModuleNotFoundError: No module named 'theirs'")


def test_any_other_error_stays_what_it_is() -> None:
    error = PySparkException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    with pytest.raises(PySparkException) as raised, explaining_jobs():
        raise error
    assert raised.value is error
