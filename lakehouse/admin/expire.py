"""Forgetting old versions, as far as nobody needs them."""

from __future__ import annotations

from lakehouse.core.expire import Expired, RetentionRequest
from lakehouse.session.session import Session


def expire(session: Session, request: RetentionRequest, *, dry_run: bool = False) -> Expired:
    """Forget versions; see `Lake.expire`."""
    session.pins.follow()  # what this process has read, and reads no more, is not in the way
    return session.catalog.expire(request, dry_run=dry_run)
