"""The settings as a flat list of keys, derived from the types: names, variables, types and nearest
names.
"""

import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Meta, Struct

from hermes.errors import SettingsError
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.redaction import has_credentials
from hermes.settings.secrets import CREDENTIALS, credentials_hint
from hermes.settings.section import AMOUNT
from hermes.settings.sections import Settings
from hermes.settings.yaml_read import TOO_DEEP, YamlTooDeep, parse_yaml
from hermes.text.translation import Later, Translator, translator

t = translator(__name__)


# Variables of Hermes that are not settings.
OTHER_VARIABLES = (
    *(
        "HERMES_HOME",
        "HERMES_PROFILE",
        "HERMES_DEBUG",
        "HERMES_FETCH",
        "HERMES_CACHE",
        "HERMES_DASHBOARD_PASSWORD",
    ),
    "HERMES_TERMINAL_SECURITY_MODE",
)
OTHER_PREFIXES = ("HERMES_DASHBOARD_EVENT_", "HERMES_PLUGIN_")

_MAX_QUOTED_CHARS = 40  # the longest value that a message repeats
_WORDS = {"yes": True, "on": True, "no": False, "off": False}


class SettingKey(Struct, frozen=True):
    """One setting: `store.busy_timeout`."""

    path: tuple[str, ...]
    annotation: object
    default: object

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return "HERMES_" + "_".join(self.path).upper()

    @property
    def description(self) -> str:
        return next(
            (meta.description for meta in _metas(self.annotation) if meta.description),
            "",
        )


def about_section(section: type[Struct]) -> str:
    """The purpose of a section."""
    return " ".join((section.__doc__ or "").split())


setting_text = Translator("settings").marked
"""Returns the purpose of a setting or a section in the reader's language."""


def all_keys(
    section: type[Struct] = Settings, path: tuple[str, ...] = ()
) -> Iterator[SettingKey]:
    """Returns every key with a fixed name, in the order of the types."""
    for field in msgspec.structs.fields(section):
        here = (*path, field.encode_name)
        nested = as_section(field.type)
        if nested is not None:
            yield from all_keys(nested, here)
        else:
            default = (
                field.default
                if field.default_factory is msgspec.NODEFAULT
                else field.default_factory()
            )
            yield SettingKey(here, field.type, default)


def find_key(name: str) -> SettingKey:
    """Returns the key called `name`, also in a table (`servers.mine.url`). Raises SettingsError if
    there is none. The name of a table's entry may contain dots: `custom_providers.own.models.gpt-4.1.images`.
    """
    found = _find(tuple(name.split(".")), (), Settings, Settings())
    if found is None:
        raise unknown_key(name)
    if as_section(found.annotation) is not None:
        raise SettingsError(
            t.later("{name} is a section, not a setting.", name=name),
            hint=t.later("Its settings: {below}.", below=", ".join(_below(name))),
        )
    return found


def _find(
    parts: tuple[str, ...], path: tuple[str, ...], annotation: object, default: object
) -> SettingKey | None:
    """Follows `parts` from the type at `path`. For an entry of a table, the shortest name that leads to a setting counts."""
    if not parts:
        return SettingKey(path, annotation, default)
    section, table = as_section(annotation), table_of(annotation)
    for field in msgspec.structs.fields(section) if section else ():
        if field.encode_name == parts[0]:
            value = getattr(default, field.name, None)
            return _find(parts[1:], (*path, parts[0]), field.type, value)
    if table is None:
        return None
    names = ((".".join(parts[:end]), end) for end in range(1, len(parts) + 1))
    entries = (
        _find(parts[end:], (*path, entry), table, None)
        for entry, end in names
        if entry.strip(".")
    )
    return next(
        (
            found
            for found in entries
            if found and (len(parts) == 1 or as_section(found.annotation) is None)
        ),
        None,
    )


def unknown_key(name: str) -> SettingsError:
    """Builds the error for an unknown key, with the nearest known one."""
    near = nearest(name)
    hint = t.later("See all with: hermes config show")
    if near:
        hint = t.later("Did you mean {near}?", near=near)
    return SettingsError(
        t.later("There is no setting called {name}.", name=name), hint=hint
    )


_SAME_WORD = 0.93  # one letter more or less in a long word


