"""Tables of the lake's own beside a user's: what remembers the changes applied to it, and what will replace it.

They are known by their name, which a rename of the user's table does not touch. They are listed nowhere as tables and
are maintained like all. What remembers changes is dropped with what it lies beside. A replacement is filled, and then
gets the name of the other one in the commit that drops that one; if its writer dies before, a collection drops it.
"""

import re

_REPLACEMENT = re.compile(r"replacing_[0-9a-f]{32}")
_NAME = re.compile(rf"changes_of_[0-9a-f]{{32}}|{_REPLACEMENT.pattern}")


def beside(folder: str) -> str:
    """The name of what remembers the changes of the table with this folder.

    >>> is_beside(beside("0123456789abcdef0123456789abcdef")), is_beside("changes_of_mind")
    (True, False)
    """
    return f"changes_of_{folder}"


def replacement(unique: str) -> str:
    """The name, until it is filled, of a table that will take another one's place; ``unique`` has 32 digits of 16.

    >>> name = replacement("0123456789abcdef0123456789abcdef")
    >>> is_replacement(name), is_beside(name), is_replacement("replacing_teeth")
    (True, True, False)
    """
    return f"replacing_{unique}"


def is_beside(name: str) -> bool:
    """Whether a table's name is that of one of the lake's own."""
    return _NAME.fullmatch(name) is not None


def is_replacement(name: str) -> bool:
    """Whether a table's name is that of one which is being filled to take another one's place."""
    return _REPLACEMENT.fullmatch(name) is not None
