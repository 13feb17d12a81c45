"""Reads decoded JSON, YAML and TOML whose shape nobody has promised: settings of other programs, replies of servers,
arguments of a model.

A value of another type than the caller needs counts as missing.
"""

from typing import Any, TypeAlias

UntypedObject: TypeAlias = dict[str, Any]

_MAX_NUMBER = 2**63 - 1
"""The largest that the database, and most other languages, can hold."""
_MAX_DIGITS = len(str(_MAX_NUMBER))


def object_of(value: object) -> UntypedObject:
    """Returns an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def object_in(value: object, name: str) -> UntypedObject:
    """Returns the object under a name of another object; an empty one if there is none."""
    return object_of(object_of(value).get(name))


def list_of(value: object) -> list[Any]:
    """Returns a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def list_in(value: object, name: str) -> list[Any]:
    """Returns the list under a name of an object; an empty one if there is none."""
    return list_of(object_of(value).get(name))


def objects_of(value: object) -> list[UntypedObject]:
    """Returns the objects of a list, without its other items."""
    return [item for item in list_of(value) if isinstance(item, dict)]


def objects_in(value: object, name: str) -> list[UntypedObject]:
    """Returns the objects of the list under a name of an object."""
    return objects_of(object_of(value).get(name))


def text_of(value: object) -> str:
    """Returns a string; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def text_in(value: object, name: str) -> str:
    """Returns the string under a name of an object; an empty one if there is none."""
    return text_of(object_of(value).get(name))


def texts_of(value: object) -> list[str]:
    """Returns the strings of a list, without its other items."""
    return [item for item in list_of(value) if isinstance(item, str)]


def number_of(value: object) -> int:
    """Returns an integer; 0 for anything else."""
    return value if isinstance(value, int) else 0


def number_in_text(text: str) -> int | None:
    """Returns the number that a text of nothing but digits stands for; None for another text, or more than 64 bits."""
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        return None
    number = int(text)
    return number if number <= _MAX_NUMBER else None


def real_of(value: object) -> float:
    """Returns a number as a float; 0 for anything else."""
    return float(value) if isinstance(value, int | float) else 0.0
