"""What a machine says when a server refuses."""

from __future__ import annotations

import pytest

from trackside.transfer.web import Answer, Refused, _check_status


@pytest.mark.parametrize(
    "body",
    [
        b'{"title": "Not found.", "detail": "there is no such upload ticket", "status": 404}',
        b'{"error": "there is no such upload ticket"}',
    ],
)
def test_the_servers_reason_is_named(body: bytes) -> None:
    with pytest.raises(Refused, match=r": there is no such upload ticket$"):
        _check_status(Answer(404, {}, body), "POST", "http://localhost/x?secret", ())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"detail": null}'])
def test_an_answer_without_a_reason_is_no_problem(body: bytes) -> None:
    with pytest.raises(Refused, match=r"answered 404$"):
        _check_status(Answer(404, {}, body), "POST", "http://localhost/x", ())
