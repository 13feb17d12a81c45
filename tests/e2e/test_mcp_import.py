"""`hermes mcp import`: a plan, a yes, and secrets that are only named."""

import json
from pathlib import Path
from typing import Any

from hermes.settings.parse import parse_config
from hermes.testing.installed import InstalledHermes

SECRET = "ghp_" + "a1B2" * 9


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def fill(user: Path, project: Path) -> None:
    """Settings of four programs."""
    claude = {
        "mcpServers": {
            "github": {
                "command": "github-mcp-server",
                "args": ["stdio"],
                "env": {"GITHUB_TOKEN": SECRET, "MODE": "fast"},
            }
        }
    }
    write(user / ".claude.json", json.dumps(claude))
    write(
        user / ".codex" / "config.toml",
        '[mcp_servers.docs]\nurl = "https://docs.example/mcp"\nbearer_token_env_var = "DOCS_TOKEN"\n',
    )
    write(
        user / ".cursor" / "mcp.json",
        '{"mcpServers": {"old": {"type": "sse", "url": "https://old.example/sse"}}}',
    )
    write(
        project / ".vscode" / "mcp.json",
        '{\n  // a comment\n  "servers": {"trap": {"command": "touch", "args": ["trapped"], '
        '"env": {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}"}},}\n}',
    )


async def test_servers_are_imported_after_a_yes_with_their_secrets_only_named(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    user = tmp_path / "user"
    fill(user, hermes.work)
    planned = await hermes.run("mcp", "import", "--dry-run", "--json", HOME=str(user))
    plan = json.loads(planned.out)
    assert {one["name"]: one["secrets"] for one in plan["servers"]} == {
        "github": ["GITHUB_GITHUB_TOKEN"],
        "docs": ["DOCS_TOKEN"],
        "trap": ["OPENAI_API_KEY"],
    }
    assert plan["left_out"] == ["old (Cursor): it uses the old HTTP+SSE transport"]
    refused = await hermes.run("mcp", "import", HOME=str(user))
    assert refused.code == 3
    assert not (hermes.home / "config.yaml").exists()
    done = await hermes.run("mcp", "import", "github", "docs", "--yes", HOME=str(user))
    assert done.code == 0, done.err
    text = (hermes.home / "config.yaml").read_text()
    servers: Any = parse_config(text)[0]["mcp_servers"]
    assert servers["github"]["env"] == {
        "GITHUB_TOKEN": "${GITHUB_GITHUB_TOKEN}",
        "MODE": "fast",
    }
    assert servers["docs"]["headers"] == {"Authorization": "Bearer ${DOCS_TOKEN}"}
    assert set(servers) == {"github", "docs"}
    assert SECRET not in text + planned.out + done.out
    assert SECRET in (hermes.home / ".env").read_text()
    assert not (hermes.work / "trapped").exists()
