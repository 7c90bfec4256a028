"""Load rules: which segments of a table query nodes hold; and what a lake says of its query nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakehouse.core.commit import Commit
from lakehouse.core.listing import Listing
from lakehouse.core.serving.group import Group
from lakehouse.core.serving.rules import read_rules, rules_to_json
from lakehouse.errors import InvalidArgument
from lakehouse.session.session import Session
from lakehouse.table.table import Table
from lakehouse.table.tables import open_table


def set_load_rules(table: Table, given: Sequence[Mapping[str, Any]]) -> Commit:
    """Set a table's load rules; see `Lake.set_load_rules`. Raises `InvalidInput` for what is none."""
    from lakehouse.schema import typed_scope  # noqa: PLC0415 - late

    rules = read_rules(given)
    for rule in rules:
        if rule.keys:
            typed_scope(rule.keys, table.spec)
        if not table.time and (rule.interval is not None or rule.last_seconds is not None):
            raise InvalidArgument("the table has no time; write rules by keys", table=table.name)
    return table.set_properties({"load_rules": rules_to_json(rules) if rules else None})


class ServedTables:
    """What a lake says to and of query nodes: the part of `Lake` that is about them."""

    session: Session

    def set_load_rules(self, table: str, rules: Sequence[Mapping[str, Any]]) -> Commit:
        """Say which segments of a table query nodes hold; the rest is cold: read from the warehouse, never left out.

        Of the rules, in order, the first that matches a segment decides: ``{"interval": "last 30d"}`` or a period or
        pair of times, ``{"keys": {"client": [12]}}`` by cluster columns, with ``"cold": True`` for what is not to be
        held; ``{"cold": True}`` alone matches every one, ``{"cold": False}`` too. What no rule matches is cold; without
        rules, ``[]``, everything is held. They are the table's property ``load_rules``. Raises `InvalidInput`.

        >>> commit = lake.set_load_rules("flights", [{"interval": "last 30d"}, {"cold": True}])
        >>> lake.table("flights").properties["load_rules"]
        '[{"interval": "last 2592000s"}, {"cold": true}]'
        """
        return set_load_rules(open_table(self.session, table), rules)

    def serving(self) -> Listing[Group]:
        """Groups of query nodes, by name, as their nodes reported last: versions, handoffs, leases and figures.

        Cost: one small read.

        >>> lake.serving()
        []
        """
        return self.session.catalog.serving().groups()
