"""Switching codex on and off: files on disk, the real program's preflight, and a crash at every point."""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.codex_program import NEWEST, OLDEST
from tests.fakes.thoroughness import rounds

from hermes.codex import codex_config
from hermes.codex.binary import preflight
from hermes.codex.engine_switch import SwitchContext, disable, enable, status
from hermes.codex.failures import CodexGone
from hermes.errors import SettingsError
from hermes.settings import Home, Settings
from hermes.settings.load import load
from hermes.settings.mcp import McpServerSettings
from hermes.settings.sections import CodexSettings

MINE = """\
# my settings
model = "gpt-5.5"   # the good one

[features]
plugins = false

# servers
[mcp_servers.mine]
command = "echo"
"""
SERVERS = {
    "files": McpServerSettings(
        command="npx",
        args=("-y", "files"),
        env={"ROOT": "/srv", "FILES_TOKEN": "${FILES_TOKEN}"},
        cwd="/",
    ),
    "web": McpServerSettings(
        url="https://example.org/mcp",
        headers={"Authorization": "Bearer ${WEB_TOKEN}", "X-A": "b"},
        timeout=9.5,
    ),
    "odd name": McpServerSettings(command="x", enabled=False),
}


def place(real: Any, **more: Any) -> SwitchContext:
    codex = CodexSettings(binary=str(real.program), home=str(real.home))
    return SwitchContext(
        home=Home(real.folder / "hermes").ensure(),
        settings=Settings(codex=codex, mcp_servers=SERVERS, **more),
        environ=real.environ,
        tool_server=("/opt/hermes", "mcp", "serve-tools"),
    )


async def test_on_writes_what_the_real_program_accepts_and_off_takes_it_out_again(
    real: Any,
) -> None:
    config = real.home / "config.toml"
    config.write_text(MINE)
    here = place(real)
    shown = await enable(here, dry_run=True)
    assert config.read_text() == MINE
    assert "+[mcp_servers.files]" in shown.diff
    done = await enable(here)
    written = config.read_text()
    assert done.lines[0].startswith("Codex now runs your turns")
    assert await preflight(real.program, here.environment()) == ""
    assert (
        load({"HERMES_HOME": str(here.home.root)}).model.openai_runtime
        == "codex_app_server"
    )
    await enable(here)
    assert config.read_text() == written
    assert (await status(here)).migrated
    off = disable(here)
    assert config.read_text() == MINE
    assert load({"HERMES_HOME": str(here.home.root)}).model.openai_runtime == "auto"
    assert off.lines[0].startswith("Hermes now runs your turns itself")


async def test_on_works_without_any_codex_settings(real: Any) -> None:
    here = place(real)
    await enable(here)
    assert await preflight(real.program, here.environment()) == ""


async def test_on_is_refused_without_the_program(real: Any) -> None:
    here = place(real)
    missing = SwitchContext(
        home=here.home,
        settings=Settings(codex=CodexSettings(home=str(real.home))),
        environ={**real.environ, "PATH": str(real.folder)},
    )
    with pytest.raises(CodexGone) as refused:
        await enable(missing)
    assert "npm install -g @openai/codex" in refused.value.hint
    assert not here.home.config.exists()
    assert "not found" in "\n".join((await status(missing)).lines())


async def test_a_broken_file_is_left_alone_and_nothing_is_switched(real: Any) -> None:
    config = real.home / "config.toml"
    config.write_text("model = \n")
    here = place(real)
    with pytest.raises(SettingsError, match="not valid TOML"):
        await enable(here)
    assert config.read_text() == "model = \n"
    assert not here.home.config.exists()


async def test_a_wrong_value_in_the_users_file_is_told_but_does_not_stop(
    real: Any,
) -> None:
    (real.home / "config.toml").write_text("model = 3\n")
    done = await enable(place(real))
    assert any(
        line.startswith("Codex rejects your config.toml: ") for line in done.lines
    )


async def test_plugins_are_listed_by_every_version(real: Any) -> None:
    done = await enable(place(real))
    assert not any("could not be listed" in line for line in done.lines)


async def test_what_codex_has_against_the_users_own_keys_is_told_but_does_not_stop(
    real: Any,
) -> None:
    (real.home / "config.toml").write_text('no_such_key = 1\nmodel = "gpt-5.5"\n')
    done = await enable(place(real))
    assert any("no_such_key" in line for line in done.lines) is real.is_newest


async def test_status_says_how_it_stands(real: Any) -> None:
    real.configure("http://127.0.0.1:9/v1")
    standing = await status(place(real))
    version = NEWEST if real.is_newest else OLDEST
    assert (standing.on, standing.version, standing.signed_in, standing.migrated) == (
        False,
        version,
        False,
        False,
    )
    assert "Signed in: no. Run: codex login" in standing.lines()


