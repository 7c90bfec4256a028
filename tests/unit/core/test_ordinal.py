"""The ordinal of what an operation adds, by its kind."""

import pyarrow as pa
import pytest

from lakehouse.core.chunk import Grain
from lakehouse.core.operation import Begun, Kind
from lakehouse.core.ordinal import draws_number, known_ordinal, ordinal_of
from lakehouse.core.spec import TableSpec

SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC"))])
SPEC = TableSpec(id=1, name="flights", folder="f", schema=SCHEMA, time="time", grain=Grain.DAY)
DRAWN, BASE, COMMIT = 7, 5, 9


@pytest.mark.parametrize(
    ("kind", "write_order", "ordinal"),
    [
        (Kind.APPEND, "commit", COMMIT),
        (Kind.APPEND, "start", DRAWN),
        (Kind.REPLACE, "commit", DRAWN),
        (Kind.REPLACE, "start", DRAWN),
        (Kind.COMPACTION, "commit", BASE),
        (Kind.COMPACTION, "start", BASE),
        *((kind, "start", COMMIT) for kind in (Kind.DELETE, Kind.UPDATE, Kind.MERGE, Kind.UPSERT, Kind.DELETE_KEYS)),
    ],
)
def test_what_an_operation_adds_has_the_number_of_the_moment_whose_rows_it_knows(kind, write_order, ordinal):
    drawn = DRAWN if draws_number(kind, write_order) else None
    begun = Begun(id="", number=1, kind=kind, table=SPEC, base_version=BASE, ordinal=drawn)
    assert ordinal_of(begun, COMMIT) == ordinal
    known = known_ordinal(kind, drawn=drawn, base_version=BASE)
    assert known == (None if ordinal == COMMIT else ordinal)
