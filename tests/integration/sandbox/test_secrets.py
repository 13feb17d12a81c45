"""A project's own secret files are hidden from commands, and whoever misses them is told."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.sandbox.machine import SECRET, Machine, make_sandbox

from hermes.schema.events import Reach
from hermes.tools.process.resource_limits import ResourceLimits
from hermes.tools.sandbox.git_index import tracked
from hermes.tools.sandbox.secret_files import workspace_secrets

_FILES = (
    ".env",
    ".env.local",
    "deploy/server.pem",
    "app/config/id_ed25519",
    ".aws/credentials",
    "a b/[x].key",
)


@pytest.fixture
async def wrapped(
    place: Path, bubblewrap: Path, limits: ResourceLimits
) -> AsyncIterator[Machine]:
    """Only bubblewrap can hide single files."""
    made = Machine(place, make_sandbox("bubblewrap", bubblewrap), limits)
    for name in _FILES:
        file = made.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SECRET)
    (made.workspace / ".env.example").write_text("KEY=\n")
    yield made
    await made.close()


def git(machine: Machine, *arguments: str) -> None:
    """The user's own git, outside the sandbox."""
    subprocess.run(["git", *arguments], cwd=machine.workspace, check=True)


@pytest.mark.parametrize("reach", ["workspace", "network"])
@pytest.mark.parametrize("name", _FILES)
async def test_a_secret_file_of_the_project_cannot_be_read(
    wrapped: Machine, name: str, reach: Reach
) -> None:
    result = await wrapped.run(
        f"cat '{name}'; cp '{name}' copy; mv '{name}' moved; cat copy moved",
        reach=reach,
    )
    assert SECRET not in result.text
    assert (wrapped.workspace / name).read_text() == SECRET, "it stays as it is"
    assert "KEY=" in (await wrapped.run("cat .env.example", reach=reach)).text


async def test_a_secret_that_came_between_two_commands_is_hidden_too(
    wrapped: Machine,
) -> None:
    await wrapped.run("mkdir -p new/folder")
    (wrapped.workspace / "new/folder/.env").write_text(SECRET)
    assert SECRET not in (await wrapped.run("cat new/folder/.env")).text


async def test_a_link_to_a_secret_leads_nowhere(wrapped: Machine) -> None:
    (wrapped.workspace / "settings").mkdir()
    (wrapped.workspace / "settings/values").write_text(SECRET)
    (wrapped.workspace / "sub").mkdir()
    (wrapped.workspace / "sub/.env").symlink_to("../settings/values")
    assert SECRET not in (await wrapped.run("cat sub/.env settings/values")).text


async def test_what_git_tracks_is_no_secret(wrapped: Machine) -> None:
    git(wrapped, "init", "-q", ".")
    git(wrapped, "add", "-f", "deploy", ".env")
    assert SECRET in (await wrapped.run("cat deploy/server.pem")).text
    assert SECRET not in (await wrapped.run("cat .env.local")).text
    assert (await wrapped.run("git status --porcelain deploy")).text.startswith(
        "A  deploy/server.pem"
    )
    git(wrapped, "rm", "-q", "--cached", ".env")
    assert SECRET not in (await wrapped.run("cat .env")).text


LAZY_REPOSITORY = """
set -e; mkdir -p a/b/repo; cd a/b/repo; export HOME=$TMPDIR
git init -q .; git config user.email a@b; git config user.name x
mkdir in out; echo 1 > in/f; echo 2 > out/f; git add -A; git commit -qm x
git sparse-checkout init --cone --sparse-index; git sparse-checkout set in
T=$(git rev-parse HEAD:out); rm -f .git/objects/${T:0:2}/${T:2}
git config core.repositoryformatversion 1; git config extensions.partialClone origin
git config remote.origin.promisor true; git config remote.origin.url "$PWD"
git config remote.origin.uploadpack "id > PWNED; :"; echo secret > .env; echo made
"""


async def test_looking_for_secrets_runs_nothing_of_a_repository(
    wrapped: Machine,
) -> None:
    command = LAZY_REPOSITORY.replace("PWNED", f"{wrapped.outside}/pwned")
    assert "made" in (await wrapped.run(command)).text
    assert (await wrapped.run("echo second")).text == "second\n[exit code 0]"
    wrapped.assert_untouched()