def nearest(name: str) -> str | None:
    """Returns the key or section closest to `name`: the same last word in another section first, then by spelling."""
    import difflib

    keys = [key.path for key in all_keys()]
    *_, last_word = words = name.lower().replace("-", "_").split(".")
    last_words = [path[-1] for path in keys]
    likeness = _SAME_WORD if len(words) > 1 else 1.0
    for word in difflib.get_close_matches(last_word, last_words, 1, likeness):
        same_word = [".".join(path) for path in keys if path[-1] == word]
        return max(
            same_word, key=lambda key: difflib.SequenceMatcher(None, key, name).ratio()
        )
    names = _keys_and_sections(keys)
    same_depth = [key for key in names if key.count(".") == len(words) - 1]
    close = difflib.get_close_matches(".".join(words), same_depth, 1, 0.6)
    close = close or difflib.get_close_matches(name, names, 1, 0.6)
    if close:
        return close[0]
    # A misspelt last word in the wrong section.
    near = difflib.get_close_matches(last_word, last_words, 1, 0.75)
    first = {path[-1]: ".".join(path) for path in reversed(keys)}
    return first[near[0]] if near else None


def _keys_and_sections(keys: Sequence[tuple[str, ...]]) -> list[str]:
    prefixes = (path[:depth] for path in keys for depth in range(1, len(path) + 1))
    return list(dict.fromkeys(".".join(prefix) for prefix in prefixes))


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Returns the HERMES_* variables that Hermes does not know."""
    known = {key.variable for key in all_keys()} | set(OTHER_VARIABLES)
    names = (
        name
        for name in environ
        if name.startswith("HERMES_") and not name.startswith(OTHER_PREFIXES)
    )
    return sorted(name for name in names if name not in known)


def nearest_variable(name: str) -> str | None:
    """Returns the variable closest to `name`."""
    import difflib

    known = [
        variable.removeprefix("HERMES_")
        for variable in (*OTHER_VARIABLES, *(key.variable for key in all_keys()))
    ]
    close = difflib.get_close_matches(name.removeprefix("HERMES_"), known, 1, 0.6)
    return f"HERMES_{close[0]}" if close else None


def parse_value(key: SettingKey, text: str, *, quote: bool = True) -> object:
    """Parses a value that a person typed or the environment holds. Raises SettingsError if it is
    invalid.

    The error repeats a short text unless `quote` is off.
    """
    if has_credentials(text):
        raise SettingsError(
            t.later("{name}: {why}.", name=key.name, why=CREDENTIALS),
            hint=t.later(
                "Nothing was changed: {credentials_hint}.",
                credentials_hint=credentials_hint(key.name),
            ),
        )
    base, _ = unwrap(key.annotation)
    try:
        if base is bool and text.strip().lower() in _WORDS:
            return _WORDS[text.strip().lower()]
        if (
            typing.get_origin(base) in {list, dict, tuple, set, frozenset}
            or as_section(base) is not None
        ):
            return msgspec.to_builtins(
                msgspec.convert(
                    parse_yaml(text), type=typing.cast("type", key.annotation)
                )
            )
        plain = (
            text
            if base is str or typing.get_origin(base) is typing.Literal
            else text.strip()
        )
        return msgspec.convert(
            plain, type=typing.cast("type[object]", key.annotation), strict=False
        )
    except YamlTooDeep as error:
        raise SettingsError(
            t.later("{name}: {why}.", name=key.name, why=TOO_DEEP),
            hint=t.later("Remove some of the levels."),
        ) from error
    except ValueError as error:  # the errors that both YAML and msgspec raise
        raise _mistyped(key, text if quote else "") from error


def _mistyped(key: SettingKey, text: str) -> SettingsError:
    """Builds the error: what was expected, what was given (if short and no secret), and an example."""
    is_shown = 0 < len(text) <= _MAX_QUOTED_CHARS and not is_secret_value(text)
    got = t.later(", got {text!r}", text=text) if is_shown else ""
    example = example_of(key.annotation) or json.dumps(msgspec.to_builtins(key.default))
    return SettingsError(
        t.later(
            "{name}: expected {kind}{got}.",
            name=key.name,
            kind=kind(key.annotation),
            got=got,
        ),
        hint=t.later("Such as: {example}", example=example),
    )


def example_of(annotation: object) -> str:
    """Returns a valid example; empty if any text or keys do."""
    base, _ = unwrap(annotation)
    if base is bool:
        return "true"
    if typing.get_origin(base) is typing.Literal:
        return str(typing.get_args(base)[0])
    if any(meta.pattern == AMOUNT for meta in _metas(annotation)):
        return "$2.50"
    if base in {int, float}:
        least = [
            value
            for meta in _metas(annotation)
            for value in (meta.ge, meta.gt)
            if value is not None
        ]
        most = [meta.le for meta in _metas(annotation) if meta.le is not None]
        return f"{min([max([10, *least]), *most]):g}"
    return (
        "[one, two]" if typing.get_origin(base) in {list, tuple, set, frozenset} else ""
    )


def kind(annotation: object) -> Later:
    """Describes the valid values: `a number from 0 to 3600`."""
    words = _kind(annotation)
    return t.later("{kind} or null", kind=words) if unwrap(annotation)[1] else words


def _kind(annotation: object) -> Later:
    base, _ = unwrap(annotation)
    if typing.get_origin(base) is typing.Literal:
        values = ", ".join(str(value) for value in typing.get_args(base))
        return t.later("one of {values}", values=values)
    if as_section(base) is not None or typing.get_origin(base) is dict:
        return t.later("keys below it")
    if typing.get_origin(base) in {list, tuple, set, frozenset}:
        return t.later("a list")
    if any(meta.pattern == AMOUNT for meta in _metas(annotation)):
        return t.later("an amount of money or tokens, or nothing for no cap")
    names = {
        bool: t.later("true or false"),
        int: t.later("a whole number"),
        float: t.later("a number"),
        str: t.later("text"),
    }
    words = names.get(typing.cast("type", base), t.later("a value"))
    return _bounded(words, annotation)


def _bounded(words: Later, annotation: object) -> Later:
    """Adds the limits of a number or text."""
    limits: dict[str, float] = {}
    for meta in _metas(annotation):
        for name in ("ge", "gt", "le", "lt", "min_length", "max_length"):
            value = getattr(meta, name)
            if value is not None:
                limits[name] = value
    if "ge" in limits and "le" in limits:
        low, high = f"{limits['ge']:g}", f"{limits['le']:g}"
        return t.later("{kind} from {low} to {high}", kind=words, low=low, high=high)
    for name, value in limits.items():
        words = _limited(words, name, f"{value:g}")
    return words


def _limited(words: Later, name: str, number: str) -> Later:
    match name:
        case "ge":
            return t.later("{kind} at least {number}", kind=words, number=number)
        case "gt":
            return t.later("{kind} above {number}", kind=words, number=number)
        case "le":
            return t.later("{kind} at most {number}", kind=words, number=number)
        case "lt":
            return t.later("{kind} below {number}", kind=words, number=number)
        case "min_length":
            return t.later(
                "{kind} of at least {number} characters", kind=words, number=number
            )
        case _:
            return t.later(
                "{kind} of at most {number} characters", kind=words, number=number
            )


def unwrap(annotation: object) -> tuple[object, bool]:
    """Returns the type without metadata and `| None`, and whether it allowed None."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) not in {typing.Union, types.UnionType}:
        return annotation, False
    members = [
        member for member in typing.get_args(annotation) if member is not type(None)
    ]
    optional = len(members) < len(typing.get_args(annotation))
    return (unwrap(members[0])[0] if len(members) == 1 else annotation), optional


def as_section(annotation: object) -> type[Struct] | None:
    """Returns the Struct behind an annotation, if it is one."""
    base, _ = unwrap(annotation)
    if isinstance(base, type) and issubclass(base, Struct):
        return base
    return None


def table_of(annotation: object) -> object | None:
    """Returns the type of the values of a `dict[str, ...]`."""
    base, _ = unwrap(annotation)
    return (
        typing.get_args(base)[1]
        if typing.get_origin(base) is dict and typing.get_args(base)
        else None
    )


def _below(name: str) -> list[str]:
    return [key.name for key in all_keys() if key.name.startswith(name + ".")]


def _metas(annotation: object) -> Iterator[Meta]:
    if typing.get_origin(annotation) is typing.Annotated:
        base, *extras = typing.get_args(annotation)
        yield from (extra for extra in extras if isinstance(extra, Meta))
        yield from _metas(base)
    elif typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        for member in typing.get_args(annotation):
            yield from _metas(member)
