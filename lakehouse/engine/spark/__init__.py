"""Spark as an engine, through its DataFrame API only: a classic session and Spark Connect both do."""

from lakehouse.extras import named

with named("spark"):
    from lakehouse.engine.spark.engine import SparkEngine, open_engine
    from lakehouse.engine.spark.statement import read_frame_rows
    from lakehouse.engine.spark.types import to_spark_type

__all__ = ["SparkEngine", "open_engine", "read_frame_rows", "to_spark_type"]
