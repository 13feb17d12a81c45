"""What holds for every command, whatever it is: nothing raises, nothing forbidden hides, spelling does not matter."""

import shlex
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.policy import ApprovalPolicy, Circumstances
from hermes.tools.policy.shell_parser import Unreadable, read_script

HOME = Path("/users-that-are-not/me")
CWD = HOME / "work" / "app"
ASK = ApprovalPolicy("ask", Circumstances(HOME / ".hermes", HOME, sandboxed=True))
FULL = ApprovalPolicy("full", Circumstances(HOME / ".hermes", HOME, sandboxed=True))

FORBIDDEN = [
    "rm -rf /",
    "rm -rf ~",
    "mkfs.ext4 /dev/sda1",
    "shutdown -h now",
    "kill -9 -1",
    "dd if=x of=/dev/sda",
]
AROUND = [
    "{}",
    "ls; {}",
    "{}; ls",
    "ls && {}",
    "false || {}",
    "ls | {}",
    "{} | cat",
    " ( {} ) ",
    "{{ {}; }}",
    "{} &",
    "echo $({})",
    'echo "$({})"',
    "echo `{}`",
    "cat <({})",
    "if true; then {}; fi",
    "for i in 1 2; do {}; done",
    "while true; do {}; done",
    "case x in x) {};; esac",
    "f() {{ {}; }}; f",
    "ls\n{}",
    "! {}",
    "time {}",
    "nohup {}",
    "env A=1 {}",
    "timeout 5 {}",
    "X=$({})",
    "export X=$({})",
    '[ -n "$({})" ]',
    "{} > out.txt 2>&1",
    "cat <<X\n$({})\nX",
    "trap {quoted} EXIT",
    "sh -c {quoted}",
    "bash -ec {quoted}",
    "eval {quoted}",
    "echo {quoted} | sh",
    "sudo {}",
]
SHELLISH = st.text(
    alphabet=st.sampled_from(
        list("abrm-f/~ .*?$(){}[]<>|&;!'\"`\\\n\t=#0129@:,%^+\x00\r\u202e")
    ),
    max_size=60,
)


def within(around: str, command: str) -> str:
    return around.format(command, quoted=shlex.quote(command))


@settings(deadline=None)
@given(st.one_of(st.text(max_size=80), SHELLISH))
def test_judging_never_raises(text: str) -> None:
    assert ASK.check(text, CWD).verdict in ("allow", "ask", "forbid")


@given(SHELLISH)
def test_what_cannot_be_read_is_never_free(text: str) -> None:
    try:
        read_script(text, {})
    except Unreadable:
        assert ASK.check(text, CWD).verdict != "allow"
        assert FULL.check(text, CWD).verdict != "allow"


@given(
    st.sampled_from(FORBIDDEN),
    st.lists(st.sampled_from(AROUND), min_size=1, max_size=2),
)
def test_what_is_forbidden_hides_nowhere(command: str, around: list[str]) -> None:
    for one in around:
        command = within(one, command)
    assert ASK.check(command, CWD).verdict != "allow"
    assert FULL.check(command, CWD).verdict != "allow"


def test_every_place_is_looked_into() -> None:
    found = {
        around: FULL.check(within(around, "rm -rf /"), CWD).verdict for around in AROUND
    }
    assert found == dict.fromkeys(AROUND, "forbid")


@given(
    st.integers(0, 2),
    st.sampled_from(["2>/dev/null", "> out.txt", "< in.txt", "2>&1", ">> log"]),
)
def test_a_redirection_among_the_words_hides_none_of_them(
    place: int, redirection: str
) -> None:
    words = ["rm", "-rf", "/"]
    assert (
        FULL.check(
            " ".join([*words[: place + 1], redirection, *words[place + 1 :]]), CWD
        ).verdict
        == "forbid"
    )


def _quoted(text: str, way: int) -> str:
    if way == 0:
        return shlex.quote(text)
    if way == 1:
        return "'" + text + "'"
    if way == 2:
        return '"' + text + '"'
    if way == 3:
        return "".join(f"'{character}'" for character in text)
    return "$'" + "".join(f"\\x{ord(character):02x}" for character in text) + "'"


ARGV = st.sampled_from(
    [
        ["rm", "-rf", "src"],
        ["rm", "-rf", "build"],
        ["rm", "-rf", "/"],
        ["ls", "-la"],
        ["git", "reset", "--hard"],
        ["git", "status"],
        ["cat", ".env"],
        ["cat", "README.md"],
        ["curl", "-s", "https://x.example"],
        ["npm", "test"],
        ["chmod", "777", "a"],
        ["shutdown", "now"],
    ]
)


@given(ARGV, st.data())
def test_spelling_makes_no_difference(argv: list[str], data: st.DataObject) -> None:
    ways = data.draw(
        st.lists(st.integers(0, 4), min_size=len(argv), max_size=len(argv))
    )
    spelled = " ".join(_quoted(word, way) for word, way in zip(argv, ways, strict=True))
    plain = ASK.check(" ".join(argv), CWD)
    other = ASK.check(spelled, CWD)
    assert (other.verdict, other.reason, other.reach) == (
        plain.verdict,
        plain.reason,
        plain.reach,
    )
