"""Faults of object stores, and when they come: rules that a test gives one by one, or a schedule drawn from a seed."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum, auto

from lakehouse.testing.store_requests import WRITES, Kind, Request


class Fault(StrEnum):
    """What happens to a request instead of its answer."""

    SLOW_DOWN = auto()
    """503, nothing done: the store asks for fewer requests."""
    TOO_MANY = auto()
    """429, nothing done."""
    INTERNAL = auto()
    """500, nothing done."""
    RESET = auto()
    """The connection is reset, nothing done."""
    LOST = auto()
    """The store does what is asked, then the connection is reset before its answer."""
    CUT = auto()
    """Half of the answer's body comes, then the connection ends."""
    EXPIRED = auto()
    """400 ExpiredToken, nothing done."""
    FORBIDDEN = auto()
    """403 AccessDenied, nothing done."""
    SKEWED = auto()
    """403 RequestTimeTooSkewed, nothing done."""
    REDIRECTED = auto()
    """301 without an address, nothing done: the bucket is in another region."""
    OTHER_REGION = auto()
    """400 AuthorizationHeaderMalformed, nothing done: it was signed for another region than the bucket's."""
    NOT_IMPLEMENTED = auto()
    """501, nothing done."""
    BAD_TOKEN = auto()
    """400 InvalidToken, nothing done."""
    ARCHIVED = auto()
    """403 InvalidObjectState, nothing done: the object was moved to an archive."""
    FULL = auto()
    """507, nothing done."""
    NOT_FOUND = auto()
    """404 of a web server, nothing done."""
    PAGE = auto()
    """200 and a page in HTML, nothing done: something between asks for a login."""
    AT_ONCE = auto()
    """409 ConditionalRequestConflict, nothing done: another request for the name goes on."""
    HANG = auto()
    """No answer ever comes, nothing done."""


ANSWERS = {
    Fault.SLOW_DOWN: (503, "Slow Down", "SlowDown", "Please reduce your request rate."),
    Fault.TOO_MANY: (429, "Too Many Requests", "TooManyRequests", "Please reduce your request rate."),
    Fault.INTERNAL: (500, "Internal Server Error", "InternalError", "We encountered an internal error."),
    Fault.EXPIRED: (400, "Bad Request", "ExpiredToken", "The provided token has expired."),
    Fault.FORBIDDEN: (403, "Forbidden", "AccessDenied", "Access Denied"),
    Fault.SKEWED: (
        403,
        "Forbidden",
        "RequestTimeTooSkewed",
        "The difference between the request time and the server's time is too large.",
    ),
    Fault.REDIRECTED: (301, "Moved Permanently", "PermanentRedirect", "Use the bucket's own endpoint."),
    Fault.OTHER_REGION: (
        400,
        "Bad Request",
        "AuthorizationHeaderMalformed",
        "The authorization header is malformed; the region is wrong; expecting 'eu-west-1'",
    ),
    Fault.NOT_IMPLEMENTED: (501, "Not Implemented", "NotImplemented", "A header asks for what is not implemented."),
    Fault.BAD_TOKEN: (400, "Bad Request", "InvalidToken", "The provided token is malformed or otherwise invalid."),
    Fault.ARCHIVED: (403, "Forbidden", "InvalidObjectState", "Not valid for the object's storage class."),
    Fault.FULL: (507, "Insufficient Storage", "QuotaExceeded", "The bucket's quota is used up."),
    Fault.NOT_FOUND: (404, "Not Found", "", ""),
    Fault.PAGE: (200, "OK", "", ""),
    Fault.AT_ONCE: (409, "Conflict", "ConditionalRequestConflict", "A conflicting conditional operation goes on."),
}
"""Status, reason, code and message of the faults that are an answer; without a code, that of a web server."""
PASSING = (Fault.SLOW_DOWN, Fault.TOO_MANY, Fault.INTERNAL, Fault.RESET, Fault.LOST, Fault.CUT)
"""The faults that a client has to get over by trying again."""


def fits(fault: Fault, kind: Kind) -> bool:
    """Whether a fault says something of its own about a kind of request.

    >>> fits(Fault.CUT, Kind.GET), fits(Fault.CUT, Kind.PUT), fits(Fault.LOST, Kind.GET)
    (True, False, False)
    """
    match fault:
        case Fault.CUT:
            return kind in (Kind.GET, Kind.LIST)
        case Fault.LOST:
            return kind in WRITES
        case _:
            return True


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault for the requests of some kinds whose path matches a pattern.

    Parameters
    ----------
    kinds
        The kinds of requests; all where empty.
    path
        A regular expression, searched for in ``/bucket/key``.
    header
        A regular expression, searched for in each header, as in ``x-amz-security-token: old``.
    first
        The first of the requests that match to be hit, counted from 1.
    times
        How many are hit from there on; None is all.
    """

    fault: Fault
    kinds: Collection[Kind] = ()
    path: str = ""
    header: str = ""
    first: int = 1
    times: int | None = 1

    def matches(self, request: Request) -> bool:
        """Whether a request is one of those that are counted."""
        if (self.kinds and request.kind not in self.kinds) or re.search(self.path, request.path) is None:
            return False
        headers = (f"{name}: {value}" for name, value in request.headers.items())
        return not self.header or any(re.search(self.header, one) for one in headers)

    def hits(self, number: int) -> bool:
        """Whether the request with this number among those that match is hit.

        >>> [Rule(Fault.RESET, first=2, times=2).hits(number) for number in (1, 2, 3, 4)]
        [False, True, True, False]
        """
        return number >= self.first and (self.times is None or number < self.first + self.times)


@dataclass(slots=True)
class Schedule:
    """Faults drawn from a seed: the same requests in the same order meet the same faults.

    ``rate`` of the requests (0 to 1) are hit. One kind of request for one path is hit at most ``in_a_row`` times
    without a success between, so that a client which tries once more often gets through.
    """

    seed: int
    rate: float
    faults: Collection[Fault] = PASSING
    kinds: Collection[Kind] = tuple(Kind)
    in_a_row: int = 2
    _chance: random.Random = field(init=False)
    _row: Counter[tuple[Kind, str]] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311

    def draw(self, request: Request) -> Fault | None:
        """The fault of the next request, None for most."""
        is_hit, one = self._chance.random() < self.rate, self._chance.random()  # two draws each, whatever comes of them
        fitting = [fault for fault in self.faults if fits(fault, request.kind)]
        place = (request.kind, request.path)
        if not is_hit or not fitting or request.kind not in self.kinds or self._row[place] >= self.in_a_row:
            self._row.pop(place, None)
            return None
        self._row[place] += 1
        return fitting[int(one * len(fitting))]
