"""One block in somebody else's file: everything outside keeps every byte, whatever the file looks like."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codex import config_block
from hermes.codex.codex_config import BlockContents, _Writer
from hermes.errors import SettingsError
from hermes.settings.mcp import McpServerSettings, McpToolSettings

names = st.text("abcdefgh_-", min_size=1, max_size=6)
texts = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\r"), max_size=12
)


def quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(
            sign if sign >= " " and sign != "\x7f" else f"\\u{ord(sign):04x}"
            for sign in plain
        )
        + '"'
    )


scalars = st.one_of(
    st.integers(-999, 999).map(str),
    st.booleans().map(lambda value: str(value).lower()),
    texts.map(quoted),
    st.just(
        '"""\n[not.a.table]\n# >>> hermes: written by Hermes, changes in here are overwritten >>>\n"""'
    ),
    st.just("[\n  [1, 2],\n  [3],\n]"),
    st.just("'''\n[also] = \"not\"\n'''"),
    st.just('{ a = 1, "b c" = "[x]" }'),
)
gaps = st.sampled_from(
    ["", "\n", "# a comment\n", "  # [indented.comment]\n", "\n\n# two\n# lines\n"]
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """A file as a user may have written it."""
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    taken = draw(st.lists(names, unique=True, max_size=8))
    cut = draw(st.integers(0, len(taken)))
    lines = [f"{draw(gaps)}{key} = {draw(scalars)}\n" for key in taken[:cut]]
    for table in taken[cut:]:
        head = draw(
            st.sampled_from(
                [f"[{table}]", f"  [ {table} ]", f"[[{table}]]", f"[{table}.inner]"]
            )
        )
        lines.append(f"{draw(gaps)}{head} # {draw(names)}\nkey = {draw(scalars)}\n")
    text = "".join(lines) + draw(gaps)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    if draw(st.booleans()):
        text = "\ufeff" + text
    return text.replace("\n", newline)


servers = st.dictionaries(
    st.one_of(names, texts.filter(bool)).map(lambda name: f"srv {name}"),
    st.builds(
        McpServerSettings,
        command=texts,
        args=st.lists(texts, max_size=2).map(tuple),
        env=st.dictionaries(names, texts, max_size=2),
        timeout=st.floats(0.5, 3600),
        enabled=st.booleans(),
    ),
    max_size=3,
)


def lines_for(text: str, wanted: BlockContents) -> tuple[config_block.Parts, list[str]]:
    parts = config_block.split(text)
    return parts, list(_Writer(config_block.data(parts)).lines(wanted))


@given(
    files(), servers, st.lists(names.map(lambda name: f"{name}@curated"), max_size=2)
)
def test_the_block_goes_in_and_out_without_a_trace(
    text: str, configured: Any, plugins: list[str]
) -> None:
    wanted = BlockContents(
        servers=configured,
        tool_server=("/opt/hermes", "mcp", "serve-tools"),
        plugins=tuple(plugins),
    )
    parts, lines = lines_for(text, wanted)
    assert parts.above + parts.below == text
    once = config_block.join(parts, lines)
    again = config_block.split(once)
    assert again.above + again.below == text
    assert config_block.join(again, lines) == once
    assert config_block.join(again, []) == text
    before, after = (
        tomllib.loads(text.removeprefix("\ufeff")),
        tomllib.loads(once.removeprefix("\ufeff")),
    )
    assert {key: after[key] for key in before} == before
    assert after["default_permissions"] == ":workspace"
    assert after["mcp_servers"]["hermes"]["command"] == "/opt/hermes"
    for name, server in configured.items():
        assert after["mcp_servers"][name]["command"] == server.command
        assert after["mcp_servers"][name]["args"] == list(server.args)
        assert after["mcp_servers"][name].get("env", {}) == dict(server.env)
    assert set(after.get("plugins", {})) >= set(plugins)


@given(files(), servers, servers)
def test_another_block_takes_the_place_of_the_one_before(
    text: str, first: Any, second: Any
) -> None:
    parts, lines = lines_for(text, BlockContents(servers=first))
    _, other = lines_for(text, BlockContents(servers=second))
    once = config_block.join(parts, lines)
    assert config_block.join(config_block.split(once), other) == config_block.join(
        parts, other
    )


def test_what_the_user_wrote_wins_and_is_reported() -> None:
    text = 'sandbox_mode = "read-only"\n[mcp_servers.git]\ncommand = "mine"\n[plugins."a@b"]\nenabled = false\n'
    writer = _Writer(config_block.data(config_block.split(text)))
    wanted = BlockContents(
        servers={
            "git": McpServerSettings(command="ours"),
            "new": McpServerSettings(command="x"),
        },
        plugins=("a@b", "c@d"),
    )
    lines = list(writer.lines(wanted))
    after = tomllib.loads(config_block.join(config_block.split(text), lines))
    assert after["mcp_servers"]["git"] == {"command": "mine"}
    assert "default_permissions" not in after
    assert after["plugins"] == {"a@b": {"enabled": False}, "c@d": {"enabled": True}}
    assert writer.unmapped == [
        "sandbox_mode in your config.toml was not changed.",
        "mcp_servers.git is already in your config.toml and was not changed.",
    ]


def test_keys_are_mapped_and_what_has_no_equivalent_is_reported() -> None:
    local = McpServerSettings(
        command="npx",
        args=("-y", "server"),
        env={"PLAIN": "1", "GIT_TOKEN": "${GIT_TOKEN}", "OTHER": "${GIT_TOKEN}"},
        cwd="/srv",
        timeout=90,
        connect_timeout=2.5,
        idle_timeout=5,
        tools=McpToolSettings(include=("read",), exclude=("write_*",)),
    )
    remote = McpServerSettings(
        url="https://example.org/mcp",
        headers={
            "Authorization": "Bearer ${WEATHER_KEY}",
            "X-Api": "${API_KEY}",
            "X-Plain": "1",
            "X-Odd": "a ${B}",
        },
        enabled=False,
        trusted=True,
    )
    writer = _Writer({})
    lines = list(
        writer.lines(BlockContents(servers={"local": local, "remote": remote}))
    )
    found = tomllib.loads("\n".join(lines))["mcp_servers"]
    assert found["local"] == {
        "command": "npx",
        "args": ["-y", "server"],
        "cwd": "/srv",
        "env": {"PLAIN": "1"},
        "env_vars": ["GIT_TOKEN"],
        "tool_timeout_sec": 90,
        "startup_timeout_sec": 2.5,
        "enabled": True,
        "enabled_tools": ["read"],
    }
    assert found["remote"] == {
        "url": "https://example.org/mcp",
        "bearer_token_env_var": "WEATHER_KEY",
        "http_headers": {"X-Plain": "1"},
        "env_http_headers": {"X-Api": "API_KEY"},
        "tool_timeout_sec": 60,
        "startup_timeout_sec": 10,
        "enabled": False,
    }
    reported = "\n".join(writer.unmapped)
    for part in (
        "env.OTHER",
        "tools.exclude",
        "local.idle_timeout",
        "headers.X-Odd",
        "remote.trusted",
    ):
        assert part in reported


@pytest.mark.parametrize(
    "text", ["\ufeff[a]\nb = 1\n", "\ufeff", "\ufeffx = 1\n[a]\n", "\ufeff# c\n[a]\n"]
)
def test_a_byte_order_mark_stays_in_front(text: str) -> None:
    parts, lines = lines_for(text, BlockContents())
    once = config_block.join(parts, lines)
    assert once.startswith("\ufeff")
    assert tomllib.loads(once[1:])["default_permissions"] == ":workspace"
    again = config_block.split(once)
    assert (config_block.join(again, lines), config_block.join(again, [])) == (
        once,
        text,
    )


def test_no_secret_is_written() -> None:
    server = McpServerSettings(
        command="x", env={"A_TOKEN": "${A_TOKEN}", "B": "x-${A_TOKEN}"}
    )
    lines = "\n".join(_Writer({}).lines(BlockContents(servers={"s": server})))
    assert "${" not in lines


@pytest.mark.parametrize(
    "text",
    [
        "a = \n",
        f"{config_block.BEGIN}\nx = 1\n",
        f"{config_block.BEGIN}\n{config_block.END}\n{config_block.BEGIN}\n{config_block.END}\n",
    ],
)
def test_a_file_that_can_not_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        config_block.split(text)
    assert refused.value.hint.startswith("Nothing was changed.")


@pytest.mark.parametrize(
    "servers_line", ["mcp_servers = {}", 'mcp_servers = { a = { command = "x" } }']
)
@pytest.mark.parametrize("table", ["", '[projects."/a"]\ntrust_level = "trusted"\n'])
def test_what_is_written_in_one_line_stays_and_is_reported(
    servers_line: str, table: str
) -> None:
    text = f"{servers_line}\nplugins = {{}}\n{table}"
    parts = config_block.split(text)
    writer = _Writer(
        config_block.data(parts), config_block.closed(parts, ("mcp_servers", "plugins"))
    )
    wanted = BlockContents(
        servers={"b": McpServerSettings(command="y")},
        tool_server=("/opt/hermes",),
        plugins=("a@b",),
    )
    after = config_block.join(parts, list(writer.lines(wanted)))
    assert tomllib.loads(after) == tomllib.loads(text) | {
        "default_permissions": ":workspace"
    }
    assert config_block.join(config_block.split(after), []) == text
    reported = "\n".join(writer.unmapped)
    assert "mcp_servers is written in one line" in reported
    assert "Not added: b, hermes." in reported
    assert "plugins is written in one line" in reported


def test_tables_that_can_be_added_to_are_open() -> None:
    text = "[mcp_servers]\n[mcp_servers.a]\ncommand = 'x'\n[plugins]\n"
    assert (
        config_block.closed(config_block.split(text), ("mcp_servers", "plugins"))
        == frozenset()
    )
    assert (
        config_block.closed(config_block.split(""), ("mcp_servers", "plugins"))
        == frozenset()
    )


def test_values_that_are_written_as_they_are_are_reported() -> None:
    writer = _Writer({})
    local = McpServerSettings(
        command="x", env={"API_KEY": "sk-literal", "GIT_TOKEN": "${GIT_TOKEN}"}
    )
    remote = McpServerSettings(
        url="https://me:pw@example.org", headers={"Authorization": "Bearer literal"}
    )
    list(
        writer.lines(
            BlockContents(
                servers={
                    "l": local,
                    "r": remote,
                    "none": McpServerSettings(command="z", args=("-y",)),
                }
            )
        )
    )
    reported = "\n".join(writer.unmapped)
    for where in (
        "mcp_servers.l.env.API_KEY",
        "mcp_servers.r.url",
        "mcp_servers.r.headers.Authorization",
    ):
        assert f"{where} is written as it is" in reported
    assert writer.private
    assert "literal" not in reported
    assert "GIT_TOKEN" not in reported
    assert "none" not in reported


def test_a_file_without_literal_values_is_not_private() -> None:
    writer = _Writer({})
    list(
        writer.lines(
            BlockContents(
                servers={
                    "l": McpServerSettings(command="x", env={"A_TOKEN": "${A_TOKEN}"})
                }
            )
        )
    )
    assert not writer.private
    assert writer.unmapped == []
