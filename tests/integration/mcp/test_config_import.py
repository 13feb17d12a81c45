"""Servers in the settings of other programs, as those programs write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.mcp.config_import import FoundServer, find_servers


def found(folder: Path, name: str, content: str) -> FoundServer:
    file = folder / name
    file.write_text(content)
    (server,) = find_servers("it", file, folder)
    return server


def in_json(folder: Path, **entry: Any) -> FoundServer:
    return found(folder, "mcp.json", json.dumps({"servers": {"one": entry}}))


def test_codexs_variables_headers_and_choice_of_tools_come_over(tmp_path: Path) -> None:
    local = found(
        tmp_path,
        "config.toml",
        '[mcp_servers.one]\ncommand = "serve"\nenv_vars = ["LOCAL_TOKEN", {name = "OTHER_KEY"}]\n'
        'enabled_tools = ["read", "list"]\ndisabled_tools = ["list"]\n'
        "startup_timeout_sec = 20\ntool_timeout_sec = 90\n",
    )
    assert local.values == {
        "command": "serve",
        "env": {"LOCAL_TOKEN": "${LOCAL_TOKEN}", "OTHER_KEY": "${OTHER_KEY}"},
        "tools": {"include": ["read", "list"], "exclude": ["list"]},
        "connect_timeout": 20,
        "timeout": 90,
    }
    remote = found(
        tmp_path,
        "config.toml",
        '[mcp_servers.one]\nurl = "https://docs.example/mcp"\n'
        'http_headers = {"X-Region" = "eu"}\nenv_http_headers = {"X-Key" = "DOCS_KEY"}\n',
    )
    assert remote.values["headers"] == {"X-Region": "eu", "X-Key": "${DOCS_KEY}"}
    assert remote.problem == ""


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://x.example", "headers": {"Authorization": "Bearer ${input:pat}"}},
        {"command": "serve", "env": {"TOKEN": "${input:pat}"}},
        {"command": "serve", "args": ["${workspaceFolder}/a"]},
        {"command": "${userHome}/serve"},
        {"command": "serve", "cwd": "${workspaceFolder}"},
    ],
)  # fmt: skip
def test_what_only_the_other_program_knows_is_left_out(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    server = in_json(tmp_path, **entry)
    assert server.problem == "it refers to a value that only its program knows"


def test_a_file_of_variables_is_named_and_not_lost(tmp_path: Path) -> None:
    server = in_json(tmp_path, command="serve", envFile="${workspaceFolder}/.env")
    assert server.problem == "it takes variables from a file, which is not read"
