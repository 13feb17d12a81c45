"""Hints about optional parts name what works for how this copy was installed, and never another product."""

import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hermes
from hermes.installation import DISTRIBUTION, reinstall_command
from hermes.text.install_words import install_hint

SOURCE = Path(hermes.__file__).parent
CHECKOUT = Path(__file__).parents[2]
ASK = "from hermes.installation import install_command; print(install_command('web'), end='')"


class Copy:
    """A copy of Hermes in an environment of its own, as an installer would leave it."""

    def __init__(self, folder: Path, *, pip: bool = True) -> None:
        self.folder = folder / "hermes-companion-mine"
        command = [sys.executable, "-m", "venv", "--without-pip", str(self.folder)]
        subprocess.run(command, check=True, timeout=60)
        self.python = self.folder / "bin" / "python"
        self.packages = next((self.folder / "lib").iterdir()) / "site-packages"
        package = self.packages / "hermes"
        package.mkdir()
        shutil.copy(SOURCE / "installation.py", package)
        (package / "__init__.py").touch()
        if pip:
            (self.packages / "pip.py").touch()

    def noted(self, direct_url: str = "") -> "Copy":
        """With what an installer writes down."""
        info = self.packages / "hermes_companion-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 0.1.0\n"
        )
        if direct_url:
            (info / "direct_url.json").write_text(direct_url)
        return self

    def is_from_index(self) -> bool:
        """Whether it takes itself for one that an index delivered."""
        code = "from hermes.installation import is_from_index; print(is_from_index())"
        command = [str(self.python), "-I", "-c", code]
        return subprocess.check_output(command, text=True, timeout=60) == "True\n"

    def install_command(self) -> list[str]:
        command = [str(self.python), "-I", "-c", ASK]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=60
        )
        return shlex.split(done.stdout)


def test_an_installed_copy_is_completed_by_its_own_pip_and_stays_the_same_version(
    tmp_path: Path,
) -> None:
    copy = Copy(tmp_path).noted()
    assert copy.install_command() == [
        str(copy.python),
        "-m",
        "pip",
        "install",
        "hermes-companion[web]==0.1.0",
    ]


def test_an_environment_without_pip_is_completed_by_uv(tmp_path: Path) -> None:
    copy = Copy(tmp_path, pip=False).noted()
    python = str(copy.python)
    assert copy.install_command() == [
        "uv",
        "pip",
        "install",
        "--python",
        python,
        "hermes-companion[web]==0.1.0",
    ]


def test_only_a_copy_from_an_index_is_looked_up_there_again(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    assert not copy.is_from_index()
    copy.noted()
    assert copy.is_from_index()
    wheel = '{"url": "file:///x/hermes_companion-0.1.0-py3-none-any.whl"}'
    (copy.packages / "hermes_companion-0.1.0.dist-info/direct_url.json").write_text(wheel)  # fmt: skip
    assert not copy.is_from_index()


def test_a_copy_of_pipx_is_completed_by_pipx(tmp_path: Path) -> None:
    copy = Copy(tmp_path).noted()
    (copy.folder / "pipx_metadata.json").touch()
    assert copy.install_command() == [
        "pipx",
        "runpip",
        copy.folder.name,
        "install",
        "hermes-companion[web]==0.1.0",
    ]


def test_an_editable_copy_is_completed_from_its_folder(tmp_path: Path) -> None:
    checkout = tmp_path / "a folder"
    checkout.mkdir()
    (checkout / "pyproject.toml").write_text(f'[project]\nname = "{DISTRIBUTION}"\n')
    noted = (
        f'{{"url": "file://{tmp_path}/a%20folder", "dir_info": {{"editable": true}}}}'
    )
    copy = Copy(tmp_path).noted(noted)
    assert copy.install_command() == [
        str(copy.python),
        "-m",
        "pip",
        "install",
        "-e",
        f"{checkout}[web]",
    ]


def test_a_copy_that_nobody_installed_gets_no_command_that_could_fetch_something_else(
    tmp_path: Path,
) -> None:
    assert Copy(tmp_path).install_command() == []


def test_this_checkout_is_completed_from_its_folder() -> None:
    wanted = shlex.join(
        (sys.executable, "-m", "pip", "install", "-e", f"{CHECKOUT}[browser]")
    )
    assert str(install_hint("browser")) == f"Install it with: {wanted}"
    assert reinstall_command("apsw").startswith(
        f"{shlex.quote(sys.executable)} -m pip install "
    )


def test_the_name_is_ours_everywhere() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    pages = [
        CHECKOUT / "README.md",
        CHECKOUT / "CONTRIBUTING.md",
        CHECKOUT / "Makefile",
    ]
    files = [*pages, *(CHECKOUT / "docs").rglob("*.md"), *SOURCE.rglob("*.py")]
    taken = "hermes-" + "agent"
    assert [str(file) for file in files if taken in file.read_text()] == []
    hints = [
        str(file)
        for file in SOURCE.rglob("*.py")
        if "pip install '" in file.read_text()
    ]
    assert hints == [], "install_hint says how"


@pytest.mark.parametrize(
    "extra",
    ["web", "mcp", "local", "images", "browser", "otel", "discord", "slack", "matrix"],
)
def test_every_part_that_a_hint_names_exists(extra: str) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
