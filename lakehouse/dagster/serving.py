"""Query nodes in Dagster: a resource that asks them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import Field

import lakehouse


class ServingResource(dg.ConfigurableResource[Any]):
    """Query nodes of a group, which answer statements at one version of the lake, without Spark."""

    urls: list[str] = Field(description="The addresses of the nodes, such as http://127.0.0.1:8100.")
    token: str | None = Field(
        default=None, description="The token with which the nodes were started, from the environment."
    )
    wait_seconds: float = Field(
        default=10.0, ge=0, description="How many seconds a statement waits for a version, or for a node."
    )

    @contextmanager
    def get_client(self) -> Iterator["lakehouse.ServingClient"]:
        """A client, closed at the end of the block; one run's versions never go back.

        Examples
        --------
        >>> resource = ServingResource(urls=["http://127.0.0.1:8100"])
        >>> with resource.get_client() as client:
        ...     client
        <client of http://127.0.0.1:8100>
        """
        with lakehouse.connect_serving(self.urls, self.token, wait_seconds=self.wait_seconds) as client:
            yield client
