"""What the page is built on is exactly what was fetched."""

import hashlib
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (
    ROOT / "src/hermes/surfaces/dashboard/static/vendor",
    ROOT / "tests/data/vendor",
)


@pytest.mark.parametrize("folder", FOLDERS, ids=("page", "tests"))
def test_every_file_has_the_hash_of_the_lock(folder: Path) -> None:
    lock = msgspec.json.decode((folder / "vendor.lock.json").read_bytes())
    named = {
        name: value
        for package in lock["packages"]
        for name, value in package["files"].items()
    }
    found = {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "vendor.lock.json"
    }
    assert found == named


@pytest.mark.parametrize("folder", FOLDERS, ids=("page", "tests"))
def test_every_package_has_its_licence_and_hash(folder: Path) -> None:
    lock = msgspec.json.decode((folder / "vendor.lock.json").read_bytes())
    for package in lock["packages"]:
        assert any(name.endswith("/LICENSE") for name in package["files"]), package[
            "name"
        ]
        assert package["integrity"].startswith("sha512-")
