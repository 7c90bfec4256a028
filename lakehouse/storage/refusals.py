"""What the answers of object stores mean, with the remedy, and what of them is shown."""

from __future__ import annotations

import re
import textwrap
from html import unescape

from lakehouse.storage.credentials import PROVIDER, without_login

_MOST_LETTERS = 300
"""Of what a store says in an error."""
_NO_BUCKET = "there is no such bucket; make it, or correct the address"
_EXPIRED = "the credentials have expired; get new ones"
_UNKNOWN = "the store does not know these credentials; correct access key and secret"
_REGION = "the bucket is in another region; give it as AWS_REGION, or as region in storage_options"
_NAMED_REGION = re.compile(r"<Region>([\w-]+)</Region>|expecting '([\w-]+)'")
_NONE = "no credentials were found; give them in the environment or as storage_options"
_FORBIDDEN = "the credentials do not allow it; grant reading, writing, deleting and listing below the prefix"
_SILENT = "the store does not answer; check endpoint and network"
_FAILING = "the store is overloaded or failing; try again later"
_NO_TLS = "the store does not answer by TLS, or shows a wrong certificate; check http or https of the endpoint"
_ABORTED = "the upload was aborted, as lakehouse collect does for an operation past its lease; run the operation again"
_CLOCK = "this machine's clock is wrong by minutes; set it by NTP"
_LACKING = (
    "the store does not know what it was asked, or the condition If-None-Match; use one that does "
    "(docs/deployment.md says what it needs)"
)
_NO_STORE = "what answers is no object store, or something between changes its answers; check the endpoint, and proxies"
_NOT_FOUND = "there is no such bucket, or what answers is no object store; check the address, the endpoint, and proxies"
_ARCHIVED = "the store has moved the object to an archive; bring it back, and exempt the prefix from such rules"
_FULL = "the store is full; make room, or raise its quota"
_AT_ONCE = "another request for the same name goes on; run the operation again"
_MEANINGS = {
    PROVIDER: "credential_provider failed; mend it, or what it asks",
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": _NO_BUCKET,
    "bucket does not exist": _NO_BUCKET,
    "RequestTimeTooSkewed": _CLOCK,
    "Request date header too old": _CLOCK,
    "in a reasonable timeframe": _CLOCK,
    "InvalidObjectState": _ARCHIVED,
    "QuotaExceeded": _FULL,
    "status code: 507": _FULL,
    "not valid in the specified time frame": _EXPIRED,
    "ExpiredToken": _EXPIRED,
    "TokenExpired": _EXPIRED,
    "InvalidToken": _UNKNOWN,
    "InvalidAccessKeyId": _UNKNOWN,
    "XAdminUserNotFound": _UNKNOWN,
    "SignatureDoesNotMatch": _UNKNOWN,
    "AuthenticationFailed": _UNKNOWN,
    "Server failed to authenticate the request": _UNKNOWN,
    "invalid_grant": _UNKNOWN,
    "401 Unauthorized": _UNKNOWN,
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraint": _REGION,
    "redirect without LOCATION": _REGION,
    "status code: 301": _REGION,
    "NotImplemented": _LACKING,
    "status code: 501": _LACKING,
    "ConditionalRequestConflict": _AT_ONCE,
    "OperationAborted": _AT_ONCE,
    "Header missing from response": _NO_STORE,
    "Got invalid": _NO_STORE,
    "InvalidPart": _NO_STORE,
    "NoSuchUpload": _ABORTED,
    "status code: 404": _NOT_FOUND,
    "169.254.169.254": _NONE,
    "metadata.google.internal": _NONE,
    "AccessDenied": _FORBIDDEN,
    "403 Forbidden": _FORBIDDEN,
    "Unable to locate credentials": _NONE,
    "Error when retrieving credentials": _NONE,
    "SlowDown": _FAILING,
    "status code: 503": _FAILING,
    "status code: 500": _FAILING,
    "status code: 429": _FAILING,
    "InvalidData": _NO_TLS,
    "error sending request": _SILENT,
    "Connection": _SILENT,
}
"""What the texts of a store's answers mean, the first that fits."""


def meaning_of(text: str) -> str:
    """What a store's answer means, with the remedy.

    >>> meaning_of("<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>")
    'the bucket is in the region eu-west-1; give it as AWS_REGION, or as region in storage_options'
    """
    found = next((meaning for part, meaning in _MEANINGS.items() if part in text), "the store refused a request")
    named = _NAMED_REGION.search(text) if found == _REGION else None
    return found if named is None else found.replace("another region", f"the region {named[1] or named[2]}")


def says_expired(text: str) -> bool:
    """Whether a store's answer means that the credentials have expired, so that there may be new ones.

    >>> says_expired("<Code>ExpiredToken</Code>"), says_expired("<Code>AccessDenied</Code>")
    (True, False)
    """
    return meaning_of(text) == _EXPIRED


def first_line(error: BaseException) -> str:
    """What a store says, without the debugging that follows it, and without what addresses may hold of secrets.

    Of an answer its status, and of one in XML its code and message; else the host that was asked. What was asked of
    which object is said beside it.

    >>> first_line(OSError("PUT a - status code: 403: <?xml ?><Error><Code>Denied</Code><Message>No.</Message>"))
    'status code: 403: Denied: No.'
    >>> first_line(OSError("status code: 400: <Error><Code>Wrong</Code><Message>not &#34;x&#34;</Message></Error>"))
    'status code: 400: Wrong: not "x"'
    >>> first_line(OSError("Error performing PUT http://127.0.0.1:9/lake/a.parquet in 3s - error sending request"))
    'Error performing PUT http://127.0.0.1:9 in 3s - error sending request'
    """
    said = " ".join(str(error).partition("Debug source:")[0].split())
    said = said[max(0, said.find("status code: ")) :]
    if answered := re.search(r"<Code>([^<]*)</Code>(?:.*?<Message>([^<]*))?", said):
        before = said[: said.index("<")].rstrip("\ufeff ")
        said = f"{before} {unescape(': '.join(one for one in answered.groups() if one))}"
    said = re.sub(r"(://[^\s/?]*)[/?]\S*", r"\1", without_login(said)).strip()
    return textwrap.shorten(said, _MOST_LETTERS, placeholder=" ...") or type(error).__name__
