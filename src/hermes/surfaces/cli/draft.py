"""`hermes config edit`: an editor on a draft of config.yaml. Only a sound draft is installed; none is ever lost.

The draft's name holds a digest of the config.yaml that it was made from. So a change made meanwhile, by `config set` in
another window, is noticed and not undone.
"""

import hashlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from hermes.errors import HermesError, SettingsError
from hermes.settings import atomic
from hermes.settings.edit import install
from hermes.settings.home import Home
from hermes.settings.keys import all_keys
from hermes.settings.load import environment, read_text
from hermes.settings.parse import parse_config
from hermes.surfaces.cli.style import printable


def edit(home: Home, choice: str | None) -> int:
    """Let the user edit config.yaml. An earlier draft goes on or away as `choice` says; None asks."""
    home.ensure()
    current = read_text(home.config)
    earlier = sorted(home.root.glob("config.draft-*.yaml"), key=lambda path: path.stat().st_mtime)
    draft = earlier[-1] if earlier and _continues(earlier[-1], choice) else None
    if draft is None:
        for path in earlier:
            path.unlink()
        draft = _draft_path(home, current)
        atomic.replace(draft, _template() if current is None else current, mode=0o600)
    _open_editor(draft)
    return _finish(home, draft)


def _finish(home: Home, draft: Path) -> int:
    text = read_text(draft)
    if text is None:
        print("The draft is gone; nothing was changed.")
        return 1
    problems = parse_config(text)[1]
    if problems:
        for problem in problems:
            print(printable(problem.render(draft.name)), file=sys.stderr)
        kept = f"The draft is kept: {draft}. Go on with: hermes config edit"
        raise SettingsError("Not installed: the draft has problems. config.yaml was not changed.", hint=kept)
    current = read_text(home.config)
    if text == current or (current is None and text == _template()):
        draft.unlink()
        print("Nothing was changed.")
        return 0
    if draft != _draft_path(home, current) or not install(home.config, text, expected=current):
        moved = draft.replace(_draft_path(home, current))
        raise SettingsError(
            "Not installed: config.yaml was changed while you edited.",
            hint=f"Your draft is kept: {moved}. Bring the change over with: hermes config edit --continue",
        )
    draft.unlink()
    print(f"Installed {home.config}")
    return 0


def _draft_path(home: Home, base: str | None) -> Path:
    digest = hashlib.sha256((base or "").encode()).hexdigest()[:8]
    return home.root / f"config.draft-{digest}.yaml"


def _continues(draft: Path, choice: str | None) -> bool:
    if choice is not None:
        return choice == "continue"
    if not sys.stdin.isatty():
        print(f"Going on with the draft {draft}")
        return True
    print(f"There is a draft from an earlier edit: {draft}")
    try:
        return not input("Go on with it? [Y/n] ").strip().lower().startswith("n")
    except EOFError as error:
        raise KeyboardInterrupt from error


def _open_editor(draft: Path) -> None:
    environ = environment()
    chosen = environ.get("VISUAL") or environ.get("EDITOR")
    try:
        command = shlex.split(chosen) if chosen else _some_editor()
    except ValueError as error:
        raise HermesError(f"VISUAL or EDITOR can't be understood: {error}", hint="Correct it.") from error
    try:
        code = subprocess.run([*command, str(draft)], check=False).returncode
    except OSError as error:
        raise HermesError(
            f"The editor can't be started: {command[0]} ({(error.strerror or '').lower()})",
            hint=f"Set VISUAL or EDITOR. The draft is kept: {draft}",
        ) from error
    if code != 0:
        raise HermesError(
            f"The editor ended with code {code}; config.yaml was not changed.", hint=f"The draft is kept: {draft}"
        )


def _some_editor() -> list[str]:
    for name in ("sensible-editor", "nano", "vim", "vi"):
        if shutil.which(name):
            return [name]
    raise HermesError("No editor was found.", hint="Set VISUAL or EDITOR to one; or use: hermes config set KEY VALUE")


def _template() -> str:
    """A first config.yaml: every setting, commented out, with its default and description."""
    import msgspec

    from hermes.settings.sections import Settings

    lines = ["# The settings of Hermes. Remove a `#` to change a default; `hermes config check` checks this file."]
    for field in msgspec.structs.fields(Settings):
        lines += ["", f"# {field.encode_name}:"]
        for key in all_keys():
            if key.path[0] == field.encode_name:
                default = msgspec.json.encode(key.default).decode()
                lines += [f"#   {'.'.join(key.path[1:])}: {default}  # {key.description}"]
    return "\n".join(lines) + "\n"