async def test_a_command_cannot_show_a_secret_by_tracking_it(wrapped: Machine) -> None:
    git(wrapped, "init", "-q", ".")
    await wrapped.run("mv deploy moved; H=$(echo x | git hash-object -w --stdin)")
    forge = "for f in .env moved/server.pem; do git update-index --add --cacheinfo 100644,$H,$f; done; git ls-files"
    assert (
        "moved/server.pem"
        in (
            await wrapped.run(f"H=$(echo x | git hash-object -w --stdin); {forge}")
        ).text
    )
    assert SECRET not in (await wrapped.run("cat .env moved/server.pem")).text


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_an_index_of_every_version_is_read(
    tmp_path: Path, version: int, kind: str
) -> None:
    names = ["a", "deep/er/name.pem", "deep/er/other", "x" * 200 + ".key", "ünïcode"]
    names += [f"many/{number}" for number in range(200)]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for arguments in (
        ["init", "-q", f"--object-format={kind}"],
        ["add", "-A"],
        ["update-index", "--index-version", "4"],
    ):
        if arguments[-1] != "4" or version == 4:
            subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    (tmp_path / "intended").write_text("")
    if version == 3:
        subprocess.run(["git", "add", "-N", "intended"], cwd=tmp_path, check=True)
        names.append("intended")
    assert (tmp_path / ".git/index").read_bytes()[7] == version
    assert tracked(str(tmp_path)) == set(names)


def test_the_index_of_a_second_working_tree_is_found(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "main"], cwd=tmp_path, check=True)
    (tmp_path / "main/f").write_text("x")
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    for arguments in (
        ["add", "f"],
        [*who, "commit", "-qm", "x"],
        ["worktree", "add", "-q", "../second"],
    ):
        subprocess.run(["git", "-C", "main", *arguments], cwd=tmp_path, check=True)
    assert tracked(str(tmp_path / "second")) == {"f"}


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"DIRC",
        b"DIRC\0\0\0\2\xff\xff\xff\xff",
        b"DIRC\0\0\0\4\0\0\0\1" + b"\xff" * 90,
    ],
)
def test_of_a_damaged_index_nothing_is_tracked(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/index").write_bytes(damage)
    assert tracked(str(tmp_path)) == frozenset()
    (tmp_path / ".git/index").unlink()
    os.mkfifo(tmp_path / ".git/index")
    assert tracked(str(tmp_path)) == frozenset()


async def test_work_beside_a_secret_goes_on(wrapped: Machine) -> None:
    result = await wrapped.run(
        "echo 1 > new && cat new && sed -i s/1/2/ new && cat new && rm -rf new && mkdir deploy/x"
    )
    assert result.text == "1\n2\n[exit code 0]"


@pytest.mark.parametrize(
    "command",
    ["cat .env", "echo 'KeyError: DATABASE_URL'; exit 1", "echo 'no API key'; false"],
)
async def test_a_failure_says_what_is_hidden_and_how_to_show_it(
    wrapped: Machine, command: str
) -> None:
    text = (await wrapped.run(command)).text
    assert (
        "Hidden from commands, as they may hold secrets: .aws, .env, .env.local and "
        in text
    )
    assert "reach: machine" in text
    assert "sandbox.hide_secrets: false" in text


async def test_other_failures_say_nothing_of_secrets(wrapped: Machine) -> None:
    assert (await wrapped.run("echo oops; false")).text == "oops\n[exit code 1]"


async def test_with_the_users_word_a_command_reads_them(wrapped: Machine) -> None:
    assert SECRET in (await wrapped.run("cat .env", reach="machine")).text


async def test_the_setting_shows_them_to_all_commands(
    place: Path, bubblewrap: Path, limits: ResourceLimits
) -> None:
    machine = Machine(
        place, make_sandbox("bubblewrap", bubblewrap), limits, hide_secrets=False
    )
    (machine.workspace / ".env").write_text(SECRET)
    assert SECRET in (await machine.run("cat .env")).text
    await machine.close()


def test_what_builds_make_and_git_has_is_not_looked_into(tmp_path: Path) -> None:
    for name in (
        "node_modules/x/key.pem",
        ".venv/lib/certifi/cacert.pem",
        ".git/x.pem",
        "build/out.key",
        "src/ok.pem",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert workspace_secrets(tmp_path).files == (
        f"{os.path.realpath(tmp_path)}/src/ok.pem",
    )


@pytest.mark.parametrize(
    "rule", ["/", "..", "{home}", "link/.ssh", "link", "config", "."]
)
async def test_rules_of_a_project_uncover_nothing(
    place: Path, bubblewrap: Path, limits: ResourceLimits, rule: str
) -> None:
    """What a project protects becomes read-only; it must not become visible, nor anything outside the workspace."""
    machine = Machine(place, make_sandbox("bubblewrap", bubblewrap), limits)
    workspace = machine.workspace
    (workspace / ".hermes").mkdir()
    (workspace / "config").mkdir()
    (workspace / "config" / ".env").write_text(f"TOKEN={SECRET}\n")
    (workspace / "link").symlink_to(machine.home)
    rules = f"protect: ['{rule.format(home=machine.home)}']\n"
    (workspace / ".hermes" / "rules.yaml").write_text(rules)
    try:
        text = (
            await machine.run(
                f"cat {machine.home}/.ssh/id_ed25519 {machine.hermes}/.env config/.env; echo ran"
            )
        ).text
    finally:
        await machine.close()
    assert "ran" in text
    assert SECRET not in text
