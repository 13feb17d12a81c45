"""Where each value comes from, and all problems, for `hermes config show`, `check` and `doctor`."""

import stat
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from hermes.settings.home import Home, probe
from hermes.settings.load import load, read_config, read_overrides, read_text
from hermes.settings.parse import SettingProblem
from hermes.settings.secrets import parse_env
from hermes.settings.setting_keys import (
    SettingKey,
    all_keys,
    nearest_variable,
    unknown_variables,
)
from hermes.text.translation import translator

t = translator(__name__)


class SettingOrigin(Struct, frozen=True):
    """A setting with its effective value and its origin: `default`, `config.yaml:3` or the
    variable's name.
    """

    key: SettingKey
    value: object
    origin: str


def entries(environ: Mapping[str, str], home: Home) -> list[SettingOrigin]:
    """Returns every setting. Raises SettingsError if they cannot be loaded."""
    settings = load(environ, home=home)
    lines = _lines(read_text(home.config) or "")
    overrides, _ = read_overrides(environ)
    found: list[SettingOrigin] = []
    for key in all_keys():
        value: object = settings
        for part in key.path:
            value = getattr(value, part)
        origin = "default"
        if key.path in overrides:
            origin = key.variable
        elif key.path in lines:
            origin = f"{home.config.name}:{lines[key.path]}"
        found.append(SettingOrigin(key, msgspec.to_builtins(value), origin))
    return found


def config_problems(home: Home) -> list[SettingProblem]:
    """Returns the problems of config.yaml. Raises SettingsError if it cannot be read at all."""
    return read_config(home)[1]


def variable_problems(environ: Mapping[str, str]) -> list[SettingProblem]:
    """Returns the variables with unusable values."""
    return read_overrides(environ)[1]


def variable_warnings(environ: Mapping[str, str]) -> list[SettingProblem]:
    """Returns unknown HERMES_* variables, each with the nearest known one."""
    found: list[SettingProblem] = []
    for name in unknown_variables(environ):
        near = nearest_variable(name)
        hint = t.later("unset it")
        if near:
            hint = t.later("did you mean {near}?", near=near)
        found.append(
            SettingProblem(0, name, t.later("Hermes has no such variable"), hint)
        )
    return found


def secret_problems(home: Home) -> list[SettingProblem]:
    """Returns the problems of `.env`. Raises SettingsError if it cannot be read at all."""
    lines = parse_env(read_text(home.env_file) or "")
    found = [
        SettingProblem(number, "", line.problem, t.later("correct it"))
        for number, line in enumerate(lines, 1)
        if line.problem
    ]
    info = probe(home.env_file)
    mode = 0 if isinstance(info, OSError) else stat.S_IMODE(info.st_mode)
    if mode & 0o077:
        text = t.later("can be read by others (mode {mode:04o})", mode=mode)
        found.append(
            SettingProblem(
                0, "", text, t.later("run: chmod 600 '{path}'", path=home.env_file)
            )
        )
    return found


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Returns the line of every key in a valid config.yaml."""
    if not text.strip():
        return {}
    from ruamel.yaml.nodes import MappingNode, Node

    from hermes.settings.config_problems import compose

    lines: dict[tuple[str, ...], int] = {}

    def collect(node: Node, path: tuple[str, ...]) -> None:
        if isinstance(node, MappingNode):
            for key, value in node.value:
                lines[*path, key.value] = key.start_mark.line + 1
                collect(value, (*path, key.value))

    for document in compose(text.removeprefix("\ufeff")):
        collect(document, ())
    return lines
