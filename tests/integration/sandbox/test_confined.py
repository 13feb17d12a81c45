"""What a confined command can do, what it is told when it can't, and how far `reach` lets it go."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest
from tests.integration.sandbox.machine import SECRET, Machine, make_sandbox

import hermes
from hermes.errors import ToolFailed
from hermes.tools.process.resource_limits import ResourceLimits
from hermes.tools.sandbox import Sandbox
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence
from hermes.tools.sandbox.detect import find_bubblewrap, find_sandbox
from hermes.tools.sandbox.protected_paths import is_workspace

HINT = "The sandbox may have stopped this"


async def test_folders_with_spaces_in_their_names_are_as_safe_as_others(
    place: Path, sandbox: Sandbox, limits: ResourceLimits
) -> None:
    root = place / "a home with spaces"
    root.mkdir()
    machine = Machine(root, sandbox, limits)
    try:
        inside = 'set -e; echo one > "$TMPDIR/x"; cat "$TMPDIR/x"; mkdir "a b"; echo two > "a b/c d"; cat "a b/c d"'
        assert (await machine.run(inside)).text == "one\ntwo\n[exit code 0]"
        text = (
            await machine.run(
                f'cat "$HOME/.ssh/id_ed25519"; rm -rf "$HOME/projects" "{machine.outside}"'
            )
        ).text
        assert SECRET not in text
        assert machine.fingerprint() == machine.before
    finally:
        await machine.close()


async def test_the_workspace_and_the_temporary_folder_can_be_written(
    machine: Machine,
) -> None:
    script = (
        "set -e; mkdir -p a/b; echo one > a/b/f; mv a/b/f a/g; cp a/g a/h; ln a/g a/hard; ln -s g a/soft; rm a/h\n"
        "chmod 750 a; chmod +x a/g; touch -d '2001-02-03 00:00:00' a/g; stat -c '%a %Y' a/g; stat -c %a a\n"
        "echo two > $TMPDIR/x; mkfifo p; printf x > u; truncate -s 3 u; mkdir d; rmdir d; cat $TMPDIR/x a/soft"
    )
    result = await machine.run(script)
    assert result.ok, result.text
    assert result.text == "755 981158400\n750\ntwo\none\n[exit code 0]"
    machine.assert_untouched()


async def test_a_command_that_only_reads_writes_only_to_the_temporary_folder(
    machine: Machine,
) -> None:
    context = msgspec.structs.replace(machine.context(), read_only=True)
    script = "uniq keep.txt new.txt; echo x > keep.txt; touch $TMPDIR/y && cat keep.txt"
    result = await machine.terminal.terminal.run({"command": script}, context)
    assert result.text.endswith("mine\n[exit code 0]"), result.text
    assert not (machine.workspace / "new.txt").exists()
    machine.assert_untouched()


async def test_programs_work_as_they_do_outside(machine: Machine) -> None:
    script = (
        "set -e; git init -q .; git config user.email a@b; git config user.name n; git add .; git commit -qm one\n"
        "git log --oneline | wc -l; python3 -c 'import subprocess, tempfile; tempfile.TemporaryFile();"
        ' print(subprocess.check_output(["echo", "two"]).decode(), end="")\'\n'
        "tar -cf x.tar keep.txt; rm keep.txt; tar -xf x.tar; cat keep.txt; cat $HOME/notes.txt; echo | sort | cat\n"
        "(sleep 0.01; echo three) & wait; kill -0 $$; cp -p keep.txt kept.txt; install -m 600 keep.txt inst.txt"
    )
    result = await machine.run(script)
    assert result.ok, result.text
    assert result.text.split("\n") == [
        "1",
        "two",
        "minereadable",
        "three",
        "[exit code 0]",
    ]


async def test_temporary_files_stay_for_the_session_and_go_with_it(
    machine: Machine,
) -> None:
    await machine.run("echo kept > $TMPDIR/file")
    assert (await machine.run("cat $TMPDIR/file; dirname $TMPDIR")).text.startswith(
        f"kept\n{machine.root}/temporary\n"
    )
    await machine.terminal.close()
    assert list((machine.root / "temporary").iterdir()) == []


async def test_slash_tmp_is_the_sessions_own_with_bubblewrap(machine: Machine) -> None:
    if machine.sandbox.kind != "bubblewrap":
        pytest.skip("only a view of its own can be another")
    with tempfile.NamedTemporaryFile(dir="/tmp") as of_the_machine:
        text = (
            await machine.run(
                f"cat {of_the_machine.name} || echo x > /tmp/mine; cat $TMPDIR/mine"
            )
        ).text
    assert text.endswith("x\n[exit code 0]")
    assert not os.path.exists("/tmp/mine")  # noqa: S108, PTH110, ASYNC240 - that is the point


async def test_a_server_of_its_own_can_be_reached_with_bubblewrap(
    machine: Machine,
) -> None:
    if machine.sandbox.kind != "bubblewrap":
        pytest.skip("Landlock has no network of its own to give")
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "c = socket.create_connection(s.getsockname()); c.send(b'hello'); print(s.accept()[0].recv(9))"
    )
    assert (
        await machine.run(f'python3 -c "{script}"')
    ).text == "b'hello'\n[exit code 0]"


async def test_reach_network_opens_the_network_and_nothing_else(
    machine: Machine,
) -> None:
    await machine.prove()
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{machine.listener.port} && echo connected"
    result = await machine.run(
        f"{connect}; rm -rf {machine.home}/projects; cat {machine.home}/.ssh/id_ed25519",
        "network",
    )
    assert "connected" in result.text
    assert SECRET not in result.text
    assert machine.fingerprint() == machine.before
    by_path = f"import socket; socket.socket(socket.AF_UNIX).connect('{machine.listener.path}')"
    machine.listener.heard.clear()
    assert not (await machine.run(f'python3 -c "{by_path}"', "network")).ok
    machine.assert_untouched()


async def test_reach_machine_is_not_confined(machine: Machine) -> None:
    result = await machine.run(
        f"touch {machine.outside}/new && cat {machine.home}/notes.txt", "machine"
    )
    assert result.text == "readable\n[exit code 0]"
    assert (machine.outside / "new").exists()


async def test_a_wider_reach_than_was_granted_is_told(machine: Machine) -> None:
    result = await machine.terminal.terminal.run(
        {"command": f"touch {machine.outside}/new", "reach": "machine"},
        machine.context("workspace"),
    )
    assert "reach was workspace, not machine" in result.text
    assert not (machine.outside / "new").exists()


@pytest.mark.parametrize(
    "command",
    ["touch {out}/x", "cat {out}/home/.ssh/id_ed25519", "echo > /dev/tcp/192.0.2.1/80"],
)
async def test_what_the_sandbox_stopped_is_said_last(
    machine: Machine, command: str
) -> None:
    text = (await machine.run(command.format(out=machine.outside))).text
    assert HINT in text.splitlines()[-1]
    assert "reach: network or machine" in text.splitlines()[-1]


def _commit_notes_on_two_branches(folder: Path) -> None:
    git = (
        "git",
        "-C",
        str(folder),
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.invalid",
    )
    subprocess.run((*git, "init", "-q"), check=True)
    for branch in ("first", "second"):
        subprocess.run((*git, "switch", "-q", "--orphan", branch), check=True)
        (folder / "AGENTS.md").write_text(f"notes of {branch}\n")
        subprocess.run((*git, "add", "AGENTS.md"), check=True)
        subprocess.run((*git, "commit", "-q", "-m", branch), check=True)


async def test_a_switch_of_branches_that_would_change_agents_md_is_explained(
    machine: Machine, request: pytest.FixtureRequest
) -> None:
    _commit_notes_on_two_branches(machine.workspace)
    last = (await machine.run("git switch first")).text.splitlines()[-1]
    if "bubblewrap" in request.node.name:
        assert "did not let this command change AGENTS.md" in last
        assert "reach: machine" in last
    else:  # Landlock can't protect single files, so they are restored afterwards
        assert "undone" in last
    assert (machine.workspace / "AGENTS.md").read_text() == "notes of second\n"


async def test_a_command_cannot_change_what_the_project_protects(
    machine: Machine, request: pytest.FixtureRequest
) -> None:
    if "bubblewrap" not in request.node.name:
        pytest.skip("Landlock can't protect single files")
    rules = machine.workspace / ".hermes" / "rules.yaml"
    rules.parent.mkdir()
    rules.write_text("protect: [LICENSE, data]")
    (machine.workspace / "LICENSE").write_text("MIT")
    (machine.workspace / "data").mkdir()
    # What the policy can't see in a command, the kernel still refuses.
    await machine.run(
        "f=LICEN; echo x > ${f}SE; touch da*/new; mv LICENSE old; touch free"
    )
    assert (machine.workspace / "LICENSE").read_text() == "MIT"
    assert list((machine.workspace / "data").iterdir()) == []
    assert (machine.workspace / "free").exists()


@pytest.mark.parametrize(
    "command", ["false", "touch {out}/x || true", "echo 'Permission denied'"]
)
async def test_other_failures_are_not_put_down_to_the_sandbox(
    machine: Machine, command: str
) -> None:
    assert HINT not in (await machine.run(command.format(out=machine.outside))).text


async def test_a_network_error_of_a_command_with_the_network_is_its_own(
    machine: Machine,
) -> None:
    command = "echo 'curl: (6) Could not resolve host: x.invalid' >&2; exit 6"
    assert HINT in (await machine.run(command)).text
    assert HINT not in (await machine.run(command, reach="network")).text
    text = (await machine.run(f"touch {machine.outside}/x", reach="network")).text
    assert "ask with reach: machine." in text


PLANTS = [
    "echo evil > .git/hooks/pre-commit",
    "echo evil >> .git/config",
    "mkdir -p .vscode; echo evil > .vscode/tasks.json",
    "mkdir .claude .codex .hermes; echo evil | tee .claude/x .codex/x .hermes/x",
    "echo evil > .bashrc; echo evil > .envrc",
    "mv .git .g; cp -r .g .git; echo evil > .git/hooks/pre-commit",
    "rm -rf .git/hooks; ln -s {out}/home .git/hooks; echo evil > .git/hooks/.bashrc",
    "ln -s {out}/home .vscode",
    "rm -f .git/config; ln -s {out}/home/.gitconfig .git/config",
    "echo evil > sub/.git/hooks/post-checkout",
    "for f in AGENTS.md GEMINI.md .cursorrules; do sh -c 'echo evil >> $0' $f; done",
    "mv AGENTS.md old.md; printf evil > new.md; mv new.md AGENTS.md; rm -f old.md new.md",
    "mkdir .github; printf evil | tee .github/copilot-instructions.md",
    "mkdir -p .agents/skills/x; echo evil > .agents/skills/x/SKILL.md",
    "rm -rf .git",
    "mkdir .claude; for i in $(seq 450); do : > .claude/$i; done; echo evil | tee GEMINI.md .gitmodules",
]


@pytest.mark.parametrize("command", PLANTS)
async def test_what_runs_later_is_as_before(machine: Machine, command: str) -> None:
    await machine.prove_once()
    make_repositories(machine.workspace)
    before = later(machine.workspace)
    result = await machine.run(command.format(out=machine.outside))
    assert later(machine.workspace) == before, result.text
    machine.assert_untouched()


def make_repositories(workspace: Path) -> None:
    for folder in (workspace, workspace / "sub"):
        subprocess.run(["git", "init", "-q", folder], check=True)
        (folder / ".git/hooks/commit-msg").write_text("mine")
    (workspace / "AGENTS.md").write_text("mine")


def later(workspace: Path) -> dict[str, bytes]:
    """What is in the places that run later, without git's own data."""
    found: dict[str, bytes] = {}
    for place, _, all_names in os.walk(workspace):
        inside = Path(place).relative_to(workspace)
        data = ".git" in inside.parts and "hooks" not in inside.parts
        names = [name for name in all_names if name == "config" or not data]
        if not {".g", "objects", "refs"} & set(inside.parts):
            found |= {
                str(inside / name): Path(place, name).read_bytes() for name in names
            }
    return found


