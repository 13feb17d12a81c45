"""The quick tests for names of secrets: they never say no where the careful look masks something."""

import random
import re

import pytest

from hermes.settings.key_shapes import ASCII_SEARCH, SEARCH, ascii_pattern
from hermes.settings.named_secrets import mask_commands, mask_headers, mask_named
from hermes.settings.secret_hints import (
    may_hold_command,
    may_hold_header,
    may_name_secret,
)
from hermes.settings.spelled_secrets import mask_spelled

NAMES = (
    "token", "TOKEN", "api_key", "API_KEY", "secret key", "password", "passwd", "PWD", "credentials", "pass2",
    "--token", "--password", "<password>", '"client_secret"', "the password for bob", "PIN", "login me password",
    "X_TOKEN_GITHUB", "?token", "&sig", "passphrase", "tokens_1", "-----BEGIN PRIVATE KEY-----",
)  # fmt: skip
MARKS = (
    "=", ": ", " = ", ":=", "=>", "==", " is ", " ", "\n", ":\n  ", ": |\n  ", '="', "='", ">", " was set to ", ":\t",
)  # fmt: skip
VALUES = (
    "hunter2", "a1B2c3D4e5", "1234", "12345", "correcthorsebattery", "None", "${X}", "--a1b2", "+++a1b2", "x", "40%",
    "'; DROP", "abc</password>", "${TOKEN}", "a1b2c3&x=1", "s3cr3t!", "٣٤٥abc٣", "abc\u00a0d1", "\\\"a1b2c3\\\"",
)  # fmt: skip
COMMANDS = (
    "mysql", "docker login", "redis-cli", "sshpass", "smbclient", "echo", "curl", "chpasswd", "IDENTIFIED BY",
)  # fmt: skip
OPTIONS = (
    " -p", " -p ", " -a ", " -U bob%", " -u bob:", " '", " | sudo -S", " | chpasswd", "\t-p", ' "',
)  # fmt: skip


def _line(dice: random.Random, *parts: tuple[str, ...]) -> str:
    return "".join(dice.choice(one) for one in parts)


def _lines(seed: int) -> list[str]:
    dice = random.Random(seed)
    named = [
        dice.choice(("", "x ", "export ", "{")) + _line(dice, NAMES, MARKS, VALUES)
        for _ in range(2_000)
    ]
    commands = [
        _line(dice, COMMANDS, OPTIONS, VALUES, OPTIONS, COMMANDS) for _ in range(500)
    ]
    return named + commands


@pytest.mark.parametrize("seed", range(8))
def test_a_quick_no_is_never_wrong(seed: int) -> None:
    masked = 0
    for line in _lines(seed):
        low = line.lower()
        is_pair = ":" in low or "=" in low
        if mask_spelled(mask_named(line, low)) != line:
            assert may_name_secret(line, low, is_pair=is_pair), line
            masked += 1
        if mask_commands(line) != line:
            assert may_hold_command(low), line
            masked += 1
        if mask_headers(line, low) != line:
            assert may_hold_header(low), line
    assert masked > 500


@pytest.mark.parametrize(
    ("pattern", "spelled"),
    [
        (r"\d\s", r"[0-9][ \t-\r\x1c-\x1f]"),
        (r"[^\s\]\d]\S", r"[^ \t-\r\x1c-\x1f\]0-9][^ \t-\r\x1c-\x1f]"),
        (r"\\d[]\w]\[\d", r"\\d[]A-Za-z0-9_]\[[0-9]"),
    ],
)
def test_categories_are_spelled_out_for_ascii(pattern: str, spelled: str) -> None:
    assert ascii_pattern(pattern) == spelled
    everything = "".join(map(chr, range(128)))
    assert re.findall(pattern, everything) == re.findall(spelled, everything)


def test_both_kinds_of_search_find_the_same_in_ascii() -> None:
    for line in _lines(99):
        may_name_secret(line, line.lower(), is_pair=True)
    patterns = list(ASCII_SEARCH)
    assert len(patterns) > 8
    for line in _lines(100):
        if not line.isascii():
            continue
        for pattern in patterns:
            one, other = SEARCH[pattern](line), ASCII_SEARCH[pattern](line)
            assert (one and one.span()) == (other and other.span())
