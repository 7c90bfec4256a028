"""Maintenance of a lake: a job for each kind of task, and the sensor that starts them."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import dagster as dg
from pydantic import Field

from lakehouse.dagster.components.scaffold import Attributes
from lakehouse.dagster.maintenance import POOL, build_compaction_sensor, build_maintenance_jobs

Kind = Literal["compact", "resolve", "clean", "collect", "stats", "index"]


class MaintenanceScaffolder(Attributes):
    """Maintains every table, from the moment that the project is loaded."""

    attributes: Mapping[str, Any] = {"enabled": True, "most_runs": 2}


@dg.scaffold_with(MaintenanceScaffolder)
class LakehouseMaintenanceComponent(dg.Component, dg.Model, dg.Resolvable):
    """Maintenance of a lake: a job for each kind of task, and the sensor that starts them, best score first.

    Properties of the tables say what is worth doing; see docs/service.md.
    """

    kinds: list[Kind] = Field(default=list(get_args(Kind)), description="Kinds of tasks that it runs; by default all.")
    tables: list[str] | None = Field(default=None, description="Tables to maintain; by default all.")
    least_score: float = Field(default=0.0, description="Tasks that gain less are left.")
    most_runs: int = Field(default=3, ge=1, description="How many runs at once.")
    engine: Literal["duckdb", "spark"] | None = Field(
        default=None, description="spark rewrites segments with Spark; by default in process."
    )
    pool: str = Field(default=POOL, description="The concurrency pool of the runs.")
    enabled: bool = Field(default=False, description="Whether the sensor runs without being switched on by hand.")
    lakehouse_key: str = Field(default="lakehouse", description="The resource of the lake.")

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The jobs and their sensor."""
        jobs = build_maintenance_jobs(
            kinds=self.kinds, lakehouse_key=self.lakehouse_key, pool=self.pool, engine=self.engine
        )
        status = dg.DefaultSensorStatus.RUNNING if self.enabled else dg.DefaultSensorStatus.STOPPED
        sensor = build_compaction_sensor(
            jobs,
            tables=self.tables,
            least_score=self.least_score,
            most_runs=self.most_runs,
            lakehouse_key=self.lakehouse_key,
            default_status=status,
        )
        return dg.Definitions(jobs=jobs, sensors=[sensor])
