"""Which paths need approval, by rule: what a home hides, what runs later, what holds keys."""

from pathlib import Path

import pytest

from hermes.tools.sandbox.protected_paths import PROTECTED
from hermes.tools.sensitive import Guard, affects_later_runs

USER = Path("/users-that-are-not/me")
CWD = USER / "work"
GUARD = Guard(USER / ".hermes", USER)

WRITES = ".bashrc .local/bin/git bin/ls .config/git/config .vim/plugin/x.vim .anything .anything/deep/x .zshrc.local"
CARRIED = "AGENTS.md CLAUDE.md a/.cargo/config.toml .venv/bin/python node_modules/.bin/eslint .mise.toml mise.toml"
CARRIED += " lefthook.yml .husky/pre-commit .git/config .envrc .vscode/tasks.json .git .mcp.json .zed/settings.json"
CARRIED += " GEMINI.md CLAUDE.local.md .cursorrules .github/copilot-instructions.md .github/instructions/a.instructions.md"
CARRIED += " .agents/skills/x/SKILL.md .hermes.md .claude/commands/x.md"
OPEN = "src/a.py Makefile .github/workflows/ci.yml .gitignore .editorconfig docs/agents.rst bin/tool .venv/lib/x.py"
KEYS = "id_rsa id_rsa.bak id_ed25519_github deploy_key x.pem x.key credentials credentials.yml.enc token token.txt"
KEYS += " auth_token.json rclone.conf wg0.conf terraform.tfvars service-account-x.json .env.local"
PLAIN = "id_rsa.pub src/tokenizer.py src/token.ts design-tokens.json tokens.py .env.example keys.md credentials.py"


@pytest.mark.parametrize("name", WRITES.split())
def test_what_a_home_hides_is_never_written_unasked(name: str) -> None:
    for folder in (USER, CWD):
        assert GUARD.write_reason((USER / name,), folder)
        assert GUARD.protected_reason((USER / name,), folder)


@pytest.mark.parametrize("name", CARRIED.split())
def test_what_steers_later_runs_is_protected(name: str) -> None:
    assert GUARD.protected_reason((CWD / name,), CWD)


@pytest.mark.parametrize("name", PROTECTED)
def test_what_a_sandbox_keeps_affects_later_runs_for_file_tools_too(name: str) -> None:
    assert affects_later_runs(CWD / name) or affects_later_runs(CWD / name / "x")


@pytest.mark.parametrize(
    "path",
    [
        "/var/spool/cron/crontabs/root",
        "/var/spool/cron/me",
        "/var/spool/at/a1",
        "/etc/cron.d/x",
        "/run/systemd/system/x",
    ],
)
def test_what_the_system_runs_later_is_never_written_unasked(path: str) -> None:
    assert GUARD.write_reason((Path(path),), Path("/"))
    assert GUARD.protected_reason((Path(path),), Path("/"))


@pytest.mark.parametrize("name", OPEN.split())
def test_the_rest_of_a_project_is_not(name: str) -> None:
    assert GUARD.write_reason((CWD / name,), CWD) == ""


@pytest.mark.parametrize("name", KEYS.split())
def test_keys_are_known_by_their_names(name: str) -> None:
    assert GUARD.secret((CWD / name,), CWD)


@pytest.mark.parametrize("name", PLAIN.split())
def test_other_names_are_no_keys(name: str) -> None:
    assert GUARD.secret((CWD / name,), CWD) == ""


@pytest.mark.parametrize(
    "path",
    [
        "/run/secrets/x",
        "/var/run/secrets/a/token",
        "/etc/ssl/private/x",
        "/etc/wireguard/y",
    ],
)
def test_places_of_secrets(path: str) -> None:
    assert GUARD.secret((Path(path),), CWD)


def test_reading_what_a_home_hides_is_asked_about_unless_it_is_code_or_the_work_itself() -> (
    None
):
    assert GUARD.secret((USER / ".config" / "doctl" / "config.yaml",), CWD)
    assert GUARD.secret((USER / ".viminfo",), USER)
    assert GUARD.secret((USER / ".cargo" / "registry" / "src" / "a.rs",), CWD) == ""
    assert GUARD.secret((USER / ".hermes" / "skills" / "a" / "SKILL.md",), CWD) == ""
    dotfiles = USER / ".dotfiles"
    assert GUARD.secret((dotfiles / "x",), dotfiles) == ""
    assert GUARD.write_reason((dotfiles / "x",), dotfiles) == ""
    assert GUARD.write_reason((USER / ".other" / "x",), dotfiles)


def test_without_a_home_only_names_decide() -> None:
    assert Guard(USER / ".hermes").secret((USER / ".viminfo",), CWD) == ""
