"""What `hermes doctor` says of codex, when it runs the turns: the program, its version, login, settings and sandbox."""

import asyncio

from hermes.codex.binary import find_codex, try_sandbox
from hermes.codex.engine_choice import is_on
from hermes.codex.engine_switch import Standing, SwitchContext, status
from hermes.codex.failures import INSTALL, CodexFailed
from hermes.errors import HermesError
from hermes.settings.load import load
from hermes.surfaces.cli.checks import Finding, Site
from hermes.surfaces.terminal.style import FAIL, OK, WARN


def findings(site: Site) -> list[Finding]:
    """One finding for each part; none when codex is not used, or settings can't be read, which is said elsewhere."""
    try:
        settings = load(site.environ, home=site.home)
    except HermesError:
        return []
    if not is_on(settings.model):
        return []
    place = SwitchContext(home=site.home, settings=settings, environ=site.environ)
    return asyncio.run(_look(place))


async def _look(place: SwitchContext) -> list[Finding]:
    standing = await status(place)
    if not standing.program:
        to_do = f"{INSTALL} Or go back: hermes codex off"
        return [
            Finding(
                "codex",
                FAIL,
                "the codex program was not found, and it is to run your turns",
                to_do,
            )
        ]
    return [
        Finding("codex", OK, standing.program),
        _version(standing),
        _login(standing),
        _settings(standing),
        await _sandbox(place),
    ]


def _version(standing: Standing) -> Finding:
    if standing.warning:
        return Finding(
            "codex",
            WARN,
            standing.warning,
            "npm install -g @openai/codex@latest, or update Hermes",
        )
    return Finding("codex", OK, f"codex {standing.version}")


def _login(standing: Standing) -> Finding:
    if standing.signed_in:
        return Finding("codex", OK, "signed in")
    return Finding(
        "codex",
        WARN,
        "not signed in",
        "Run: codex login (not needed for a provider with its own key)",
    )


def _settings(standing: Standing) -> Finding:
    if standing.complaint:
        return Finding(
            "codex",
            FAIL,
            f"its settings: {standing.complaint}",
            f"Correct {standing.config}",
        )
    if not standing.migrated:
        return Finding(
            "codex",
            WARN,
            f"{standing.config} has no block of Hermes",
            "Run: hermes codex on",
        )
    return Finding("codex", OK, f"settings in {standing.config}, with Hermes' block")


async def _sandbox(place: SwitchContext) -> Finding:
    program = find_codex(place.environ, place.settings.codex.binary)
    try:
        ran = await try_sandbox(program, place.environment()) if program else None
    except CodexFailed as error:
        return Finding("codex", WARN, f"its sandbox can't be tried: {error.message}")
    if ran is None or ran.code:
        said = (ran.err.strip().splitlines() or [""])[-1] if ran else ""
        to_do = "Install bubblewrap and allow user namespaces; until then codex's commands fail or ask."
        return Finding("codex", WARN, f"its sandbox does not work here: {said}", to_do)
    return Finding("codex", OK, "its sandbox works")
