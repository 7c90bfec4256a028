"""The requests of uploads in parts, to S3 and what speaks it, by botocore.

`obstore` gives neither an upload's id before its first part nor a condition on its end. The options are those of
`obstore`, by its names, and so are the sources of credentials: the options, the environment, a role's token, a
container, a machine. Files of profiles are not read, since `obstore` reads none.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import responses
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from botocore import exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError
from botocore.session import Session

from lakehouse.storage.uploads import Part, UploadRefused

_CONNECT_SECONDS = 3
_READ_SECONDS = 300
"""For an answer to what holds a part, or makes all of them an object."""
ANSWER_SECONDS: float = 10
"""For every other answer."""
_TOGETHER = 16
_STREAM_BYTES = 4 << 20
_OF_FILES = ("assume-role", "sso", "shared-credentials-file", "login", "custom-process", "config-file",
             "ec2-credentials-file", "boto-config")  # fmt: skip
_FIELDS = {
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "session_token": "token",
    "token": "token",
    "default_region": "region",
    "region": "region",
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "virtual_hosted_style_request": "is_virtual",
    "checksum_algorithm": "checksum",
    "server_side_encryption": "ServerSideEncryption",
    "sse_kms_key_id": "SSEKMSKeyId",
    "sse_bucket_key_enabled": "BucketKeyEnabled",
}
"""By the names of `obstore`'s options, what they are here."""
_BESIDE = frozenset({
    "allow_http", "bucket", "bucket_name", "credential_provider", "multipart_bytes", "read_timeout", "timeout",
})  # fmt: skip
"""Options that do not change how a part is put."""
_UNKNOWN_HERE = ("sse_customer_key_base64", "s3_express", "skip_signature", "request_payer")
"""Variables of the environment that `obstore` reads and this does not."""
_TOKEN = re.compile(r"(?i)(x-amz-security-token['\":\s]+(?:b?['\"])?)[^\s'\",]+")
_UNHEARD = {
    exceptions.EndpointConnectionError: "error sending request: ConnectionRefused",
    exceptions.ConnectTimeoutError: "error sending request: NetworkUnreachable",
    exceptions.SSLError: "error sending request: InvalidData",
    exceptions.HTTPClientError: "error sending request",
    ResponseParserError: "body error",
}
"""Where no answer came or a part of one, what `obstore` says of it; the first class that fits."""


def _settings(options: Mapping[str, Any]) -> dict[str, str]:
    """The options by the names of `_FIELDS`, those that are missing from the environment."""
    found = {}
    for source in (os.environ, options):
        is_own = source is options
        held = {name.lower(): str(value) for name, value in source.items()}
        for name in sorted(held):
            plain = name.removeprefix("aws_")
            if plain in _FIELDS and (is_own or plain != name):
                found[_FIELDS[plain]] = held[name]
    return found


def speaks(options: Mapping[str, Any], bucket: str) -> bool:
    """Whether all options are understood here, so that parts are put as `obstore` puts whole objects.

    >>> speaks({"aws_region": "eu-west-1"}, "lake"), speaks({"proxy_url": "http://proxy"}, "lake")
    (True, False)
    """
    names = {name.lower().removeprefix("aws_") for name in options}
    if not names <= _FIELDS.keys() | _BESIDE or any(f"AWS_{name.upper()}" in os.environ for name in _UNKNOWN_HERE):
        return False
    held = _settings(options)
    return not _is_true(held.get("is_virtual")) or "endpoint" not in held or _is_of_bucket(held["endpoint"], bucket)


def _is_true(text: str | None) -> bool:
    return (text or "").lower() in ("true", "1")


def _is_of_bucket(endpoint: str, bucket: str) -> bool:
    """Whether the bucket is the first part of an endpoint's host."""
    return urlsplit(endpoint).netloc.startswith(f"{bucket}.")


