"""The library of a database is imported by that database's own package, and nowhere else."""

import re
from pathlib import Path

import pytest

import hermes

SOURCE = Path(hermes.__file__).parent
CHECKS_THE_LIBRARY_ITSELF = "commands/doctor_checks.py"


@pytest.mark.parametrize(
    ("library", "package"), [("apsw", "store/sqlite"), ("asyncpg", "store/postgres")]
)
def test_the_library_of_a_database_stays_in_its_package(
    library: str, package: str
) -> None:
    importing = re.compile(rf"^\s*(?:import|from) {library}\b", re.MULTILINE)
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if importing.search(path.read_text())
    }
    assert users
    strangers = {user for user in users if not user.startswith(f"{package}/")}
    assert strangers <= {CHECKS_THE_LIBRARY_ITSELF}
