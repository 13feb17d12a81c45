"""Build the documentation as a site: docs/, CONTRIBUTING.md and CHANGELOG.md become pages in dist/site.

Fails on a broken link, on a link to a missing heading, and on a page that the navigation leaves out.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FROM_THE_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
_LINK_UP = re.compile(r"\]\((?P<up>(?:\.\./)*)\.\./(?P<file>[A-Z]+\.md)")
_LINK_TO_SOURCE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+src/[^)]*\)")


def main() -> int:
    """Build into the folder named on the command line, or into dist/site."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "site"
    with tempfile.TemporaryDirectory(prefix="hermes-site-") as folder:
        work = Path(folder)
        write_pages(work / "pages")
        shutil.copy(DOCS / "zensical.toml", work)
        if missing := pages_without_entry(work):
            sys.stderr.write(
                f"Not in the navigation of docs/zensical.toml: {', '.join(missing)}\n"
            )
            return 1
        program = Path(sysconfig.get_path("scripts"), "zensical")
        code = subprocess.run(
            [program, "build", "--strict"], cwd=work, check=False
        ).returncode
        if code == 0:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(work / "site", target)
            write_search_script(target)
    return code


def write_search_script(site: Path) -> None:
    """Write the search index as a script too, because pages opened from disk can't fetch JSON."""
    index = (site / "search.json").read_text("utf-8")
    (site / "search.js").write_text(f"var __index = {index};\n", "utf-8")


def write_pages(folder: Path) -> None:
    """Copy the pages, with links that work in the site."""
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.toml", "*.json"))
    for source, name in FROM_THE_ROOT.items():
        text = (ROOT / source).read_text()
        (folder / name).write_text(text.replace("](docs/", "]("))
    for page in folder.rglob("*.md"):
        text = _LINK_UP.sub(_own_page, page.read_text())
        page.write_text(_LINK_TO_SOURCE.sub(r"\1", text))


def _own_page(link: re.Match[str]) -> str:
    return f"]({link['up']}{FROM_THE_ROOT.get(link['file'], link['file'])}"


def pages_without_entry(work: Path) -> list[str]:
    """Return the pages that the navigation does not list."""
    entries = str(tomllib.loads((work / "zensical.toml").read_text())["project"]["nav"])
    pages = work / "pages"
    names = sorted(str(page.relative_to(pages)) for page in pages.rglob("*.md"))
    return [name for name in names if f"'{name}'" not in entries]


if __name__ == "__main__":
    sys.exit(main())
