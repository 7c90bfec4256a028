"""What answers of stores mean, in the words that each vendor has for them."""

from __future__ import annotations

import pytest

from lakehouse.storage.refusals import first_line, meaning_of, says_expired

_AZURE = (
    "status code: 403 Forbidden: <Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate the "
    "request.</Message><AuthenticationErrorDetail>{}</AuthenticationErrorDetail></Error>"
)
_TOKEN = 'token request: status code: 400 Bad Request: {{"error":"invalid_grant","error_description":"{}"}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_AZURE.format("Request date header too old: 'Mon, 01 Jan 2024 00:00:00 GMT'"), "clock is wrong"),
        (_AZURE.format("Signature not valid in the specified time frame: Expiry [...]"), "have expired"),
        (_AZURE.format("The MAC signature found is not the same"), "does not know these credentials"),
        (
            _TOKEN.format("Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."),
            "clock is wrong",
        ),
        (_TOKEN.format("Invalid JWT Signature."), "does not know these credentials"),
        ("status code: 401 Unauthorized: Invalid Credentials", "does not know these credentials"),
        (
            "Error performing GET http://metadata.google.internal/computeMetadata/v1/x in 3s - error sending request",
            "no credentials were found",
        ),
        ("status code: 403 Forbidden: <Error><Code>AccessDenied</Code></Error>", "do not allow it"),
    ],
)
def test_an_answer_is_told_with_its_remedy(text: str, said: str) -> None:
    assert said in meaning_of(text)
    assert says_expired(text) == ("expired" in said)


def test_what_a_store_says_is_shown_without_what_addresses_hold() -> None:
    shown = first_line(
        OSError("Error performing GET https://me:Xs3cret@acc.example.org/lake/a?sig=Xs3cret in 3s - gone")
    )
    assert "Xs3cret" not in shown
    assert "acc.example.org" in shown
