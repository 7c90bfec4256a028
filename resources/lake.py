"""The lake that assets write to: what `$LAKEHOUSE_CATALOG` and `$LAKEHOUSE_WAREHOUSE` name, else ./.lakehouse."""

from typing import Any

from lakehouse.dagster import LakehouseIOManager, LakehouseResource

SPARK: dict[str, Any] = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
}

lakehouse = LakehouseResource(spark_config=SPARK)
io_manager = LakehouseIOManager(spark_config=SPARK)