async def test_what_was_undone_is_kept_and_said(machine: Machine) -> None:
    text = (await machine.run("mkdir .vscode && echo mine > .vscode/tasks.json")).text
    assert (
        f"undone, as it can run something later: {machine.workspace}/.vscode (" in text
    )
    aside = text.partition("(what was written is in ")[2].partition(")")[0]
    assert (await machine.run(f"cat {aside}/*/*")).text.startswith("mine\n")
    assert not (machine.workspace / ".vscode").exists()


TRAPS = {
    "a link where it was kept": "ln -s {out}/home $TMPDIR/undone; mkdir .claude; echo evil > .claude/evil.sh",
    "a file where it was kept": "touch $TMPDIR/undone; echo evil > .bashrc; echo evil > .git/hooks/post-commit",
    "a link to a file": "mv .git .g; touch $TMPDIR/undone; ln -s {out}/home/.bashrc .git",
    "a link to a folder": "mv .git .g; ln -s {out}/home .git",
    "a folder for a file": "mv .git .g; mkdir -p .git/config/x; ln -s {out}/home .git/hooks",
    "a folder that only opens by name": "mkdir .claude; echo evil > .claude/x; chmod 111 .claude",
}


@pytest.mark.parametrize("trap", TRAPS)
async def test_undoing_follows_nothing_a_command_prepared(
    machine: Machine, trap: str
) -> None:
    await machine.prove_once()
    make_repositories(machine.workspace)
    before = later(machine.workspace)
    result = await machine.run(TRAPS[trap].format(out=machine.outside))
    assert later(machine.workspace) == before, result.text
    machine.assert_untouched()


