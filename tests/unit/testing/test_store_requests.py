"""What is asked of a store is read from the request, in the words of S3, of Google and of Azure."""

from __future__ import annotations

import socket

import pytest

from lakehouse.testing.store_requests import Head, Kind, Request, Wire

ASKED = [
    ("GET /lake/a/b.parquet", Kind.GET),
    ("GET /lake/a/b.parquet?versionId=7", Kind.GET),
    ("GET /lake?list-type=2&prefix=a%2F", Kind.LIST),
    ("GET /lake/?prefix=a&delimiter=%2F", Kind.LIST),
    ("GET /lake?uploads", Kind.LIST),
    ("GET /lake/a?uploadId=u", Kind.LIST),
    ("GET /lake?location", Kind.GET),
    ("HEAD /lake/a", Kind.HEAD),
    ("PUT /lake/a", Kind.PUT),
    ("PUT /lake", Kind.OTHER),
    ("PUT /lake/a?partNumber=3&uploadId=u", Kind.PUT_PART),
    ("POST /lake/a?uploads=", Kind.CREATE_UPLOAD),
    ("POST /lake/a?uploadId=u", Kind.COMPLETE_UPLOAD),
    ("POST /lake?delete", Kind.DELETE_MANY),
    ("POST /storage/v1/b", Kind.OTHER),
    ("DELETE /lake/a", Kind.DELETE),
    ("DELETE /lake/a?uploadId=u", Kind.ABORT_UPLOAD),
    ("PUT /account/lake/a?comp=block&blockid=MQ", Kind.PUT_PART),
    ("PUT /account/lake/a?comp=blocklist", Kind.COMPLETE_UPLOAD),
    ("PUT /account/lake?restype=container", Kind.OTHER),
    ("GET /account/lake?restype=container&comp=list", Kind.LIST),
    ("POST /account/lake?restype=container&comp=batch", Kind.DELETE_MANY),
    ("OPTIONS /lake/a", Kind.OTHER),
]


@pytest.mark.parametrize(("line", "kind"), ASKED, ids=[line for line, _ in ASKED])
def test_a_request_is_of_one_kind(line, kind):
    assert Request.of(Head.of(f"{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())).kind is kind


def test_a_copy_is_told_from_a_write_by_its_source():
    head = Head.of(b"PUT /lake/a HTTP/1.1\r\nx-amz-copy-source: /lake/b\r\n\r\n")
    assert Request.of(head).kind is Kind.COPY


BODIES = {
    "by its length": (b"Content-Length: 6", b"abc\r\nd"),
    "in chunks": (b"Transfer-Encoding: chunked", b"3\r\nabc\r\n2;note=x\r\n\r\n\r\n0\r\n\r\n"),
    "in chunks with a trailer": (b"Transfer-Encoding: chunked", b"1\r\na\r\n0\r\nx-amz-checksum: b\r\nc: d\r\n\r\n"),
    "empty": (b"Content-Length: 0", b""),
    "none": (b"Host: a", b""),
}


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_body_is_read_as_it_came_and_no_further(form, step):
    header, body = BODIES[form]
    sent = b"PUT /lake/a HTTP/1.1\r\n" + header + b"\r\n\r\n" + body + b"GET /lake/b HTTP/1.1\r\n\r\n"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire = Wire(ours)
        for begin in range(0, len(sent), step):
            theirs.sendall(sent[begin : begin + step])
        theirs.shutdown(socket.SHUT_WR)
        head = wire.head()
        assert head is not None
        assert b"".join(wire.body(head)) == body
        following = wire.head()
        assert following is not None
        assert following.raw == b"GET /lake/b HTTP/1.1\r\n\r\n"
        assert wire.head() is None


@pytest.mark.parametrize("sent", [b"PUT /lake/a HT", b"PUT /lake/a HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"])
def test_what_ends_early_is_an_error(sent):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        wire = Wire(ours)
        with pytest.raises(ConnectionError):
            list(wire.body(wire.head()))
