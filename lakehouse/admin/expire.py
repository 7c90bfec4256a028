"""Expiring old versions that nobody needs."""

from __future__ import annotations

from lakehouse.core.expire import Expired, RetentionRequest
from lakehouse.session.session import Session


def expire(session: Session, request: RetentionRequest, *, dry_run: bool = False) -> Expired:
    """Expire versions; see `Lake.expire`."""
    session.pins.follow()  # release pins of versions that this process no longer reads
    return session.catalog.expire(request, dry_run=dry_run)
