"""The lake that assets write to: what `$LAKEHOUSE_CATALOG` and `$LAKEHOUSE_WAREHOUSE` name, else ./.lakehouse."""

from lakehouse.dagster import LakehouseResource

lakehouse = LakehouseResource(
    spark_config={
        "spark.master": "local[*]",
        "spark.app.name": "lakehouse",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
)
