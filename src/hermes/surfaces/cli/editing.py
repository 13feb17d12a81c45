"""Commands that open an editor: on a draft of config.yaml, on a memory file, and on an agent.

Only a valid draft replaces the file, and no draft is ever lost.

The draft's name holds a digest of the config.yaml that it was made from, so that a change made meanwhile, such as by
`config set` in another window, is noticed and not overwritten.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import TextResult, message
from hermes.errors import HermesError, SettingsError, UsageError, os_reason
from hermes.settings import atomic
from hermes.settings.edit import install
from hermes.settings.home import Home
from hermes.settings.load import read_text
from hermes.settings.parse import parse_config
from hermes.settings.setting_keys import all_keys
from hermes.surfaces.terminal.external_editor import editor
from hermes.surfaces.terminal.style import printable
from hermes.text.translation import translator

t = translator(__name__)


@command("config edit")
def edit_config(
    context: CommandContext,
    *,
    continue_: Annotated[bool, Arg("continue the draft", excludes="draft")] = False,
    discard: Annotated[bool, Arg("discard the draft", excludes="draft")] = False,
) -> int:
    """Edit config.yaml in your editor; only a valid file is installed."""
    home = context.home
    earlier = _earlier(home)
    if discard:
        return _discard(earlier)
    if continue_ and not earlier:
        raise UsageError(
            t("There is no draft to continue."),
            hint=t("Start one with: hermes config edit"),
        )
    command_line = editor()
    home.ensure()
    current = read_text(home.config)
    draft = _draft_path(home, current)
    if earlier and (continue_ or _continues(earlier[-1])):
        draft = earlier[-1].rename(_owned(earlier[-1]))
    else:
        if earlier:
            earlier[-1].unlink(missing_ok=True)
        atomic.replace(draft, template() if current is None else current, mode=0o600)
    _open_editor(command_line, draft)
    return _finish(home, draft)


@command("memory edit")
def edit_memory(
    context: CommandContext,
    file: Annotated[Literal["memory", "user"], "memory (default) or user"] = "memory",
) -> TextResult:
    """Open a memory file in your editor."""
    from hermes.commands.memory import flagged_text
    from hermes.learning.memory import FILES

    memory, history = context.learning.memory, context.learning.history
    path = memory.path(file)
    command_line = editor()
    context.home.ensure(context.home.memories)
    path.touch(mode=0o600)
    code = _edited(command_line, path)
    history.commit_manual_edits()
    _require_success(code, path)
    flagged = map(flagged_text, memory.flagged())
    return message(
        *flagged,
        t(
            "{files}: {fill}. This applies to new sessions.",
            files=FILES[file],
            fill=memory.fill(file),
        ),
    )


@command("agent edit")
def edit_agent(
    context: CommandContext,
    name: Annotated[str, Arg("an agent, as the list shows it", metavar="NAME")],
) -> TextResult:
    """Open an agent's file in your editor, and check it afterwards."""
    from hermes.commands.agent_files import after_edit, agent_to_edit

    file = agent_to_edit(context, name)
    path = Path(file.path)
    _require_success(_edited(editor(), path), path)
    return after_edit(context, file)


def _edited(command_line: list[str], path: Path) -> int:
    """Opens the editor on a file and waits for it. Returns its exit code."""
    try:
        return subprocess.run([*command_line, str(path)], check=False).returncode
    except OSError as error:
        raise HermesError(
            t(
                "The editor can't be started: {command_line}.",
                command_line=command_line[0],
            ),
            hint=t("Set VISUAL or EDITOR."),
        ) from error


def _require_success(code: int, path: Path) -> None:
    if code:
        raise HermesError(
            t("The editor ended with code {code}.", code=code),
            hint=t("What it saved is in {path}.", path=path),
        )


def _earlier(home: Home) -> list[Path]:
    """The drafts that no running process works on, the newest last."""
    drafts = [
        path for path in home.root.glob("config.draft-*.yaml") if not _in_use(path)
    ]
    return sorted(drafts, key=lambda path: path.stat().st_mtime)


