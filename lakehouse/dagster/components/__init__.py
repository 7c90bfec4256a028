"""Components of `dg`: a project's definitions from YAML, listed by ``dg list components``.

Each needs the resource ``lakehouse`` (a `lakehouse.dagster.LakehouseResource`) in the project's definitions.
"""

from lakehouse.dagster.components.chunked import LakehouseChunkedAssetComponent
from lakehouse.dagster.components.maintenance import LakehouseMaintenanceComponent
from lakehouse.dagster.components.tables import LakehouseTablesComponent

__all__ = ["LakehouseChunkedAssetComponent", "LakehouseMaintenanceComponent", "LakehouseTablesComponent"]
