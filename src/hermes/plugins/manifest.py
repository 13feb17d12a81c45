"""Reads `dashboard/manifest.json`, the manifest of a plugin."""

import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from hermes.errors import HermesError, os_reason

NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_MAX_MANIFEST_BYTES = 64 * 1024  # bytes


class ManifestError(HermesError):
    """A manifest that can't be used."""


class Manifest(msgspec.Struct, frozen=True):
    """A plugin's manifest. Paths are relative to its `dashboard` folder."""

    name: Annotated[
        str,
        Meta(
            description="The same as its folder's name: lower-case letters, digits, - and _."
        ),
    ]
    label: Annotated[str, Meta(max_length=80, description="What people see.")] = ""
    version: Annotated[str, Meta(max_length=40)] = ""
    icon: Annotated[
        str,
        Meta(max_length=200, description="A character, or a picture in its folder."),
    ] = ""
    tab: Annotated[bool, Meta(description="Whether it has a page of its own.")] = False
    widget: Annotated[
        bool, Meta(description="Whether its module also draws the icon of that page.")
    ] = False
    entry: Annotated[
        str, Meta(max_length=200, description="Module of its page or widget.")
    ] = ""
    css: Annotated[str, Meta(max_length=200, description="Its style sheet.")] = ""
    api: Annotated[
        str, Meta(max_length=200, description="Python file with its `router`.")
    ] = ""
    description: Annotated[str, Meta(max_length=1000)] = ""


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of the plugin in `folder`. Raises ManifestError with what is wrong."""
    path = folder / "dashboard" / "manifest.json"
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise ManifestError(
            f"its manifest can't be read ({os_reason(error)})"
        ) from error
    if len(content) > _MAX_MANIFEST_BYTES:
        raise ManifestError("its manifest is larger than 64 KiB")
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise ManifestError(f"its manifest can't be used: {error}") from error
    if manifest.name != folder.name or not re.fullmatch(NAME, manifest.name):
        raise ManifestError(
            f"its manifest calls it {manifest.name!r}, its folder is {folder.name!r}"
        )
    for value in (manifest.entry, manifest.css, manifest.api):
        if value and not _is_inside(folder / "dashboard", value):
            raise ManifestError(f"{value!r} is not a file in its dashboard folder")
    return manifest


def _is_inside(folder: Path, name: str) -> bool:
    path = (folder / name).resolve()
    return path.is_relative_to(folder.resolve()) and path.is_file()