async def test_no_command_writes_where_things_are_moved_aside(machine: Machine) -> None:
    text = (await machine.run("echo mine > .bashrc")).text
    aside = text.partition("(what was written is in ")[2].partition(")")[0]
    assert not (
        await machine.run(
            f"touch {aside}/x || ln -s / {aside}/y || mv {aside} {aside}2"
        )
    ).ok
    assert (await machine.run(f"cat {aside}/*; ls {aside} | wc -l")).text.startswith(
        "mine\n1\n"
    )


async def test_a_new_repository_is_no_offence(machine: Machine) -> None:
    assert (await machine.run("git init -q .")).text == "(no output) [exit code 0]"
    assert (machine.workspace / ".git/config").exists()


async def test_a_new_repository_keeps_what_runs_nothing(machine: Machine) -> None:
    make = "git init -q {0}; git -C {0} remote add origin https://example.org/x; git -C {0} config user.name me"
    text = (await machine.run(f"{make.format('.')}; {make.format('below')}")).text
    assert text == "(no output) [exit code 0]"
    assert "example.org" in (machine.workspace / "below/.git/config").read_text()


EXECUTING = {
    "a hook": (
        "mkdir -p {0}/.git/hooks; echo evil > {0}/.git/hooks/pre-commit",
        "hooks/pre-commit",
    ),
    "a watcher": ("git -C {0} config core.fsmonitor ./evil", "config"),
    "an alias": ("git -C {0} config alias.st '!evil'", "config"),
    "a filter": ("git -C {0} config filter.x.clean evil", "config"),
    "another file": ("git -C {0} config include.path ../evil", "config"),
}