def _in_use(draft: Path) -> bool:
    found = re.fullmatch(r"config\.draft-[0-9a-f]+-([0-9]{1,9})\.yaml", draft.name)
    if found is None or int(found[1]) == os.getpid():
        return False
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _owned(draft: Path) -> Path:
    """The name of `draft` once this process works on it."""
    return draft.with_name("-".join(draft.stem.split("-")[:2]) + f"-{os.getpid()}.yaml")


def _discard(drafts: list[Path]) -> int:
    for path in drafts:
        path.unlink(missing_ok=True)
    print(t("The draft is discarded.") if drafts else t("There is no draft."))
    return 0


def _finish(home: Home, draft: Path) -> int:
    text = read_text(draft)
    if text is None:
        print(t("The draft is gone; nothing was changed."))
        return 1
    problems = parse_config(text)[1]
    if problems:
        for problem in problems:
            print(printable(problem.shown(draft.name)), file=sys.stderr)
        kept = t(
            "The draft is kept: {draft}. Continue with: hermes config edit", draft=draft
        )
        raise SettingsError(
            t("Not installed: the draft has problems. config.yaml was not changed."),
            hint=kept,
        )
    current = read_text(home.config)
    if text == current or (current is None and text == template()):
        draft.unlink()
        print(t("Nothing was changed."))
        return 0
    if draft != _draft_path(home, current) or not install(
        home.config, text, expected=current
    ):
        moved = draft.replace(_draft_path(home, current))
        raise SettingsError(
            t("Not installed: config.yaml was changed while you edited."),
            hint=t(
                "Your draft is kept: {moved}. To merge the changes: hermes config edit --continue",
                moved=moved,
            ),
        )
    draft.unlink()
    print(f"Installed {home.config}")
    return 0


def _draft_path(home: Home, base: str | None) -> Path:
    digest = hashlib.sha256((base or "").encode()).hexdigest()[:8]
    return home.root / f"config.draft-{digest}-{os.getpid()}.yaml"


def _continues(draft: Path) -> bool:
    if not sys.stdin.isatty():
        print(t("Continuing the draft {draft}", draft=draft))
        return True
    print(t("There is a draft from an earlier edit: {draft}", draft=draft))
    try:
        return not input(t("Continue it? [Y/n] ")).strip().lower().startswith("n")
    except EOFError as error:
        raise KeyboardInterrupt from error


def _open_editor(command: list[str], draft: Path) -> None:
    try:
        code = subprocess.run([*command, str(draft)], check=False).returncode
    except OSError as error:
        raise HermesError(
            t(
                "The editor can't be started: {command} ({error})",
                command=command[0],
                error=os_reason(error),
            ),
            hint=t("Set VISUAL or EDITOR. The draft is kept: {draft}", draft=draft),
        ) from error
    if code != 0:
        raise HermesError(
            t(
                "The editor ended with code {code}; config.yaml was not changed.",
                code=code,
            ),
            hint=t("The draft is kept: {draft}", draft=draft),
        )


def template() -> str:  # not translated: like the descriptions of the settings
    """A first config.yaml: every setting, commented out, with its default and description."""
    import msgspec

    lines = [
        "## The settings of Hermes. Remove a `#` to change a default; `hermes config check` checks this file."
    ]
    above: tuple[str, ...] = ()
    for key in all_keys():
        *sections, name = key.path
        if key.path[0] != (above or ("",))[0]:
            lines.append("")
        for depth, section in enumerate(sections):
            if above[: depth + 1] != tuple(sections[: depth + 1]):
                lines.append(f"# {'  ' * depth}{section}:")
        default = msgspec.json.encode(key.default).decode()
        lines.append(f"# {'  ' * len(sections)}{name}: {default}  # {key.description}")
        above = key.path
    return "\n".join(lines) + "\n"
