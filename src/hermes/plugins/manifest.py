"""Reads `dashboard/manifest.json`, the manifest of a plugin."""

import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from hermes.errors import HermesError, os_reason
from hermes.settings.yaml_read import parse_yaml
from hermes.text.translation import translator

t = translator(__name__)

NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_MAX_MANIFEST_BYTES = 64 * 1024  # bytes
_SDK_ENTRY = "dist/index.js"
_AGENT_MANIFESTS = ("plugin.yaml", "plugin.yml")


class ManifestError(HermesError):
    """A manifest that can't be used."""


class TabPlace(msgspec.Struct, frozen=True):
    """The page of a plugin for the original agent: its address there, and its place in the navigation.

    `position` is `end`, `after:VIEW` or `before:VIEW`. `override` replaces a page of the original dashboard; here, the
    plugin gets its own page beside ours.
    """

    path: str = ""
    position: str = ""
    override: str = ""
    hidden: bool = False


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
    tab: Annotated[
        bool | TabPlace,
        Meta(
            description="Whether it has a page of its own; an object in plugins for the original agent."
        ),
    ] = False
    widget: Annotated[
        bool, Meta(description="Whether its module also draws the icon of that page.")
    ] = False
    entry: Annotated[
        str, Meta(max_length=200, description="Module of its page or widget.")
    ] = ""
    css: Annotated[str, Meta(max_length=200, description="Its style sheet.")] | None = (
        None
    )
    api: (
        Annotated[
            str, Meta(max_length=200, description="Python file with its `router`.")
        ]
        | None
    ) = None
    description: Annotated[str, Meta(max_length=1000)] = ""

    @property
    def uses_sdk(self) -> bool:
        """Whether the page is written for the SDK of the original agent: React and registration globals."""
        return isinstance(self.tab, TabPlace)

    @property
    def position(self) -> str:
        """The place in the navigation; empty for the end."""
        return self.tab.position if isinstance(self.tab, TabPlace) else ""

    @property
    def has_tab(self) -> bool:
        """Whether the plugin has a place in the navigation."""
        if isinstance(self.tab, TabPlace):
            return not self.tab.hidden
        return self.tab


class _AgentManifest(msgspec.Struct, frozen=True):
    """`plugin.yaml`, the manifest of a plugin without a page."""

    name: str
    version: str | int | float = ""
    description: str = ""


def is_plugin(folder: Path) -> bool:
    """Returns whether a folder is a plugin: it has a page, or a manifest for the agent."""
    return (folder / "dashboard").is_dir() or _agent_manifest(folder) is not None


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of the plugin in `folder`. Raises ManifestError, which says what is wrong."""
    if (folder / "dashboard").is_dir():
        return _page_manifest(folder)
    path = _agent_manifest(folder) or folder / _AGENT_MANIFESTS[0]
    try:
        parsed = parse_yaml(_read(path).decode())
        found = msgspec.convert(parsed, _AgentManifest)
    except (ValueError, msgspec.ValidationError) as error:
        raise ManifestError(
            t.later("its {name} can't be used: {error}", name=path.name, error=error)
        ) from error
    if not re.fullmatch(NAME, found.name):
        raise ManifestError(
            t.later("its {name} calls it {found!r}", name=path.name, found=found.name)
        )
    return Manifest(
        found.name, version=str(found.version), description=found.description
    )


def _agent_manifest(folder: Path) -> Path | None:
    paths = (folder / name for name in _AGENT_MANIFESTS)
    return next((path for path in paths if path.is_file()), None)


def _page_manifest(folder: Path) -> Manifest:
    path = folder / "dashboard" / "manifest.json"
    content = _read(path)
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise ManifestError(
            t.later("its manifest can't be used: {error}", error=error)
        ) from error
    return _checked(manifest, folder)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise ManifestError(
            t.later(
                "its manifest can't be read ({os_reason})", os_reason=os_reason(error)
            )
        ) from error
    if len(content) > _MAX_MANIFEST_BYTES:
        raise ManifestError(t.later("its manifest is larger than 64 KiB"))
    return content


def _checked(manifest: Manifest, folder: Path) -> Manifest:
    """Returns the manifest if it matches its folder."""
    if manifest.uses_sdk and not manifest.entry:
        manifest = msgspec.structs.replace(manifest, entry=_SDK_ENTRY)
    # The original agent uses the manifest's name, whatever the folder is called.
    is_named = manifest.uses_sdk or manifest.name == folder.name
    if not is_named or not re.fullmatch(NAME, manifest.name):
        raise ManifestError(
            t.later(
                "its manifest calls it {name!r}, its folder is {folder!r}",
                name=manifest.name,
                folder=folder.name,
            )
        )
    for value in (manifest.entry, manifest.css, manifest.api):
        if value and not _is_inside(folder / "dashboard", value):
            raise ManifestError(
                t.later("{value!r} is not a file in its dashboard folder", value=value)
            )
    return manifest


def _is_inside(folder: Path, name: str) -> bool:
    path = (folder / name).resolve()
    return path.is_relative_to(folder.resolve()) and path.is_file()