class _WithoutTokens(logging.Filter):
    """Takes tokens out of what botocore logs of its requests for debugging."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        if _TOKEN.search(said):
            record.msg, record.args = _TOKEN.sub(r"\1***", said), ()
        return True


for _logger in ("botocore.auth", "botocore.endpoint"):
    logging.getLogger(_logger).addFilter(_WithoutTokens())


class S3Uploads:
    """A `lakehouse.storage.uploads.UploadClient` for a bucket's prefix. Thread-safe.

    ``current`` returns the options with the credentials of now. Raises `UploadRefused` if that fails.
    """

    def __init__(self, url: str, current: Callable[[], Mapping[str, Any]]) -> None:
        parts = urlsplit(url)
        self._bucket = parts.netloc
        self._prefix = unquote(parts.path).strip("/")
        try:
            held = _settings(current())
        except RuntimeError as error:
            raise UploadRefused(str(error)) from error
        self._uses_sha256 = held.get("checksum", "").upper() == "SHA256"
        self._begun_with: dict[str, Any] = {
            name: held[name] for name in ("ServerSideEncryption", "SSEKMSKeyId") if name in held
        }
        if "BucketKeyEnabled" in held:
            self._begun_with["BucketKeyEnabled"] = _is_true(held["BucketKeyEnabled"])
        self._client = _opened(held, self._bucket, ANSWER_SECONDS)
        self._patient = _opened(held, self._bucket, _READ_SECONDS)

    @property
    def _checksum(self) -> str:
        return "ChecksumSHA256" if self._uses_sha256 else "ChecksumCRC32"

    def _summed(self, content: bytes) -> bytes:
        return hashlib.sha256(content).digest() if self._uses_sha256 else zlib.crc32(content).to_bytes(4, "big")

    def _named(self, stored: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}/{stored}" if self._prefix else stored}

    def begin(self, stored: str) -> str:
        """Begin an upload."""
        kind = self._checksum.removeprefix("Checksum")
        with _heard():
            begun = self._client.create_multipart_upload(
                **self._named(stored), **self._begun_with, ChecksumAlgorithm=kind
            )
        return _answered(begun, "UploadId")

    def put_part(self, stored: str, upload: str, number: int, content: bytes) -> Part:
        """Put a part."""
        checksum = self._summed(content)
        with _heard():
            put = self._patient.upload_part(
                **self._named(stored),
                UploadId=upload,
                PartNumber=number,
                Body=content,
                **{self._checksum: base64.b64encode(checksum).decode()},
            )
        tag = _answered(put, "ETag").removeprefix("W/")  # by which proxies mark what they compress
        return Part(number, tag, checksum)

    def complete(self, stored: str, upload: str, parts: list[Part]) -> None:
        """Make the parts an object."""
        listed = [
            {"PartNumber": one.number, "ETag": one.tag, self._checksum: base64.b64encode(one.checksum).decode()}
            for one in parts
        ]
        with _heard():
            self._patient.complete_multipart_upload(
                **self._named(stored), UploadId=upload, MultipartUpload={"Parts": listed}, IfNoneMatch="*"
            )

    def abort(self, stored: str, upload: str) -> None:
        """Delete the parts."""
        with _heard():
            self._client.abort_multipart_upload(**self._named(stored), UploadId=upload)

    def is_stored(self, stored: str, file: Path, parts: list[Part]) -> bool | None:
        """Compare by the store's checksum of the parts' checksums, and byte by byte where it has none."""
        try:
            with _heard():  # GET, since a refusal of HEAD does not say why
                held = self._client.get_object(**self._named(stored), ChecksumMode="ENABLED")
        except UploadRefused as refused:
            if refused.code in ("404", "NoSuchKey", "NotFound"):
                return None
            raise
        with closing(held["Body"]) as body:
            if held["ContentLength"] != file.stat().st_size:
                return False
            checksum, _, count = str(held.get(self._checksum, "")).partition("-")
            if count == str(len(parts)):
                return checksum == base64.b64encode(self._summed(b"".join(one.checksum for one in parts))).decode()
            with _heard(), file.open("rb") as own:
                return all(own.read(len(chunk)) == chunk for chunk in body.iter_chunks(_STREAM_BYTES))


def _answered(answer: Mapping[str, Any], name: str) -> str:
    """What an answer has to say. Raises `UploadRefused`."""
    if name not in answer:
        raise UploadRefused(f"{name} Header missing from response")
    return str(answer[name])


def _opened(held: Mapping[str, str], bucket: str, read_seconds: float) -> Any:
    endpoint, is_virtual = held.get("endpoint"), _is_true(held.get("is_virtual"))
    if endpoint is not None and is_virtual:  # it names the bucket, which the client does, too
        endpoint = endpoint.replace(f"://{bucket}.", "://", 1)
    unset = (None, None, None, None)
    session = Session(session_vars={"profile": unset, "config_file": (None, None, os.devnull, None)})
    for one in _OF_FILES:
        session.get_component("credential_provider").remove(one)
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"total_max_attempts": 1, "mode": "standard"},  # who asks repeats, as with every other request
        max_pool_connections=_TOGETHER,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "virtual" if is_virtual else "path"},
    )
    with _heard():
        client = session.create_client(
            "s3",
            region_name=held.get("region") or "us-east-1",
            endpoint_url=endpoint,
            aws_access_key_id=held.get("access_key_id"),
            aws_secret_access_key=held.get("secret_access_key"),
            aws_session_token=held.get("token"),
            config=config,
        )
    client.meta.events.register_last("before-parameter-build.s3", _follow_nowhere)
    return client


def _follow_nowhere(context: dict[str, Any], **event: Any) -> None:
    """Have a wrong region told, as for other requests; botocore would ask for the right one, in places without end."""
    context.setdefault("s3_redirect", {})["redirected"] = True


@contextmanager
def _heard() -> Iterator[None]:
    """Around a request: what the store, or nobody, answered is told in the words of `obstore`."""
    try:
        yield
    except exceptions.ClientError as error:
        said = error.response.get("Error", {})
        code = str(said.get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        answered = f"status code: {status} {responses.get(status, '')}, {code}: {said.get('Message', '')}"
        raise UploadRefused(answered, code) from error
    except (exceptions.BotoCoreError, ResponseParserError) as error:
        unheard = next((text for kind, text in _UNHEARD.items() if isinstance(error, kind)), "")
        raise UploadRefused(f"{unheard}: {error}" if unheard else str(error)) from error
