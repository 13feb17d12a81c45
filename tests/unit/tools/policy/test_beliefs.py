"""A variable is believed only if nothing in the text can change it; quoted text is not where bash evaluates it."""

from pathlib import Path

import pytest

from hermes.tools.policy import ApprovalPolicy, Circumstances

HOME = Path("/users-that-are-not/me")
CWD = HOME / "work"
POLICY = ApprovalPolicy("ask", Circumstances(HOME / ".hermes", HOME, sandboxed=True))


@pytest.mark.parametrize(
    "command",
    [
        "x=build; rm -rf $x",
        "x=build; cd app && rm -rf $x",
        'tmp=$(mktemp -d); cp a "$tmp"; rm -rf "$tmp"',
        "x=build; y=$((1 + 2)); rm -rf $x",
        "x=build; for i in 1 2; do echo $i; done; rm -rf $x",
    ],
)
def test_a_variable_with_one_value_is_believed(command: str) -> None:
    assert POLICY.check(command, CWD).verdict == "allow"


@pytest.mark.parametrize(
    "between",
    [
        "x=src",
        "f() { x=src; }; f",
        "read x <<< src",
        "printf -v x src",
        "printf -vx src",
        "declare -n y=x; y=src",
        "mapfile x < a",
        "readarray x < a",
        "getopts a x",
        "source ./a",
        ". ./a",
        "eval x=src",
        "unset x",
        "let x=1",
        "((x=1))",
        ": $((x++))",
        ": ${x:=src}",
        "for x in src; do :; done",
        "exec {x}> a.log",
        "trap x=src DEBUG",
        "wait -p x",
        "coproc x { :; }",
        "command read x <<< src",
        "builtin eval x=src",
        "builtin . ./a",
        "r=read; $r x <<< src",
        'e""val x=src',
        "\\read x <<< src",
        "time read x <<< src",
    ],
)
def test_a_variable_that_something_may_change_is_not(between: str) -> None:
    assert POLICY.check(f"x=build; {between}; rm -rf $x", CWD).verdict != "allow"
    assert POLICY.check(f"x=build; rm -rf $x; {between}", CWD).verdict != "allow"


@pytest.mark.parametrize(
    "command",
    [
        "false && x=build; rm -rf $x",
        "false || x=build; rm -rf $x",
        "x=build & rm -rf $x",
        "(x=build); rm -rf $x",
        "echo | x=build; rm -rf $x",
        "x=build ls; rm -rf $x",
        "cd src; rm -rf $PWD/build",
        "x=build; for i in 1 2; do rm -rf $x; x=src; done",
        "mktemp() { echo src; }; x=$(mktemp); rm -rf $x",
        "BASH_ALIASES[ls]=rm; ls src",
        "BASH_CMDS[ls]=/tmp/x; ls",
        "hash -p ./x ls; ls",
        "xargs rm <<< src",
        "find . -name '*.pyc' | xargs rm <<< src",
    ],
)
def test_what_is_not_certain_is_not_believed(command: str) -> None:
    assert POLICY.check(command, CWD).verdict != "allow"


@pytest.mark.parametrize(
    "command",
    [
        "[[ -v 'a[$(id)]' ]]",
        "[[ 'a[$(id)]' -eq 1 ]]",
        "(( 'a[$(id)]' ))",
        "let 'a[$(id)]=1'",
        "test -v 'a[$(id)]'",
        "[ -v 'a[`id`]' ]",
        "unset 'a[$(id)]'",
        "printf -v 'a[$(id)]' x",
        "read 'a[$(id)]' <<< x",
        "declare 'a[$(id)]=x'",
        "x='a[$(id)]'; echo $((x))",
        "x=a\\[\\$\\(id\\)\\]; (( x ))",
        "x='$(id)'; echo ${x@P}",
    ],
)
def test_a_command_in_quotes_that_bash_evaluates_is_not_understood(
    command: str,
) -> None:
    decision = POLICY.check(command, CWD)
    assert (decision.verdict, decision.memorable, decision.shape) == ("ask", False, "")


@pytest.mark.parametrize(
    "command",
    ["grep 'a[$(]' x", "awk '{a[$1]++}' f", "[[ -f a ]] && echo b", 'echo "${a[0]}"'],
)
def test_subscripts_without_commands_are_ordinary(command: str) -> None:
    assert POLICY.check(command, CWD).verdict == "allow"


RISKY = "PATH=.:$PATH LD_PRELOAD=x ld_library_path=x HTTPS_PROXY=x https_proxy=x npm_config_registry=x NPM_CONFIG_X=x"
RISKY += " CURL_HOME=. HOME=. XDG_CONFIG_HOME=. PATH=/tmp/x PATH= PYTHONSTARTUP=a GIT_DIR=x GIT_SSH_COMMAND=x BASH_ENV=a"
RISKY += " NODE_OPTIONS=--require=./x JAVA_TOOL_OPTIONS=-javaagent:x GOFLAGS=-toolexec=x RUSTC_WRAPPER=./x PAGER=./x"
HARMLESS = "NODE_ENV=test CI=1 PYTHONPATH=src NODE_OPTIONS=--max-old-space-size=4096 GIT_PAGER=cat PAGER=cat X=y"
HARMLESS += " GIT_AUTHOR_NAME=x PATH=$PWD/node_modules/.bin:$PATH PATH=$HOME/.cargo/bin:$PATH GOFLAGS=-mod=mod RUST_LOG=x"


@pytest.mark.parametrize("around", ["{} ls", "export {}; ls", "env {} ls", "{}; ls"])
def test_variables_that_change_other_programs_are_asked_about(around: str) -> None:
    free = [
        one
        for one in RISKY.split()
        if POLICY.check(around.format(one), CWD).verdict == "allow"
    ]
    asked = [
        one
        for one in HARMLESS.split()
        if POLICY.check(around.format(one), CWD).verdict != "allow"
    ]
    assert (free, asked) == ([], [])
