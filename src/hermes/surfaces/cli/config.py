"""`hermes config`: show, get, set, unset, edit, path and check the settings; put secrets into `.env`."""

import argparse
import getpass
import json
import os
import sys

import msgspec

from hermes.errors import HermesError, SettingsError, UsageError, in_sentences
from hermes.settings.edit import set_secret, set_value, unset_value
from hermes.settings.home import probe
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.settings.redaction import mask
from hermes.settings.secrets import is_secret_variable, variable_for
from hermes.settings.setting_keys import SettingKey, find_key, parse_value
from hermes.settings.value_origins import (
    config_problems,
    entries,
    secret_problems,
    variable_problems,
    variable_warnings,
)
from hermes.surfaces.cli.parser import add_action
from hermes.surfaces.terminal.style import (
    FAIL,
    OK,
    WARN,
    columns,
    hanging,
    printable,
    stdout_style,
    terminal_width,
)
from hermes.surfaces.terminal.text import cut

_SECRET_BYTES = 64 * 1024
_EXAMPLES = """\
examples:
  hermes config show                        every setting and where it comes from
  hermes config set display.color never     change one setting
  hermes config set OPENAI_API_KEY          store a secret in .env; it is asked for
  hermes config set OPENAI_API_KEY < file   ... or read from stdin
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = add_action(
        actions, "show", "list every setting, its value and where that comes from"
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    get = add_action(actions, "get", "print the value of one setting")
    get.add_argument("key", metavar="KEY", help="a setting, such as store.busy_timeout")
    change = add_action(
        actions, "set", "change one setting in config.yaml, or one secret in .env"
    )
    change.add_argument(
        "key",
        metavar="KEY",
        help="a setting, or the NAME of a secret such as OPENAI_API_KEY",
    )
    change.add_argument(
        "value", metavar="VALUE", nargs="?", help="the value; leave it out for a secret"
    )
    unset = add_action(
        actions, "unset", "remove one setting or secret, so that the default holds"
    )
    unset.add_argument("key", metavar="KEY", help="a setting or the NAME of a secret")
    edit = add_action(
        actions,
        "edit",
        "edit config.yaml in your editor; only a sound file is installed",
    )
    draft = edit.add_mutually_exclusive_group()
    draft.add_argument(
        "--continue",
        dest="draft",
        action="store_const",
        const="continue",
        help="go on with the draft",
    )
    draft.add_argument(
        "--discard",
        dest="draft",
        action="store_const",
        const="discard",
        help="throw the draft away",
    )
    add_action(actions, "path", "print the path of config.yaml")
    add_action(
        actions,
        "check",
        "print everything that is wrong with config.yaml, .env and the environment",
    )


def run(args: argparse.Namespace) -> int:
    match args.action:
        case "show":
            code = _show(as_json=args.json)
        case "get":
            code = _get(args.key)
        case "set":
            code = _set(args.key, args.value)
        case "unset":
            code = _unset(args.key)
        case "edit":
            from hermes.surfaces.cli.draft import edit

            code = edit(find_home(), args.draft)
        case "path":
            code = _path()
        case _:
            code = _check()
    return code


def _path() -> int:
    print(find_home().config)
    return 0


def _show(*, as_json: bool) -> int:
    home = find_home()
    found, secrets = entries(environment(), home), load_secrets(home=home)
    if as_json:
        settings = [
            {
                "key": entry.key.name,
                "value": _masked(entry.value),
                "origin": entry.origin,
            }
            for entry in found
        ]
        listed = [{"name": name, "origin": secrets.origin(name)} for name in secrets]
        document = {"path": str(home.config), "settings": settings, "secrets": listed}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return 0
    style = stdout_style()
    print(style.bold("Settings"), style.dim(str(home.config)))
    names, origins = (
        max(map(len, kind))
        for kind in zip(*((one.key.name, one.origin) for one in found), strict=True)
    )
    room = (
        max(20, terminal_width() - names - origins - 6)
        if sys.stdout.isatty()
        else sys.maxsize
    )
    lines = columns(
        [
            (entry.key.name, cut(_shown(entry.value), room), entry.origin)
            for entry in found
        ]
    )
    for line, entry in zip(lines, found, strict=True):
        print(style.dim(line) if entry.origin == "default" else line)
    print()
    print(style.bold("Secrets"), style.dim(str(home.env_file)))
    rows = [(name, "********", secrets.origin(name)) for name in secrets]
    print(
        "\n".join(columns(rows))
        if rows
        else "  none; store one with: hermes config set OPENAI_API_KEY"
    )
    return 0


def _get(name: str) -> int:
    if is_secret_variable(name):
        raise UsageError(
            f"{name} is a secret and is never printed.",
            hint="See which are set: hermes config show",
        )
    key = _find(name)
    value: object = load()
    for part in key.path:
        value = (
            value.get(part, msgspec.UNSET)
            if isinstance(value, dict)
            else getattr(value, part, msgspec.UNSET)
        )
        if value is msgspec.UNSET:
            raise SettingsError(
                f"{name} is not set.",
                hint=f"Set it with: hermes config set {name} VALUE",
            )
    print(_shown(msgspec.to_builtins(value)))
    return 0


def _find(name: str) -> SettingKey:
    """The setting called `name`. One that does not exist is wrong usage."""
    try:
        return find_key(name)
    except SettingsError as error:
        raise UsageError(error.message, hint=error.hint) from error


def _set(name: str, value: str | None) -> int:
    home = find_home()
    _require_text(name, value or "")
    if is_secret_variable(name):
        secret = value if value is not None else _ask(name)
        if not secret.strip():
            raise UsageError(
                f"{name}: no value was given.", hint="Nothing was changed."
            )
        set_secret(home.ensure().env_file, name, secret)
        print(f"{name} is stored in {home.env_file}")
        return 0
    key = _find(name)
    if value is None:
        raise UsageError(
            f"{name}: a value is missing.",
            hint=f"Give one: hermes config set {name} VALUE",
        )
    if is_secret_value(value):
        raise UsageError(
            "That value looks like a secret, and secrets don't belong in config.yaml.",
            hint=f"Nothing was changed. Store it with: hermes config set {variable_for(key.path[-1], value)}",
        )
    parsed = parse_value(key, value)
    set_value(home.ensure().config, name, parsed)
    print(f"{name} = {printable(_text(parsed))}")
    if key.variable in environment():
        print(
            f"hermes: {key.variable} is set and still wins over config.yaml.",
            file=sys.stderr,
        )
    return 0


def _unset(name: str) -> int:
    home = find_home()
    if is_secret_variable(name):
        if os.path.lexists(home.env_file):
            set_secret(home.env_file, name, None)
        print(f"{name} is not in {home.env_file} any more")
        return 0
    key = _find(name)
    removed = unset_value(home.config, name) if os.path.lexists(home.config) else False
    print(
        f"{name} = {printable(_text(key.default))} (default{'' if removed else ', it was not set'})"
    )
    return 0


def _check() -> int:
    home, environ, style = find_home(), environment(), stdout_style()
    problems: list[str] = []
    for find, name in (
        (lambda: config_problems(home), home.config.name),
        (lambda: secret_problems(home), home.env_file.name),
        (lambda: variable_problems(environ), ""),
    ):
        try:
            problems += [problem.render(name) for problem in find()]
        except HermesError as error:
            problems.append(in_sentences(error))
    warnings = [problem.render("") for problem in variable_warnings(environ)]
    for mark, lines in ((FAIL, problems), (WARN, warnings)):
        for line in lines:
            print(style.status(mark), hanging(printable(line), sys.stdout, 5))
    if not problems and not warnings:
        there = not isinstance(probe(home.config), OSError)
        what = home.config if there else f"{home.config} does not exist: all defaults"
        print(style.status(OK), printable(str(what)))
    return 1 if problems or warnings else 0


def _ask(name: str) -> str:
    if sys.stdin.isatty():
        try:
            return getpass.getpass(f"{name} (not shown): ").strip()
        except EOFError:
            return ""
    content = sys.stdin.buffer.read(_SECRET_BYTES + 1)
    if len(content) > _SECRET_BYTES:
        raise UsageError(
            f"{name}: more than 64 KiB on stdin.", hint="Nothing was changed."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}: what is on stdin is not UTF-8 text.", hint="Nothing was changed."
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


def _require_text(*arguments: str) -> None:
    """Bytes that are no text reach Python as half characters, which no file can hold."""
    for argument in arguments:
        if not argument.isascii() and any(
            "\ud800" <= char <= "\udfff" for char in argument
        ):
            raise UsageError(
                f"{argument!r} is not UTF-8 text.", hint="Nothing was changed."
            )


def _shown(value: object) -> str:
    return printable(mask(_text(value)))


def _masked(value: object) -> object:
    """`value` with every text in it masked."""
    if isinstance(value, dict):
        return {name: _masked(below) for name, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(item) for item in value]
    return mask(value) if isinstance(value, str) else value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
