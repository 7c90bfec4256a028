"""What a part of the campaign found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many cases of a part were tried, how many were refused with a documented error, and which were wrong."""

    name: str
    tried: int
    refused: int
    wrong: list[str]