_CRASH = """
import os, sys
from pathlib import Path
from hermes.codex import codex_config
path, limit = Path(sys.argv[1]), int(sys.argv[2])
planned = codex_config.plan(path, codex_config.BlockContents(tool_server=("/opt/hermes",)))
left = limit
def hook(name, args):
    global left
    if name.startswith(("open", "os.")):
        left -= 1
        if left == 0:
            os._exit(9)
sys.addaudithook(hook)
codex_config.write(planned)
os._exit(0)
"""


def test_a_crash_at_any_point_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(MINE)
    new = codex_config.plan(
        config, codex_config.BlockContents(tool_server=("/opt/hermes",))
    ).after
    crashes, seen = 0, set()
    for limit in range(1, 60):
        config.write_text(MINE)
        code = subprocess.run(
            [sys.executable, "-c", _CRASH, str(config), str(limit)], check=False
        ).returncode
        assert config.read_text() in (MINE, new)
        seen.add(config.read_text())
        if code == 0:
            break
        crashes += 1
    assert crashes > 5
    assert seen == {MINE, new}


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(MINE)
    planned = codex_config.plan(config, codex_config.BlockContents())
    config.write_text(MINE + "x = 1\n")
    assert not codex_config.write(planned)
    assert config.read_text() == MINE + "x = 1\n"


def test_the_files_mode_and_a_link_to_it_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(MINE)
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    assert codex_config.write(codex_config.plan(link, codex_config.BlockContents()))
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640


LITERAL = codex_config.BlockContents(
    servers={"s": McpServerSettings(command="x", env={"API_KEY": "sk-literal"})}
)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o600, 0o400])
def test_a_file_with_values_of_servers_is_for_the_user_alone(
    tmp_path: Path, mode: int
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(MINE)
    config.chmod(mode)
    assert codex_config.write(codex_config.plan(config, LITERAL))
    assert config.stat().st_mode & 0o777 == mode & 0o700
    assert "sk-literal" in config.read_text()


def test_a_file_that_says_it_all_already_is_closed_to_others(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    assert codex_config.write(codex_config.plan(config, LITERAL))
    assert config.stat().st_mode & 0o777 == 0o600
    config.chmod(0o644)
    assert not codex_config.write(codex_config.plan(config, LITERAL))
    assert config.stat().st_mode & 0o777 == 0o600


own_keys = st.lists(
    st.sampled_from(
        [
            'model = "gpt-5.5"\n',
            "# a comment\n",
            'notify = [\n  "bell",\n]\n',
            'developer_instructions = """\n[not a table]\n"""\n',
        ]
    ),
    unique=True,
)
own_tables = st.lists(
    st.sampled_from(
        [
            '[mcp_servers.mine]\ncommand = "x"\n',
            "\n# about features\n[features]\nplugins = false\n",
            '[projects."/a b"]\ntrust_level = "trusted"\n',
            '[model_providers.p]\nname = "P"\nbase_url = "http://127.0.0.1:9"\nwire_api = "responses"\n',
        ]
    ),
    unique=True,
)
words = st.text("ab \"\\'#[]é\n", max_size=6)
some_servers = st.dictionaries(
    st.text("abc-_", min_size=1, max_size=4),
    st.one_of(
        st.builds(
            McpServerSettings,
            command=words.filter(str.strip),
            args=st.lists(words, max_size=2).map(tuple),
            env=st.dictionaries(st.sampled_from("AB"), words, max_size=2),
            timeout=st.floats(1, 99),
            enabled=st.booleans(),
        ),
        st.builds(
            McpServerSettings,
            url=st.just("https://example.org/mcp"),
            headers=st.dictionaries(st.just("X-A"), st.just("b")),
        ),
    ),
    max_size=3,
)


@given(own_keys, own_tables, some_servers)
@hypothesis.settings(max_examples=rounds(4, 12), deadline=None)
def test_the_real_program_accepts_the_block_in_whatever_file(
    program: Path,
    keys: list[str],
    tables: list[str],
    servers: dict[str, McpServerSettings],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text("".join(keys + tables))
        wanted = codex_config.BlockContents(
            servers=servers, tool_server=("/opt/hermes", "mcp"), plugins=("a@b",)
        )
        codex_config.write(codex_config.plan(config, wanted))
        assert (
            asyncio.run(
                preflight(
                    program,
                    {"PATH": "/usr/bin:/bin", "HOME": folder, "CODEX_HOME": folder},
                )
            )
            == ""
        )
