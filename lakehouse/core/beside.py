"""Tables of the lake's own that lie beside a user's: they remember which changes were applied to it.

They are known by their name, which a rename of the user's table does not touch. They are listed nowhere as tables, are
maintained like all, and are dropped with what they lie beside.
"""

import re

_NAME = re.compile(r"changes_of_[0-9a-f]{32}")


def beside(folder: str) -> str:
    """The name of what remembers the changes of the table with this folder.

    >>> is_beside(beside("0123456789abcdef0123456789abcdef")), is_beside("changes_of_mind")
    (True, False)
    """
    return f"changes_of_{folder}"


def is_beside(name: str) -> bool:
    """Whether a table's name is that of one of the lake's own."""
    return _NAME.fullmatch(name) is not None
