"""Finds the browser, and decides its arguments and environment."""

import os
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from hermes.children.helper_programs import find_program, trusted_path
from hermes.errors import ToolFailed

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave",
)
_INSTALL = (
    "The user can install Chromium (Debian: apt install chromium), run `playwright install chromium`,"
    " or set browser.executable."  # not translated
)
_ENVIRONMENT = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
    ),
    *(
        "XDG_RUNTIME_DIR",
        "XDG_SESSION_TYPE",
        "DBUS_SESSION_BUS_ADDRESS",
        "FONTCONFIG_PATH",
        "LD_LIBRARY_PATH",
    ),
)
ARGUMENTS = (
    "--disable-quic",  # it bypasses a proxy
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # only the proxy resolves names
    "--dns-prefetch-disable",
    "--disable-background-networking",
    "--disable-sync",
    "--gaia-url=http://127.0.0.1:1/",  # otherwise it asks Google who is signed in
    "--autofill-server-url=http://127.0.0.1:1/",  # otherwise it tells Google which forms a page has
    "--component-updater=url-source=http://127.0.0.1:1/",  # otherwise it asks Google for updates
)


def find_executable(
    configured: str, environment: Mapping[str, str], bundled: str
) -> str:
    """Returns the configured browser, one on PATH, or playwright's own."""
    if configured:
        path = Path(configured).expanduser()
        if not os.access(path, os.X_OK):
            raise ToolFailed(
                f"browser.executable is {configured!r}, which can't be run.",
                hint=_INSTALL,
            )
        return str(path)
    found = next(
        (path for name in _NAMES if (path := find_program(name, environment))), ""
    )
    if found:
        return found
    if bundled and os.access(bundled, os.X_OK):
        return bundled
    raise ToolFailed("No browser was found.", hint=_INSTALL)


def find_browser(configured: str, environment: Mapping[str, str]) -> str:
    """Returns a browser that could be started, without starting anything; empty if there is none."""
    if PathFinder.find_spec("playwright") is None:
        return ""
    cache = environment.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright"
    fetched = sorted(Path(cache).expanduser().glob("chromium-*/*/chrome"))
    try:
        return find_executable(
            configured, environment, str(fetched[-1]) if fetched else ""
        )
    except ToolFailed:
        return ""


def browser_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of the browser: no keys, no proxy."""
    seen = {
        name: value
        for name, value in environment.items()
        if name in _ENVIRONMENT or name.startswith("LC_")
    }
    return seen | {"PATH": trusted_path(environment)}


def needs_no_sandbox() -> bool:
    """Whether Chromium can't use its own sandbox, which it refuses to do for root."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
