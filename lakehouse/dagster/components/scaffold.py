"""What ``dg scaffold defs`` writes: a ``defs.yaml`` that can be edited and names the fields that most projects set."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component


class Attributes(dg.Scaffolder[Any]):
    """Writes a component with these attributes."""

    attributes: Mapping[str, Any] = {}

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Write the component's file."""
        scaffold_component(request, dict(self.attributes))
