"""Tests for the words of errors."""

import socket
import ssl

import pytest

from hermes.errors import words_of_connection


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed"), "Connection refused"),
        (OSError(113, "Connect call failed ('10.0.0.1', 5432)"), "No route to host"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ssl.SSLError(1, "bad certificate"), "bad certificate"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_failed_connection_is_told_without_numbers_of_the_system(
    error: Exception, words: str
) -> None:
    assert words_of_connection(error) == words
