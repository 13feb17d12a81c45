"""Where helper programs come from while a process works in more and more folders, each test in a process of its own."""

import subprocess
import sys
from pathlib import Path

MANY_FOLDERS = """
import sys, tracemalloc
from pathlib import Path
from hermes.children.helper_programs import add_workspace, find_program

environ = {"PATH": "/usr/bin:/bin"}
found = find_program("sh", environ)
tracemalloc.start()
for number in range(2_000):
    add_workspace(Path(sys.argv[1], f"person-{number}"))
    assert find_program("sh", environ) == found
print(tracemalloc.get_traced_memory()[0])
"""
LATER_FOLDER = """
import sys
from pathlib import Path
from hermes.children.helper_programs import add_workspace, find_program, trusted_path

folder = Path(sys.argv[1])
environ = {"PATH": f"{folder}/tools/bin:/usr/bin:/bin"}
print(find_program("sh", environ), trusted_path(environ))
add_workspace(folder / "other")
add_workspace(folder)
print(find_program("sh", environ), trusted_path(environ))
"""


def printed(code: str, folder: Path) -> str:
    command = [sys.executable, "-I", "-c", code, str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, cwd="/"
    )
    return done.stdout


def test_thousands_of_folders_take_little_memory(tmp_path: Path) -> None:
    assert int(printed(MANY_FOLDERS, tmp_path)) < 2_000_000


def test_a_program_is_no_longer_used_once_commands_can_write_it(tmp_path: Path) -> None:
    program = tmp_path / "tools" / "bin" / "sh"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    before, after = printed(LATER_FOLDER, tmp_path).splitlines()
    assert before == f"{program} {program.parent}:/usr/bin:/bin"
    assert after.split(maxsplit=1)[0] in ("/usr/bin/sh", "/bin/sh")
    assert after.split()[1] == "/usr/bin:/bin"
