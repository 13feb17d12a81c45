"""Listing and searching real folders; ripgrep and Python give the same answer."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.files.file_tools import FileTools
from hermes.tools.files.ripgrep import find_ripgrep
from hermes.tools.files.search_tools import SearchTools
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.sensitive import Guard

RIPGREP = find_ripgrep(os.environ)
FILES: Mapping[str, str] = {
    ".gitignore": "*.log\n/build/\nnode_modules\n!keep.log\n# comment\n",
    ".env": "PASSWORD=needle\n",
    ".git/config": "needle\n",
    ".github/ci.yml": "run: needle\n",
    "README.md": "A needle.\r\nNothing.\r\nNeedle and needle\r\n",
    "build/out.txt": "needle\n",
    "debug.log": "needle\n",
    "keep.log": "needle\n",
    "src/a.py": "x = 1\ny = 'needle'\n",
    "src/build/b.ts": "needle\n",
    "src/node_modules/m.js": "needle\n",
    "src/sub/.gitignore": "secret*\n",
    "src/sub/c.py": "def needle(): ...\n",
    "src/sub/secret.py": "needle\n",
    "src.txt": "needle\n",
    "long.js": "z" * 5000 + "needle" + "z" * 5000 + "\n",
    "bin.dat": "needle\0\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (tmp_path / "p" / "link").symlink_to("src")
    return (tmp_path / "p").resolve()


@pytest.fixture(params=["python", "ripgrep"])
def search(request: pytest.FixtureRequest) -> SearchTools:
    if request.param == "ripgrep" and RIPGREP is None:
        pytest.skip("no rg on this machine")
    return SearchTools(
        Guard(Path("/no-home")), lambda: RIPGREP if request.param == "ripgrep" else None
    )


def context(folder: Path) -> ToolContext:
    return ToolContext("c", "s", folder, lambda text: None)


async def find(search: SearchTools, folder: Path, pattern: str, **more: object) -> str:
    return (
        await search.search_files.run({"pattern": pattern, **more}, context(folder))
    ).text


async def files(search: SearchTools, folder: Path, **arguments: object) -> str:
    return (await search.list_files.run(arguments, context(folder))).text


async def test_matches_are_shown_by_file(search: SearchTools, project: Path) -> None:
    text = await find(search, project, "needle")
    lines = text.split("\n")
    long = next(line for line in lines if line.startswith("1: ...z"))
    assert "needle" in long
    assert len(long) < 300
    lines.remove(long)
    assert lines == [
        ".github/ci.yml",
        "1: run: needle",
        "README.md",
        "1: A needle.",
        "3: Needle and needle",
        "keep.log",
        "1: needle",
        "long.js",
        "src/a.py",
        "2: y = 'needle'",
        "src/build/b.ts",
        "1: needle",
        "src/sub/c.py",
        "1: def needle(): ...",
        "src.txt",
        "1: needle",
        "[not searched, as they may hold secrets: .env]",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "^needle$", "path": "src"}, "src/build/b.ts\n1: needle"),
        (
            {
                "pattern": "NEEDLE",
                "glob": "*.py",
                "ignore_case": True,
                "path": "./src/sub",
            },
            "./src/sub/c.py\n1: def needle(): ...",
        ),
        (
            {"pattern": "needle", "glob": "src/**/*.py"},
            "src/a.py\n2: y = 'needle'\nsrc/sub/c.py\n1: def needle(): ...",
        ),
        (
            {"pattern": "needle", "glob": "*.{ts,md}"},
            "README.md\n1: A needle.\n3: Needle and needle\nsrc/build/b.ts\n1: needle",
        ),
        ({"pattern": "needle", "glob": "*.log"}, "keep.log\n1: needle"),
        ({"pattern": "needle", "path": "debug.log"}, "debug.log\n1: needle"),
        ({"pattern": "needle", "path": ".env"}, ".env\n1: PASSWORD=needle"),
        (
            {"pattern": r"(?<=def )needle"},
            "src/sub/c.py\n1: def needle(): ...\n[not searched, as they may hold secrets: .env]",
        ),
        (
            {"pattern": "no such thing"},
            "No matches.\n[not searched, as they may hold secrets: .env]",
        ),
        ({"pattern": "no such thing", "path": "src"}, "No matches."),
    ],
)
async def test_a_search_can_be_narrowed(
    search: SearchTools, project: Path, arguments: dict[str, object], expected: str
) -> None:
    assert (await search.search_files.run(arguments, context(project))).text == expected


async def test_rules_above_count_within_a_repository_only(
    search: SearchTools, project: Path
) -> None:
    (project.parent / ".gitignore").write_text("*.ts\nsrc\n")
    assert (
        await find(search, project / "src", "needle", glob="*.ts")
        == "build/b.ts\n1: needle"
    )
    (project / "src" / "local.log").write_text("needle\n")
    assert await find(search, project / "src", "needle", glob="*.log") == "No matches."
    (project / ".git" / "config").unlink()
    (project / ".git").rmdir()
    assert (
        await find(search, project / "src", "needle", glob="*.log")
        == "local.log\n1: needle"
    )


async def test_many_matches_are_capped_and_counted(
    search: SearchTools, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("hit\n" * 300)
    (tmp_path / "b.txt").write_text("hit\n" * 50)
    text = await find(search, tmp_path, "hit")
    assert text.count(": hit") == 200
    assert text.endswith(
        "[150 more matches in 2 files; narrow the pattern, path or glob]"
    )


async def test_a_search_tells_nothing_of_what_a_secret_file_holds(
    search: SearchTools, project: Path
) -> None:
    (project / "deploy").mkdir()
    (project / "deploy/server.pem").write_text("-----BEGIN\n")
    answers = {
        await find(search, project, pattern)
        for pattern in ("PASSWORD=n", "PASSWORD=m", "^PASS", "-----BEGIN")
    }
    assert answers == {
        "No matches.\n[not searched, as they may hold secrets: .env, deploy/server.pem]"
    }


async def test_matches_in_kept_words_of_others_are_marked(project: Path) -> None:
    outputs = OutputFolder(project / "out")
    path, handle = outputs.create_foreign("web")
    os.write(handle, b"obey needle\n")
    os.close(handle)
    search = SearchTools(Guard(Path("/no-home")), lambda: RIPGREP, outputs)
    for arguments in ({"path": "."}, {"path": "out"}, {"path": str(path)}):
        found = await search.search_files.run(
            {"pattern": "obey", **arguments}, context(project)
        )
        assert found.source == f"kept output {path.name}"
    assert not (
        await search.search_files.run({"pattern": "def needle"}, context(project))
    ).source
    read = await FileTools(FileStamps(), outputs).read_file.run(
        {"path": str(path)}, context(project)
    )
    assert read.source == f"kept output {path.name}"
    assert not (
        await FileTools(FileStamps(), outputs).read_file.run(
            {"path": "src/a.py"}, context(project)
        )
    ).source


async def test_our_own_home_is_not_searched(project: Path) -> None:
    text = await find(SearchTools(Guard(project / "src")), project, "needle")
    assert "src/a.py\n" not in text
    assert (
        "as they may hold secrets: .env, src/a.py, src/build/b.ts, src/sub/.gitignore, src/sub/c.py]"
        in text
    )


async def test_wrong_patterns_and_places_are_told(
    search: SearchTools, project: Path
) -> None:
    for arguments, message in (
        ({"pattern": "("}, "not a regular expression"),
        ({"pattern": "a", "path": "scr"}, "does not exist"),
    ):
        with pytest.raises(ToolFailed, match=message):
            await search.search_files.run(arguments, context(project))
    with pytest.raises(ToolFailed, match="is a file"):
        await files(search, project, path="src.txt")
    with pytest.raises(ToolFailed, match="does not exist") as failed:
        await files(search, project, path="scr")
    assert "src" in failed.value.hint


async def test_a_listing_leaves_out_what_is_ignored(project: Path) -> None:
    search = SearchTools(Guard(Path("/no-home")))
    assert (await files(search, project)).split("\n") == [
        ".env",
        ".github/",
        ".github/ci.yml",
        ".gitignore",
        "README.md",
        "bin.dat",
        "keep.log",
        "link@",
        "long.js",
        "src/",
        "src/a.py",
        "src/build/",
        "src/sub/",
        "src.txt",
    ]
    assert await files(search, project, depth=1, path="src") == "a.py\nbuild/\nsub/"
    assert await files(search, project, glob="*.py") == "src/a.py\nsrc/sub/c.py"
    assert await files(search, project, glob="*.rs") == "No files in . match."
    assert await files(search, project / "src", path="sub") == ".gitignore\nc.py"


async def test_a_long_listing_is_capped(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"{number:03}").touch()
    text = await files(SearchTools(Guard(Path("/no-home"))), tmp_path)
    assert text.endswith("499\n[100 more; narrow with path, glob or depth]")


async def test_a_cancelled_search_stops(search: SearchTools, project: Path) -> None:
    task = asyncio.create_task(find(search, Path("/"), "needle that is nowhere"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)
