"""A lake's tables by name, as a mapping has them."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.core.html import MOST_ROWS, html_table
from lakehouse.session.session import Session
from lakehouse.table.table import Table
from lakehouse.table.tables import open_table, table_names


class NamedTables:
    """Tables by name: what iterates over it gets the names."""

    session: Session

    def table(self, name: str) -> Table:
        """A table by name. Raises `TableNotFound`.

        >>> lake.table("flights").count()
        3
        """
        return open_table(self.session, name)

    def tables(self) -> list[str]:
        """Names of the tables, sorted."""
        return table_names(self.session)

    def __getitem__(self, name: str) -> Table:
        """The table of a name, as `table` returns it. The names are also what a lake iterates over and contains.

        >>> lake["flights"].count(), "flights" in lake, list(lake), len(lake)
        (3, True, ['flights'], 1)
        """
        return self.table(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.tables()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables())

    def __len__(self) -> int:
        return len(self.tables())

    def __bool__(self) -> bool:
        return True  # without a table, too

    def _repr_html_(self) -> str:
        tables = [self.table(name) for name in self.tables()[:MOST_ROWS]]
        rows = ([one.name, one.version, one.grain, one.time, len(one.columns)] for one in tables)
        return html_table(["table", "version", "grain", "time", "columns"], rows, repr(self).strip("<>"), len(self))
