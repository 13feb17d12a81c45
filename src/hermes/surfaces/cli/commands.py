"""The command table. A module is imported only when its command runs.

A command module has `configure(parser: argparse.ArgumentParser) -> None`, which adds its arguments, and
`run(args: argparse.Namespace) -> int`, which does the work, prints, and returns the exit code or raises a HermesError.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """One line of the table."""

    name: str
    module: str
    summary: str
    group: str


CHAT = "hermes.surfaces.tui.chat"  # `hermes` without a question, at a terminal; another surface, so only by name

COMMANDS = (
    Command(
        "setup",
        "hermes.surfaces.cli.setup",
        "connect a model, in under a minute",
        "Models",
    ),
    Command(
        "model",
        "hermes.surfaces.cli.model",
        "list, pick, add and test models",
        "Models",
    ),
    Command(
        "usage",
        "hermes.surfaces.cli.usage",
        "tokens and money, by day and model",
        "Models",
    ),
    Command(
        "sessions",
        "hermes.surfaces.cli.sessions",
        "list, search, show and move your sessions",
        "Sessions",
    ),
    Command(
        "resume",
        "hermes.surfaces.cli.resume",
        "go on with a session, whichever surface it began on",
        "Sessions",
    ),
    Command(
        "import",
        "hermes.surfaces.cli.imports",
        "bring over what another agent has kept",
        "Sessions",
    ),
    Command(
        "memory",
        "hermes.surfaces.cli.memory",
        "what Hermes remembers; show, edit, take back",
        "Learning",
    ),
    Command(
        "skills",
        "hermes.surfaces.cli.skills",
        "what Hermes can do well; install, decide, take back",
        "Learning",
    ),
    Command(
        "dashboard",
        "hermes.surfaces.dashboard.command",
        "Hermes in your browser",
        "Sessions",
    ),
    Command(
        "gateway",
        "hermes.surfaces.gateway.command",
        "Hermes in chat apps, as a service",
        "Sessions",
    ),
    Command(
        "cron",
        "hermes.surfaces.cli.cron",
        "work that is done at certain times",
        "Sessions",
    ),
    Command(
        "events",
        "hermes.surfaces.cli.events",
        "what Hermes does: live, as it was, in numbers",
        "Sessions",
    ),
    Command(
        "api",
        "hermes.surfaces.gateway.api_server.command",
        "Hermes behind OpenAI's API",
        "Sessions",
    ),
    Command(
        "tools",
        "hermes.surfaces.cli.tools",
        "what the model can do, and where",
        "Set-up",
    ),
    Command(
        "mcp",
        "hermes.surfaces.cli.mcp",
        "list, add, test and remove MCP servers",
        "Set-up",
    ),
    Command(
        "codex",
        "hermes.surfaces.cli.codex",
        "let the codex program run your turns, or not",
        "Set-up",
    ),
    Command(
        "plugins",
        "hermes.surfaces.cli.plugins",
        "list, enable and disable plugins",
        "Set-up",
    ),
    Command(
        "hooks", "hermes.surfaces.cli.hooks", "list, trust and test hooks", "Set-up"
    ),
    Command(
        "policy",
        "hermes.surfaces.cli.policy",
        "what may be done without asking",
        "Set-up",
    ),
    Command(
        "config",
        "hermes.surfaces.cli.config",
        "show and change settings and secrets",
        "Set-up",
    ),
    Command(
        "backup",
        "hermes.surfaces.cli.backup",
        "everything of yours in one file",
        "Set-up",
    ),
    Command("restore", "hermes.surfaces.cli.restore", "bring a backup back", "Set-up"),
    Command(
        "doctor",
        "hermes.surfaces.cli.doctor",
        "check this installation and say what to do",
        "Set-up",
    ),
)

EXAMPLES = (
    ('hermes "what is in this folder?"', "one answer"),
    ("git diff | hermes 'review this'", "with something piped in"),
    ("hermes --continue", "go on where you left off"),
    ("hermes doctor", "is everything in order?"),
    ("hermes config set display.color never", "change one setting"),
    ("hermes config set OPENAI_API_KEY", "store a secret; it is asked for"),
)
