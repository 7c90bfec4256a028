"""Changes of columns between two definitions, beside a list that says of each column who it is."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from lakehouse.core.spec import TableSpec
from lakehouse.schema import altered, define_table, restored
from lakehouse.schema.changes import (
    AddColumn,
    CommentColumn,
    DropColumn,
    MakeNullable,
    MoveColumn,
    RenameColumn,
    SetDefault,
    WidenColumn,
)
from lakehouse.schema.difference import column_changes

WIDER = {"int8": "int32", "int32": "int64"}
NAMES = ("a", "b", "c", "d", "ü", "select", "x.y")


@dataclass(frozen=True)
class One:
    """A column or a field of a struct: who it is, and what is said of it."""

    who: int
    name: str
    type: str = "int8"
    comment: str = ""
    default: str = ""
    parts: tuple[One, ...] = ()


@dataclass
class Model:
    """Columns in their order, changed at random beside a definition."""

    chance: random.Random
    spec: TableSpec
    columns: list[One]
    newest: int = 10
    said: list[str] = field(default_factory=list)

    def step(self) -> None:
        """One change of a column, or of a field of one."""
        places = [n for n, one in enumerate(self.columns) if one.parts]
        if places and self.chance.random() < 0.5:
            place = self.chance.choice(places)
            holder = self.columns[place]
            parts = self.changed(list(holder.parts), (holder.name,))
            self.columns[place] = replace(holder, parts=tuple(parts))
        else:
            self.columns = [self.columns[0], *self.changed(self.columns[1:], ())]

    def changed(self, parts: list[One], path: tuple[str, ...]) -> list[One]:
        unused = [one for one in NAMES if one not in {part.name for part in parts}]
        place = self.chance.randrange(len(parts))
        one = parts[place]
        least = None if path else "ts"  # the first column stays the first
        name = (*path, one.name)
        match self.chance.choice(["add", "drop", "rename", "move", "widen", "comment", "default"]):
            case "add" if unused:
                self.newest += 1
                made = One(
                    self.newest, self.chance.choice(unused), default="" if path else self.chance.choice(["", "5"])
                )
                where = self.chance.randrange(len(parts) + 1)
                after = least if where == 0 else parts[where - 1].name
                default = int(made.default) if made.default else None
                self.alter(AddColumn((*path, made.name), "TINYINT", None, default, after, after is None))
                return [*parts[:where], made, *parts[where:]]
            case "drop" if len(parts) > 2:
                self.alter(DropColumn(name))
                return [*parts[:place], *parts[place + 1 :]]
            case "rename" if unused:
                new = self.chance.choice(unused)
                self.alter(RenameColumn(name, new))
                return [*parts[:place], replace(one, name=new), *parts[place + 1 :]]
            case "move":
                others = [*parts[:place], *parts[place + 1 :]]
                where = self.chance.randrange(len(others) + 1)
                after = least if where == 0 else others[where - 1].name
                self.alter(MoveColumn(name, after, after is None))
                return [*others[:where], one, *others[where:]]
            case "widen" if one.type in WIDER and not one.parts:
                kind = WIDER[one.type]
                self.alter(WidenColumn(name, {"int32": "INT", "int64": "BIGINT"}[kind]))
                return [*parts[:place], replace(one, type=kind), *parts[place + 1 :]]
            case "comment":
                text = self.chance.choice(["", "of Ada", "é"])
                self.alter(CommentColumn(name, text))
                return [*parts[:place], replace(one, comment=text), *parts[place + 1 :]]
            case "default" if not path and not one.parts:
                value = self.chance.choice([None, 5, 6])
                self.alter(SetDefault(name, value))
                return [*parts[:place], replace(one, default="" if value is None else str(value)), *parts[place + 1 :]]
        return parts

    def alter(self, change: object) -> None:
        self.spec = altered(self.spec, [change])


def expected(before: list[One], after: list[One], path: str = "") -> list[tuple[str, str, str, str]]:
    """Changes but moves, by looking at everything."""
    found = []
    for one in before:
        if all(one.who != other.who for other in after):
            found.append(("dropped", path + one.name, one.type if not one.parts else "struct", ""))
    for one in after:
        (was,) = [other for other in before if other.who == one.who] or [None]
        where = path + one.name
        if was is None:
            found.append(("added", where, "", one.type if not one.parts else "struct"))
            continue
        said = [("renamed", was.name, one.name), ("commented", was.comment, one.comment),
                ("default", was.default, one.default)]  # fmt: skip
        if was.type != one.type:
            sizes = ["int8", "int32", "int64"]
            said.append(
                ("widened" if sizes.index(one.type) > sizes.index(was.type) else "narrowed", was.type, one.type)
            )
        found += [(kind, where, old, new) for kind, old, new in said if old != new]
        found += expected(list(was.parts), list(one.parts), f"{where}.")
    return found


def check_moves(before: list[One], after: list[One], moved: set[str], path: str = "") -> set[str]:
    """The moved ones are a smallest set without which both have one order. What is left of the moves."""
    old = [one.who for one in before if any(one.who == other.who for other in after)]
    new = [one.who for one in after if one.who in old]
    here = {one.who for one in after if one.who in old and path + one.name in moved}
    assert [who for who in old if who not in here] == [who for who in new if who not in here]
    for fewer in itertools.combinations(new, max(len(here) - 1, 0)):
        if here:
            assert [who for who in old if who not in fewer] != [who for who in new if who not in fewer]
    left = moved - {path + one.name for one in after}
    for one in after:
        (was,) = [other for other in before if other.who == one.who] or [None]
        if was is not None and one.parts:
            left = check_moves(list(was.parts), list(one.parts), left, f"{path}{one.name}.")
    return left


@pytest.mark.parametrize("seed", range(40))
def test_changes_are_what_a_list_of_columns_says_between_any_two_definitions(seed):
    spec = define_table("t", "ts TIMESTAMP, a TINYINT, s STRUCT<a: TINYINT, b: TINYINT>, c TINYINT", time="ts")
    columns = [One(0, "ts", "time"), One(1, "a"), One(2, "s", "struct", parts=(One(3, "a"), One(4, "b"))), One(5, "c")]
    model = Model(random.Random(seed), spec, columns)
    known = [(model.spec, list(model.columns))]
    for number in range(14):
        model.step()
        if number == 9:  # a restore brings columns back, with who they are
            then, held = known[model.chance.randrange(len(known))]
            model.spec = restored(model.spec, then, [one for one, _ in known if one.schema_number > then.schema_number])
            model.columns = list(held)
        if model.spec.schema_number != known[-1][0].schema_number:
            known.append((model.spec, list(model.columns)))
    for (old, before), (new, after) in itertools.product(known, known):
        found = column_changes(old, new)
        plain = [
            (one.kind, one.column, shorter(one.before), shorter(one.after)) for one in found if one.kind != "moved"
        ]
        assert sorted(plain) == sorted(expected(before, after))
        moved = {one.column for one in found if one.kind == "moved"}
        assert check_moves(before, after, moved) == set()


def shorter(text: str) -> str:
    return "struct" if text.startswith("struct<") else text


def test_parts_of_lists_and_maps_change_under_their_paths_and_a_name_used_again_is_another_one():
    before = define_table(
        "t", "ts TIMESTAMP, l ARRAY<STRUCT<p: INT, q: INT>>, m MAP<STRING, INT>, n INT NOT NULL", time="ts"
    )
    after = altered(
        before,
        [
            DropColumn(("l", "element", "p")),
            AddColumn(("l", "element", "p"), "STRING"),
            RenameColumn("l", "list"),
            WidenColumn(("m", "value"), "BIGINT"),
            MakeNullable("n"),
            AddColumn("d", "DATE", first=True),
        ],
    )
    assert [str(one) for one in column_changes(before, after)] == [
        "column d added: date32[day]",
        "column list renamed: l to list",
        "column list.element.p dropped: int32",
        "column list.element.p added: string",
        "column m.value widened: int32 to int64",
        "column n nullability: never null to may be null",
    ]
    assert column_changes(after, after) == []


def test_a_table_of_thousands_of_columns_is_compared_in_one_pass():
    """Reversed, all columns but one have moved; the work does not grow with the square of their number."""
    names = [f"c{number}" for number in range(3000)]
    fields = [pa.field(name, pa.int64()) for name in names]
    time = pa.field("ts", pa.timestamp("us", "UTC"), nullable=False)
    before = define_table("t", pa.schema([time, *fields]), time="ts")
    after = replace(before, schema=pa.schema([before.schema.field("ts"), *list(before.schema)[:0:-1]]))
    assert len(column_changes(before, after)) == len(names) - 1
