"""Makes the compact protocol schema that the tests check recordings and our own messages against.

`python scripts/codex_schema.py CODEX OUT`: asks the codex program for its schema, keeps the three unions (our requests,
its notifications, its requests), drops descriptions, and writes one small JSON file.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SENT = (
    *(
        "initialize",
        "account/read",
        "thread/start",
        "thread/resume",
        "thread/inject_items",
        "thread/loaded/list",
    ),
    *("thread/backgroundTerminals/clean", "turn/start", "turn/steer", "turn/interrupt"),
    *("plugin/installed", "plugin/list"),
)
_WORDS = ("description", "title", "$schema", "examples", "default", "format")


def main(program: str, out: str) -> None:
    """Writes the file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            program,
            "app-server",
            "generate-json-schema",
            "--out",
            folder,
            "--experimental",
        ]
        subprocess.run(command, check=True, capture_output=True)
        unions = {
            name: json.loads((Path(folder) / f"{name}.json").read_text())
            for name in _UNIONS
        }
    made = {
        name: compact(schema, SENT if name == "ClientRequest" else None)
        for name, schema in unions.items()
    }
    Path(out).write_text(json.dumps(made, separators=(",", ":"), sort_keys=True) + "\n")


_UNIONS = ("ClientRequest", "ServerNotification", "ServerRequest")


def compact(schema: dict[str, Any], methods: tuple[str, ...] | None) -> dict[str, Any]:
    """Reduce a union to these methods, and to the definitions that they need."""
    wanted = [
        one
        for one in schema["oneOf"]
        if methods is None or one["properties"]["method"]["enum"][0] in methods
    ]
    definitions = schema.get("definitions", {})
    kept: dict[str, Any] = {}
    waiting: list[Any] = [wanted]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in kept:
                kept[name] = definitions[name]
                waiting.append(definitions[name])
    return {"definitions": _plain(kept, names=True), "oneOf": _plain(wanted)}


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = (
            {value["$ref"].rpartition("/")[2]}
            if isinstance(value.get("$ref"), str)
            else set()
        )
        return own.union(*(_references(inner) for inner in value.values()))
    return (
        set().union(*(_references(inner) for inner in value))
        if isinstance(value, list)
        else set()
    )


def _plain(value: Any, *, names: bool = False) -> Any:
    """Drop titles and descriptions. The keys of `properties` and `definitions` are names, so they stay."""
    if isinstance(value, dict):
        kept = {
            key: inner for key, inner in value.items() if names or key not in _WORDS
        }
        return {
            key: _plain(inner, names=not names and key == "properties")
            for key, inner in kept.items()
        }
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
