"""A skill's own programs can be run by a confined command; memory, secrets and the log stay out of its sight."""

import os
from pathlib import Path

import msgspec
import pytest

from hermes.app import build
from hermes.app.session_tools import choice_of, needs_of
from hermes.core.ports import ToolContext
from hermes.settings import Home, Settings
from hermes.settings.load import load_secrets
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.resource_limits import ResourceLimits
from hermes.tools.process.terminal_tool import TerminalTool
from hermes.tools.sandbox import Sandbox

SECRET = "the-decoy-secret"  # noqa: S105 - a decoy


def fill(home: Home) -> Path:
    files = {
        "skills/greet/SKILL.md": "---\nname: greet\ndescription: Greets. Use it.\n---\nRun scripts/greet.sh\n",
        "skills/greet/scripts/greet.sh": 'echo "hello from $(cat "$(dirname "$0")/who.txt")"\n',
        "skills/greet/scripts/who.txt": "the skill\n",
        "memories/USER.md": SECRET,
        "learning/usage.json": SECRET,
        ".env": f"A_KEY={SECRET}\n",
        "state.db": SECRET,
        "cache/outputs/long.txt": "a kept output\n",
    }
    for name, text in files.items():
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (home.skills / "greet" / "leak").symlink_to(home.memories / "USER.md")
    return home.skills / "greet"


@pytest.mark.parametrize(
    "where", ["in the user's home", "elsewhere", "among what is temporary"]
)
async def test_a_skills_program_runs_and_nothing_else_of_the_home_is_seen(
    place: Path, sandbox: Sandbox, limits: ResourceLimits, where: str, tmp_path: Path
) -> None:
    user_home = place / "user"
    above = {
        "in the user's home": user_home,
        "elsewhere": place,
        "among what is temporary": tmp_path,
    }[where]
    home = Home(above / ".hermes")
    skill, work = fill(home), place / "work"
    work.mkdir()
    (place / "temporary").mkdir()
    with build(Settings(), home) as app:
        needs = needs_of(app, load_secrets(home=home), choice_of(app, "cli"))
    assert needs.surroundings is not None

    def find(path: str, home: Path) -> Sandbox:
        return sandbox

    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(user_home),
        "LANG": "C.UTF-8",
    }
    around = msgspec.structs.replace(
        needs.surroundings,
        environment=environment,
        limits=limits,
        sandbox=find,
        temporary=place / "temporary",
    )
    terminal = TerminalTool(OutputFolder(home.cache / "outputs"), environment, around)
    context = ToolContext("c1", "session", work, lambda text: None)

    async def run(command: str) -> str:
        return (await terminal.terminal.run({"command": command}, context)).text

    try:
        assert (await run(f"sh {skill}/scripts/greet.sh")).startswith(
            "hello from the skill\n"
        )
        assert (await run(f"cat {home.root}/cache/outputs/long.txt")).startswith(
            "a kept output\n"
        )
        names = (
            "memories/USER.md",
            "learning/usage.json",
            ".env",
            "state.db",
            "skills/greet/leak",
        )
        for name in names:
            assert SECRET not in await run(f"cat {home.root}/{name}")
        assert "state.db" not in await run(f"ls -a {home.root}")
        await run(
            f"echo changed > {skill}/SKILL.md; touch {skill}/new; rm -rf {skill}/scripts; mkdir {home.root}/x"
        )
        assert sorted(path.name for path in skill.iterdir()) == [
            "SKILL.md",
            "leak",
            "scripts",
        ]
        assert "changed" not in (skill / "SKILL.md").read_text()
        assert not (home.root / "x").exists()
    finally:
        await terminal.close()