@pytest.mark.parametrize("folder", [".", "below"])
@pytest.mark.parametrize("name", EXECUTING)
async def test_a_new_repository_runs_nothing(
    machine: Machine, name: str, folder: str
) -> None:
    command, file = EXECUTING[name]
    text = (await machine.run(f"git init -q {folder}; {command.format(folder)}")).text
    assert "undone, as it can run something later" in text
    assert not (machine.workspace / folder / ".git" / file).exists()
    assert (machine.workspace / folder / ".git/HEAD").exists()


HIDDEN = {
    "a deep repository": (
        "git init -q p/q/r; git -C p/q/r config core.fsmonitor ./evil",
        "p/q/r/.git/config",
    ),
    "a deep hook": (
        "git init -q p/q/r; echo evil > p/q/r/.git/hooks/pre-commit",
        "p/q/r/.git/hooks/pre-commit",
    ),
    "a git folder without that name": (
        "git init -q --bare x; mv x/HEAD x/config x/objects x/refs .; git config -f config core.fsmonitor ./evil",
        "config",
    ),
    "settings elsewhere": (
        "git init -q r; git init -q --bare c; echo ../../c > r/.git/commondir",
        "r/.git/commondir",
    ),
    "settings of a working tree": (
        (
            "git init -q r; git -C r config extensions.worktreeConfig true"
            "; git -C r config --worktree core.fsmonitor ./evil"
        ),
        "r/.git/config.worktree",
    ),
    "a repository in another's": (
        (
            "git init -q .; git init -q --bare .git/x; git -C .git/x config core.fsmonitor ./evil"
            "; mkdir s; echo 'gitdir: ../.git/x' > s/.git"
        ),
        "s/.git",
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
async def test_no_new_repository_is_overlooked(machine: Machine, name: str) -> None:
    command, file = HIDDEN[name]
    text = (await machine.run(command)).text
    assert f"undone, as it can run something later: {machine.workspace / file}" in text
    assert not (machine.workspace / file).exists()


async def test_a_deep_repository_stays_as_it_was_and_can_be_deleted(
    machine: Machine,
) -> None:
    assert (
        "undone"
        not in (
            await machine.run(
                "git init -q p/q/r; git init -q --bare b/c; git -C p/q/r status"
            )
        ).text
    )
    before = (machine.workspace / "p/q/r/.git/config").read_text()
    assert (
        "undone"
        in (
            await machine.run(
                "git -C p/q/r config core.fsmonitor ./evil; git -C b/c config a.b ./x"
            )
        ).text
    )
    assert (machine.workspace / "p/q/r/.git/config").read_text() == before
    result = await machine.run("rm -rf p b")
    assert result.text == "(no output) [exit code 0]"
    assert not (machine.workspace / "p").exists()


async def test_a_new_working_tree_stays(machine: Machine) -> None:
    commit = "git -C r -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    text = (
        await machine.run(
            f"git init -q r; {commit}; git -C r worktree add -q ../tree; git -C tree status"
        )
    ).text
    assert "undone" not in text
    assert (machine.workspace / "tree/.git").exists()


POINTERS = [
    "echo 'gitdir: evil' > .git",
    "rm -f .git; git init -q evil; mv evil/.git .git",
    "echo 'gitdir: ../evil' > sub/.git",
    "echo evil > .git/modules/lib/hooks/post-checkout; echo evil >> .git/modules/lib/config",
]


@pytest.mark.parametrize("command", POINTERS)
@pytest.mark.parametrize("top", [True, False])
async def test_where_a_repository_is_stays_as_it_was(
    machine: Machine, command: str, top: bool
) -> None:
    git = machine.workspace / (".git" if not top else "real")
    for folder in (git, git / "modules/lib"):
        (folder / "hooks").mkdir(parents=True)
        for file in ("HEAD", "config"):
            (folder / file).write_text("")
    (machine.workspace / "sub").mkdir()
    (machine.workspace / "sub/.git").write_text("gitdir: ../.git/modules/lib")
    if top:
        (machine.workspace / ".git").write_text("gitdir: real")
    before = pointers(machine.workspace)
    await machine.run(command)
    assert pointers(machine.workspace) == before


def pointers(workspace: Path) -> dict[str, str]:
    found = [
        workspace / ".git",
        workspace / "sub/.git",
        *workspace.glob(".git/modules/lib/**/*"),
    ]
    return {str(path): path.read_text() for path in found if path.is_file()}


@pytest.mark.parametrize("sandbox", ["bubblewrap"], indirect=True)
async def test_a_home_as_the_workspace_keeps_the_users_programs(
    machine: Machine,
) -> None:
    programs = machine.home / ".local/bin"
    keyring = machine.home / ".local/share/keyrings/login.keyring"
    for file in (programs / "uvx", keyring, machine.home / ".nvm/v22/lib/x.js"):
        file.parent.mkdir(parents=True)
        file.write_text("as it was")
    (machine.home / ".nvm/v22/bin").mkdir()
    machine.environment["PATH"] += f":{programs}:{machine.home}/.nvm/v22/bin"
    machine.workspace = machine.home
    result = await machine.run(
        "echo evil > .local/bin/uvx; echo evil > .local/bin/git; echo evil > .nvm/v22/lib/x.js; mv .local .old;"
        " mv .nvm/v22 .nvm/v21; mv .nvm .nvm2; rm -rf .local/bin .nvm; mkdir -p .local/bin;"
        " cat .local/share/keyrings/login.keyring; echo mine > .local/share/mine"
    )
    assert "as it was" not in result.text, "what is hidden stays hidden"
    assert (machine.home / ".local/share/mine").read_text() == "mine\n"
    assert [path.name for path in programs.iterdir()] == ["uvx"]
    assert (programs / "uvx").read_text() == "as it was"
    assert (machine.home / ".nvm/v22/lib/x.js").read_text() == "as it was"


async def test_a_home_as_the_workspace_keeps_its_secrets(machine: Machine) -> None:
    machine.workspace = machine.home
    text = (
        await machine.run(
            "cat .ssh/id_ed25519 .netrc .hermes/.env .config/gh/hosts.yml; echo x >> .bashrc; true"
        )
    ).text
    assert SECRET not in text
    assert (machine.home / ".bashrc").read_text() == "# start"


async def test_the_system_is_no_workspace(machine: Machine) -> None:
    machine.workspace = Path("/")
    assert not (await machine.run(f"touch {machine.root}/x")).ok
    assert not (machine.root / "x").exists()


async def test_long_output_can_be_searched_by_the_next_command(
    machine: Machine,
) -> None:
    text = (await machine.run("seq 1 20000")).text
    kept = text.partition("all of it is in ")[2].partition("]")[0]
    assert (await machine.run(f"wc -l < {kept}")).text.startswith("20000\n")


async def test_no_new_privileges_and_no_terminal(machine: Machine) -> None:
    text = (
        await machine.run(
            "grep NoNewPrivs /proc/self/status; tty; (: < /dev/tty) 2>&1; true"
        )
    ).text
    assert "NoNewPrivs:\t1" in text
    assert "not a tty" in text
    assert "/dev/tty: " in text


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
async def test_older_landlocks_hold_too(place: Path, abi: int) -> None:
    machine = Machine(place, make_sandbox(f"landlock-{abi}"), ResourceLimits())
    try:
        await machine.prove()
        attack = f"rm -rf {machine.home}/projects; kill -9 {machine.process.pid}; chmod 0 {machine.home}; kill -9 $PPID"
        assert not (await machine.run(attack)).ok
        machine.assert_untouched()
        assert (
            await machine.run(
                "{ sleep 100 & kill -9 $!; wait $!; } 2>/dev/null; mkdir d; echo x > d/f; mv d/f .; cat f"
            )
        ).text == "x\n[exit code 0]"
    finally:
        await machine.close()


async def test_an_older_landlock_says_what_it_cannot_do() -> None:
    assert "emptying files" in make_sandbox("landlock-2").why
    assert (
        make_sandbox("landlock-3").why
        == "A project's own secret files are not hidden from commands."
    )


def test_the_sandbox_of_this_machine_is_found_once_and_really_works(
    bubblewrap: Path,
) -> None:
    found = find_sandbox(str(bubblewrap.parent), Path.home())
    assert (found.kind, found.why) == ("bubblewrap", "")
    assert find_sandbox(str(bubblewrap.parent), Path.home()) is found


def test_a_bubblewrap_that_fails_is_not_trusted(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho no namespaces here >&2; exit 1\n")
    program.chmod(0o755)
    if find_bubblewrap("", Path("/nonexistent")):
        pytest.skip("the system's own bubblewrap comes first")
    found = find_sandbox(str(tmp_path), Path("/nonexistent"))
    assert found.kind != "bubblewrap"
    assert "bubblewrap can't be used here (no namespaces here)." in found.why
    program.chmod(0o777)
    assert find_bubblewrap(str(tmp_path), Path("/nonexistent")) is None
    assert find_bubblewrap("relative", tmp_path) is None


async def test_a_sandbox_that_cannot_be_made_is_told_and_nothing_runs(
    place: Path, bubblewrap: Path
) -> None:
    """What it was to cover may be gone by then: it is tried again, and then given up."""
    fails = place / "bwrap"
    tries, most, real = (
        shlex.quote(str(path)) for path in (place / "tries", place / "most", bubblewrap)
    )
    enough = f"[ $(wc -l < {tries}) -gt $(cat {most}) ]"
    fails.write_text(
        f'#!/bin/sh\necho >> {tries}\n{enough} && exec {real} "$@"\necho no; exit 1\n'
    )
    fails.chmod(0o755)
    (place / "most").write_text("2")
    machine = Machine(place, make_sandbox("bubblewrap", fails), ResourceLimits())
    try:
        assert (
            await machine.run("echo once >> ran; cat ran")
        ).text == "once\n[exit code 0]"
        (place / "most").write_text("1000")
        with pytest.raises(ToolFailed, match="The sandbox could not be set up: no"):
            await machine.run("echo again >> ran")
        assert (machine.workspace / "ran").read_text() == "once\n"
    finally:
        await machine.close()


def test_a_hermes_that_runs_from_the_workspace_is_not_changed_there(
    tmp_path: Path,
) -> None:
    program = find_bubblewrap(os.environ["PATH"], Path.home())
    package = Path(hermes.__file__).resolve().parent
    workspace = package.parents[1]
    if program is None or not is_workspace(workspace):
        pytest.skip("bubblewrap is not here, or Hermes lies in a folder of the system")
    mine = f"planted-{os.getpid()}"  # tests of this workspace may run at the same time
    script = f"touch '{package}/{mine}.py' '{workspace}/{mine}' 2>&1; rm '{workspace}/{mine}' && echo removed"
    with (tmp_path / "output").open("w+") as output:
        launch = ConfinedLaunch(
            ["/bin/sh", "-c", script],
            workspace,
            {},
            subprocess.DEVNULL,
            output.fileno(),
        )
        started = make_sandbox("bubblewrap", program).start(
            launch, Fence(workspace, tmp_path)
        )
        code = started.process.wait(30)
        output.seek(0)
        said = output.read()
    assert code == 0, said
    assert not (package / f"{mine}.py").exists()
    assert "Read-only file system" in said
    assert said.endswith("removed\n"), "the rest of the workspace can be written"
