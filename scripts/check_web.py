"""Check the dashboard's JavaScript and CSS, or with --fix format them and fix what can be fixed.

Biome formats and lints, TypeScript checks the types in the JSDoc comments. Both are native programs from npm, pinned
with their hashes in `web_tools/package-lock.json` and fetched into the user's cache on first use. Where they can't be
fetched, the check is skipped; with `CI=true` it fails.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from hermes.testing.fetched import NotFetched, fetched, find_node, run

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "scripts" / "web_tools"
LINK = ROOT / ".venv" / "web_tools"
"""The folder in which `tsconfig.json` looks for the type declarations of the page's libraries."""


def fetch_tools() -> Path:
    """Return the folder that npm installed the pinned packages into."""
    lock = (PINS / "package-lock.json").read_bytes()
    name = f"web-tools-{hashlib.sha256(lock).hexdigest()[:12]}"
    folder = fetched(name, _install, os.environ) / "node_modules"
    if not LINK.is_symlink() or LINK.readlink() != folder:
        LINK.unlink(missing_ok=True)
        LINK.symlink_to(folder)
    return folder


def _install(folder: Path) -> None:
    sys.stderr.write("Fetching Biome and TypeScript from npm ...\n")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / name, folder)
    options = ("--ignore-scripts", "--no-audit", "--no-fund")
    retries = ("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
    npm = find_node(os.environ).npm
    run([*npm, "ci", "--prefix", str(folder), *options, *retries], os.environ)


def _program(folder: Path, pattern: str) -> str:
    """Return the native program of a package; npm installs the one for this platform."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise NotFetched(f"npm has no {pattern} for this platform.")
    return str(found[0])


def main() -> int:
    """Run both programs. The exit code is 0 if neither finds a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fix", action="store_true", help="format, and fix what can be fixed"
    )
    fix = parser.parse_args().fix
    try:
        tools = fetch_tools()
        biome = _program(tools, "@biomejs/cli-*/biome")
        tsc = _program(tools, "@typescript/typescript-*/lib/tsc")
    except NotFetched as error:
        sys.stderr.write(f"JavaScript and CSS were not checked: {error}\n")
        return int(os.environ.get("CI") == "true")
    check = [biome, "check", "--error-on-warnings"]
    if fix:
        return subprocess.run([*check, "--write"], cwd=ROOT, check=False).returncode
    commands = (check, [tsc, "--project", "tsconfig.json"])
    codes = [subprocess.run(one, cwd=ROOT, check=False).returncode for one in commands]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
