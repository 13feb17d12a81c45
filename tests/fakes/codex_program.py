"""The real codex program for tests, installed from npm into a cache on first use, and settings for it."""

import os
from functools import partial
from pathlib import Path

from hermes.codex.binary import native
from hermes.testing.fetched import fetched, find_node

OLDEST, NEWEST = "0.130.0", "0.166.0"
"""The versions that Hermes is tested with, from npm: the oldest that it supports, and the newest."""
_CONFIG = """\
model = "gpt-5.5"
model_provider = "fake"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
[analytics]
enabled = false
[features]
plugins = false
[model_providers.fake]
name = "Fake"
base_url = "{url}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def installed_codex(version: str = NEWEST) -> Path:
    """The program of that version. NotFetched says why there is none."""
    folder = fetched(f"codex-{version}", partial(_fetch, version), os.environ)
    return native(folder / "node_modules" / ".bin" / "codex")


def config_for(url: str) -> str:
    """A `config.toml` with which codex asks the model behind `url`, once, and nobody else."""
    return _CONFIG.format(url=url)


def _fetch(version: str, folder: Path) -> None:
    find_node(os.environ).install(f"@openai/codex@{version}", folder, os.environ)
