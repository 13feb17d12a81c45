"""Several processes, and processes that die, changing one config.yaml."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.settings import Home, load

SET_OFTEN = """
import sys
from pathlib import Path
from hermes.settings.edit import set_value, set_secret
path, key, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
for number in range(1, 51):
    set_value(path, key, number)
    set_secret(path.with_name(".env"), name, str(number))
    print(number, flush=True)
"""
SET_FOREVER = """
import sys
from pathlib import Path
from hermes.settings.edit import set_value
print("ready", flush=True)
while True:
    set_value(Path(sys.argv[1]), "budget.max_steps", 2)
    set_value(Path(sys.argv[1]), "budget.max_steps", 1)
"""
COMMENTED = "# mine\nbudget:\n  max_steps: 1  # shallow\n" + "".join(
    f"# line {number}\n" for number in range(500)
)


def test_two_processes_setting_different_keys_lose_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config.write_text("# mine\n")
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", SET_OFTEN, str(home.config), key, name],
            stdout=subprocess.PIPE,
        )
        for key, name in (
            ("budget.max_steps", "A_TOKEN"),
            ("store.busy_timeout", "B_TOKEN"),
        )
    ]
    for process in pair:
        process.communicate(timeout=100)
    assert [process.returncode for process in pair] == [0, 0]
    settings = load({}, home=home)
    assert (settings.budget.max_steps, settings.store.busy_timeout) == (50, 50)
    assert home.config.read_text().startswith("# mine\n")
    assert sorted(home.env_file.read_text().splitlines()) == [
        "A_TOKEN=50",
        "B_TOKEN=50",
    ]


@pytest.mark.parametrize("delay", range(12))
def test_a_process_killed_while_setting_leaves_the_old_or_the_new_file(
    tmp_path: Path, delay: int
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(COMMENTED)
    process = subprocess.Popen(
        [sys.executable, "-c", SET_FOREVER, str(config)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    versions = {COMMENTED, COMMENTED.replace("max_steps: 1", "max_steps: 2")}
    for _ in range(
        delay * 400
    ):  # a different moment each time, and a reader that must never see half a file
        assert config.read_text() in versions
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    process.stdout.close()
    assert config.read_text() in versions
