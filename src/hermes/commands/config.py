"""Settings and secrets: showing, changing and checking config.yaml and .env."""

import json
import os
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

import msgspec

from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.commands.views import (
    Block,
    Column,
    Line,
    Look,
    Span,
    TableRow,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import HermesError, NotFound, SettingsError, UsageError, for_reader
from hermes.settings.edit import set_secret, set_value, unset_value
from hermes.settings.home import probe
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import load
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
from hermes.text.translation import to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes config show                        every setting and where it comes from
  hermes config set display.color never     change one setting
  hermes config set OPENAI_API_KEY          store a secret in .env; you are asked for it
  hermes config set OPENAI_API_KEY < file   ... or read from stdin
""")
_WIDEST_COLUMN = 40


def _origin(origin: str) -> str:
    """Where a value comes from: a file and its line, a variable, or nowhere."""
    return t("default") if origin == "default" else origin


class ShownSetting(msgspec.Struct, frozen=True):
    """A setting, its value without secrets, and where that comes from."""

    key: str
    value: Any
    origin: str


class ShownSecret(msgspec.Struct, frozen=True):
    """A secret that is set."""

    name: str
    origin: str


class ShownSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting, and the names of the secrets."""

    path: str
    settings: tuple[ShownSetting, ...]
    secrets: tuple[ShownSecret, ...]
    secrets_path: str

    def document(self) -> Any:
        return {"path": self.path, "settings": self.settings, "secrets": self.secrets}

    def view(self, _now: float) -> Iterable[Block]:
        yield Line((Span(t("Settings "), "bold"), Span(self.path, "dim")))
        columns = (
            Column(),
            Column(widest=_WIDEST_COLUMN, shrinks=True),
            Column(),
        )
        rows = [
            TableRow(
                (one.key, _text(one.value), _origin(one.origin)),
                "dim" if one.origin == "default" else "",
            )
            for one in self.settings
        ]
        yield table(columns, rows, cut=False, indent=2)
        yield Line(
            (Span("\n"), Span(t("Secrets "), "bold"), Span(self.secrets_path, "dim"))
        )
        if self.secrets:
            listed = [(one.name, "********", one.origin) for one in self.secrets]
            yield table(("", "", ""), listed, cut=False, indent=2)
        else:
            yield line(t("  none; store one with: hermes config set OPENAI_API_KEY"))


class SettingValue(msgspec.Struct, frozen=True, kw_only=True):
    """The value of one setting."""

    key: str
    value: Any

    def view(self, _now: float) -> Iterable[Block]:
        yield line(_text(self.value))


class SettingsCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the settings."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    path: str
    """The file that was checked, or that there is none."""

    @property
    def exit_code(self) -> int:
        return int(bool(self.problems or self.warnings))

    def view(self, _now: float) -> Iterable[Block]:
        marks: tuple[tuple[str, Look, tuple[str, ...]], ...] = (
            ("fail", "bad", self.problems),
            ("warn", "warn", self.warnings),
        )
        for mark, look, texts in marks:
            for text in texts:
                yield Line((Span(mark, look), Span(text)), "hang")
        if not self.exit_code:
            yield Line((Span("ok  ", "good"), Span(f" {self.path}")))


@command("config show", slash="config", scope="admin", group="Settings")
def show_settings(context: CommandContext) -> ShownSettings:
    """List every setting, its value and where that comes from."""
    home, secrets = context.home, context.secrets
    found = entries(context.environment, home)
    return ShownSettings(
        path=str(home.config),
        settings=tuple(
            ShownSetting(one.key.name, _masked(one.value), one.origin) for one in found
        ),
        secrets=tuple(ShownSecret(name, secrets.origin(name)) for name in secrets),
        secrets_path=str(home.env_file),
    )


@command("config get", scope="admin")
def get_setting(
    context: CommandContext,
    key: Annotated[str, "a setting, such as store.busy_timeout"],
) -> SettingValue:
    """Print the value of one setting."""
    if is_secret_variable(key):
        raise UsageError(
            t("{key} is a secret and is never printed.", key=key),
            hint=t("See which are set: hermes config show"),
        )
    found = _find(key)
    value: object = load(home=context.home)
    for part in found.path:
        look_up = value.get if isinstance(value, dict) else partial(getattr, value)
        value = look_up(part, msgspec.UNSET)
        if value is msgspec.UNSET:
            raise NotFound(
                t("{key} is not set.", key=key),
                hint=t("Set it with: hermes config set {key} VALUE", key=key),
            )
    return SettingValue(key=key, value=_masked(msgspec.to_builtins(value)))


@command("config set")
def set_setting(
    context: CommandContext,
    key: Annotated[str, "a setting, or the NAME of a secret such as OPENAI_API_KEY"],
    value: Annotated[str | None, "the value; leave it out for a secret"] = None,
) -> TextResult:
    """Change one setting in config.yaml, or one secret in .env."""
    home = context.home
    if is_secret_variable(key):
        secret = context.surface.read_secret(key) if value is None else value
        if not secret.strip():
            raise UsageError(
                t("{key}: no value was given.", key=key), hint=t("Nothing was changed.")
            )
        set_secret(home.ensure().env_file, key, secret)
        return message(
            t("{key} is stored in {env_file}", key=key, env_file=home.env_file)
        )
    found = _find(key)
    if value is None:
        raise UsageError(
            t("{key}: a value is missing.", key=key),
            hint=t("Give one: hermes config set {key} VALUE", key=key),
        )
    if is_secret_value(value):
        variable = variable_for(found.path[-1], value)
        raise UsageError(
            t(
                "That value looks like a secret, and secrets don't belong in config.yaml."
            ),
            hint=t(
                "Nothing was changed. Store it with: hermes config set {variable}",
                variable=variable,
            ),
        )
    parsed = parse_value(found, value)
    if key == "model.provider":
        from hermes.providers.routing import require_provider

        require_provider(load(home=home), parsed)
    set_value(home.ensure().config, key, parsed)
    if found.variable in context.environment:
        context.surface.warn(
            t("{variable} is set and overrides config.yaml.", variable=found.variable)
        )
    return message(f"{key} = {_text(parsed)}")


@command("config unset")
def unset_setting(
    context: CommandContext, key: Annotated[str, "a setting or the NAME of a secret"]
) -> TextResult:
    """Remove one setting or secret; the default applies again."""
    home = context.home
    if is_secret_variable(key):
        if os.path.lexists(home.env_file):
            set_secret(home.env_file, key, None)
        return message(
            t("{key} was removed from {env_file}", key=key, env_file=home.env_file)
        )
    found = _find(key)
    removed = os.path.lexists(home.config) and unset_value(home.config, key)
    note = "" if removed else t(", it was not set")
    return message(
        t(
            "{key} = {text} (default{note})",
            key=key,
            text=_text(found.default),
            note=note,
        )
    )


@command("config path")
def show_config_path(context: CommandContext) -> TextResult:
    """Print the path of config.yaml."""
    return message(str(context.home.config))


@command("config check", scope="admin")
def check_settings(context: CommandContext) -> SettingsCheck:
    """Print everything that is wrong with config.yaml, .env and the environment."""
    home, environ = context.home, context.environment
    problems: list[str] = []
    for find, name in (
        (lambda: config_problems(home), home.config.name),
        (lambda: secret_problems(home), home.env_file.name),
        (lambda: variable_problems(environ), ""),
    ):
        try:
            problems += [problem.shown(name) for problem in find()]
        except HermesError as error:
            problems.append(for_reader(error))
    is_there = not isinstance(probe(home.config), OSError)
    path = (
        str(home.config)
        if is_there
        else t("{config} does not exist: all defaults", config=home.config)
    )
    return SettingsCheck(
        problems=tuple(problems),
        warnings=tuple(one.shown("") for one in variable_warnings(environ)),
        path=path,
    )


def _find(name: str) -> SettingKey:
    """The setting of that name; one that does not exist is wrong usage."""
    try:
        return find_key(name)
    except SettingsError as error:
        raise UsageError(error.words, hint=error.hint_words) from error


def _masked(value: object) -> object:
    """`value` with every text in it masked."""
    if isinstance(value, dict):
        return {name: _masked(below) for name, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(item) for item in value]
    return mask(value) if isinstance(value, str) else value


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
