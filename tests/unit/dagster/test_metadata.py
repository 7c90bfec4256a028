"""What a materialization's metadata says of its table."""

from pathlib import Path

import lakehouse
from lakehouse.dagster.metadata import column_schema


def test_comments_of_columns_are_in_the_schema(tmp_path: Path) -> None:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        table = lake.create_table("trips", "at TIMESTAMP, client BIGINT", time="at")
        table.comment("who rode", column="client")
        assert {one.name: one.description for one in column_schema(lake["trips"]).columns} == {
            "at": None,
            "client": "who rode",
        }
