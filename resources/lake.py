"""The lake that assets write to: what `$LAKEHOUSE_CATALOG` and `$LAKEHOUSE_WAREHOUSE` name, else ./.lakehouse."""

from lakehouse.dagster import LakehouseResource

lakehouse = LakehouseResource(
    spark_config={
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
    }
)
