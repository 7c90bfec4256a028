"""When an operation of the reference model conflicts and has to retry."""

from __future__ import annotations

from collections.abc import Callable

from lakehouse.testing.model_operation import CONDITIONAL, Kind, ModelOperation, ModelTable


def conflict(operation: ModelOperation, table: ModelTable) -> str | None:
    """Why an operation cannot be committed on the table's head; None if it can.

    It comes before every replace that it did not see. So nothing that it read may come after such a replace, and
    nothing that it writes may lie in the scope of a committed one.
    """
    reasons = REASONS if operation.kind in CONDITIONAL else ()
    if operation.kind == "erase":
        operation.overtake(table)  # it reads at its commit
        reasons = OVERTAKEN
    for breaks, reason in reasons:
        if not breaks(operation, table):
            continue
        if not operation.forced or breaks in PLAIN:
            return reason
        operation.passed.append(breaks.__name__)
    return None


def was_restored_since(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether the table was restored after the operation read it."""
    return any(version > operation.base for version in table.restores)


def was_erased_since(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether rows were erased after the operation read the table."""
    return any(version > operation.base for version in table.erasures)


def moves_out_of_a_replace(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether a row moves out of the scope of a running replace, which would then miss it."""
    return any(
        table.covered(one.before.row, replace.interval, replace.keys)
        and not table.covered(one.after, replace.interval, replace.keys)
        for replace in table.holders
        if replace.kind == "replace"
        for one in operation.rewritten
        if one.after is not None
    )


def lost_a_row(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether a row to update was removed or updated after it was read. A compaction does neither."""
    now = {(stored.id, stored.written) for stored in table.visible(table.head)}
    return any((one.before.id, one.before.written) not in now for one in operation.rewritten if one.after is not None)


def saw_what_comes_after(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether it read rows that come after a replace that it did not see."""
    return any(not one.aborted for one in operation.overtaken if one.kind == "replace")


def saw_what_comes_after_an_append(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether it read rows that come after an append that drew its number at begin and that it did not see."""
    return any(not one.aborted for one in operation.overtaken if one.kind == "append")


def writes_into_a_replace(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether it writes rows into the scope of a replace committed after it read."""
    return _writes_into(operation, table, "replace")


def writes_into_what_was_taken(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether it writes rows into the scope of a delete committed after it read."""
    return _writes_into(operation, table, "take")


def _writes_into(operation: ModelOperation, table: ModelTable, kind: Kind) -> bool:
    written = [one.after for one in operation.rewritten if one.after is not None] + operation.rows
    return any(
        version > operation.base and table.covered(row, other.interval, other.keys)
        for version, other in table.done
        if other.kind == kind
        for row in written
    )


def matches_otherwise(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether rows that a merge's source matches have changed, or new matches were added."""
    now = {(stored.id, stored.written) for stored in table.visible(table.head)}
    came = any(
        stored.written > operation.base
        for row in operation.rows
        for stored in table.partners(table.head, table.named(row), operation.on)
    )
    return came or any((stored.id, stored.written) not in now for stored in operation.matched)


def removes_what_a_merge_matched(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether it removes a row that kept a merge committed since from inserting one."""
    removed = {one.before.id for one in operation.rewritten if one.after is None}
    return any(
        version > operation.base and stored.id in removed for version, merge in table.done for stored in merge.matched
    )


def misses_what_was_moved_to_it(operation: ModelOperation, table: ModelTable) -> bool:
    """Whether an update or merge has since written a matching row: it comes after, without having seen this one."""
    return any(
        stored.derived and stored.written > operation.base and operation.means(table.named(stored.row))
        for stored in table.visible(table.head)
    )


Reasons = tuple[tuple[Callable[[ModelOperation, ModelTable], bool], str], ...]
OVERTAKEN: Reasons = (
    (saw_what_comes_after, "what was read comes after what was not seen"),
    (saw_what_comes_after_an_append, "what was read comes after what is being appended"),
)
REASONS: Reasons = (
    (was_restored_since, "a restore came between"),
    (was_erased_since, "an erasure came between"),
    (moves_out_of_a_replace, "a row would be moved out of what a running replace covers"),
    (lost_a_row, "a row that is rewritten was changed"),
    *OVERTAKEN,
    (writes_into_a_replace, "what is written belongs below a replace that was committed since"),
    (writes_into_what_was_taken, "what is written belongs below what was taken since"),
    (matches_otherwise, "what a merge's source matches is other rows by now"),
    (removes_what_a_merge_matched, "a row that is deleted was matched by a merge since"),
    (misses_what_was_moved_to_it, "a row that is meant came since"),
)

PLAIN = (moves_out_of_a_replace, lost_a_row)
"""Reasons that nothing takes the place of; others may be found by looking at less than rows, or at more."""
