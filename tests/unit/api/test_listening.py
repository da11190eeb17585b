"""The socket of the service."""

from __future__ import annotations

import socket

from stationmaster.api.listening import listen


def test_an_answer_is_sent_at_once_and_not_held_back_for_more() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
