"""Checks of `hermes doctor`: the model, codex, hooks, webhooks and speech. No model is called and no hook is run."""

import asyncio
from collections.abc import Iterator

from hermes.codex.binary import find_codex, try_sandbox
from hermes.codex.engine_choice import is_on
from hermes.codex.engine_switch import CodexStatus, SwitchContext, status
from hermes.codex.failures import INSTALL, CodexFailed
from hermes.commands.doctor_checks import Finding, Site
from hermes.commands.views import FAIL, OK, WARN
from hermes.errors import HermesError, translated
from hermes.settings import Secrets, Settings
from hermes.settings.load import load, load_secrets
from hermes.text.translation import translator

t = translator(__name__)


def check_model(site: Site) -> list[Finding]:
    """Which model answers, and whether it can be used. No model is called; the user's own server is asked for the size
    of its context.

    Nothing if the settings can't be read, which another check reports.
    """
    from hermes.commands.models import current_model

    try:
        settings, secrets = (
            load(site.environ, home=site.home),
            load_secrets(site.environ, home=site.home),
        )
    except HermesError:
        return []
    try:
        answers = current_model(settings, secrets)
    except HermesError as error:
        return [
            Finding(
                "model",
                WARN,
                error.message,
                error.hint or t("Choose one: hermes model pick"),
            )
        ]
    name = f"{answers.provider} {answers.model}".rstrip()
    if answers.provider == "embedded" and not answers.key_set:
        to_do = t(
            "Hermes offers the download when you first ask something. To start it now: hermes model add {model}",
            model=answers.model,
        )
        return [
            Finding(
                "model",
                WARN,
                t("{name} is selected, but not downloaded yet", name=name),
                to_do,
            )
        ]
    if answers.sign_in and not answers.key and not answers.signed_in:
        to_do = t("Sign in with: hermes auth add {sign_in}", sign_in=answers.sign_in)
        return [
            Finding(
                "model",
                WARN,
                t("{name} is selected, but not signed in", name=name),
                to_do,
            )
        ]
    if answers.key and not answers.key_set and not answers.signed_in:
        to_do = t("Store it with: hermes config set {key}", key=answers.key)
        return [
            Finding(
                "model",
                WARN,
                t(
                    "{name} is selected, but {key} is not set",
                    name=name,
                    key=answers.key,
                ),
                to_do,
            )
        ]
    found = [
        Finding(
            "model",
            OK,
            t("{name} is selected ({ready})", name=name, ready=answers.ready),
        )
    ]
    return found + _context_findings(settings, secrets)


def _context_findings(settings: Settings, secrets: Secrets) -> list[Finding]:
    """Whether the user's own server gives the model too small a context."""
    from hermes.app.connections import small_context_at
    from hermes.providers.routing import first_route

    try:
        route = first_route(settings, secrets)
        facts = asyncio.run(small_context_at(route, secrets))
    except HermesError:
        return []
    if facts is None:
        return []
    return [Finding("model", WARN, facts.warning(), facts.advice())]


def check_speech(site: Site) -> list[Finding]:
    """What recognizes speech and what speaks. Nothing if neither is set up, or the settings can't be read."""
    from hermes.commands.voice import sense_health
    from hermes.media.speech_deps import SpeechDeps

    try:
        media = load(site.environ, home=site.home).media
        secrets = load_secrets(site.environ, home=site.home)
    except HermesError:
        return []
    found: list[Finding] = []
    senses = sense_health(SpeechDeps(media, secrets, site.home, site.environ))
    for one, wanted in zip(senses, (media.speech_in, media.speech_out), strict=True):
        if one.status == OK:
            found.append(Finding(one.sense, OK, one.text))
        elif wanted == "auto":
            found.append(
                Finding(one.sense, OK, t("not set up (optional): hermes voice"))
            )
        elif wanted != "off":
            found.append(Finding(one.sense, WARN, one.text, one.to_do))
        else:
            found.append(Finding(one.sense, OK, t("off")))
    return found


def check_codex(site: Site) -> list[Finding]:
    """One finding for each part; none when codex is not used, or settings can't be read, which another check reports."""
    try:
        settings = load(site.environ, home=site.home)
    except HermesError:
        return []
    if not is_on(settings.model):
        return []
    switch = SwitchContext(home=site.home, settings=settings, environ=site.environ)
    return asyncio.run(_check_codex(switch))


async def _check_codex(switch: SwitchContext) -> list[Finding]:
    standing = await status(switch)
    if not standing.program:
        to_do = t(
            "{install} Or switch back to Hermes: hermes codex off", install=INSTALL
        )
        return [
            Finding(
                "codex",
                FAIL,
                t("the codex program was not found, but it is set to run your turns"),
                to_do,
            )
        ]
    return [
        Finding("codex", OK, standing.program),
        _version(standing),
        _login(standing),
        _settings(standing),
        await _sandbox(switch),
    ]


def _version(standing: CodexStatus) -> Finding:
    if standing.warning:
        return Finding(
            "codex",
            WARN,
            standing.warning,
            t("npm install -g @openai/codex@latest, or update Hermes"),
        )
    return Finding("codex", OK, t("codex {version}", version=standing.version))


def _login(standing: CodexStatus) -> Finding:
    if standing.signed_in:
        return Finding("codex", OK, t("signed in"))
    return Finding(
        "codex",
        WARN,
        t("not signed in"),
        t("Run: codex login (not needed for a provider with its own key)"),
    )


def _settings(standing: CodexStatus) -> Finding:
    if standing.complaint:
        return Finding(
            "codex",
            FAIL,
            t("its settings: {complaint}", complaint=standing.complaint),
            t("Correct {config}", config=standing.config),
        )
    if not standing.migrated:
        return Finding(
            "codex",
            WARN,
            t("{config} has no Hermes block", config=standing.config),
            t("Run: hermes codex on"),
        )
    return Finding(
        "codex",
        OK,
        t("settings in {config}, with Hermes' block", config=standing.config),
    )


async def _sandbox(switch: SwitchContext) -> Finding:
    program = find_codex(switch.environ, switch.settings.codex.binary)
    try:
        ran = await try_sandbox(program, switch.environment()) if program else None
    except CodexFailed as error:
        return Finding(
            "codex",
            WARN,
            t(
                "its sandbox can't be tested: {message}",
                message=translated(error.words),
            ),
        )
    if ran is None or ran.code:
        said = (ran.err.strip().splitlines() or [""])[-1] if ran else ""
        to_do = t(
            "Install bubblewrap and allow user namespaces; until then codex's commands fail or ask."
        )
        return Finding(
            "codex", WARN, t("its sandbox does not work here: {said}", said=said), to_do
        )
    return Finding("codex", OK, t("its sandbox works"))


def check_hooks(site: Site) -> Iterator[Finding]:
    """Hooks that don't run, and those that do."""
    home = site.home
    if not home.hooks.is_dir():
        return
    from hermes.plugins.hooks import Hooks

    try:
        found = Hooks(home).every()
    except HermesError as error:
        yield Finding(
            "hooks",
            FAIL,
            t("no hooks run: {message}", message=translated(error.words)),
            error.hint,
        )
        return
    for hook in found:
        match hook.state:
            case "broken":
                yield Finding(
                    "hooks",
                    WARN,
                    t(
                        "{name} can't be used: {problem}",
                        name=hook.name,
                        problem=hook.problem,
                    ),
                    t("Correct {folder}", folder=hook.folder),
                )
            case "changed":
                what = t(
                    "{name} has changed since you trusted it, and does not run",
                    name=hook.name,
                )
                yield Finding(
                    "hooks",
                    WARN,
                    what,
                    t("Look at it, then: hermes hooks trust {name}", name=hook.name),
                )
            case "off":
                yield Finding(
                    "hooks",
                    OK,
                    t("{name} is new, and off until you trust it", name=hook.name),
                )
            case "trusted":
                yield Finding("hooks", OK, t("{name} is trusted", name=hook.name))


def check_webhooks(site: Site) -> Iterator[Finding]:
    """Webhooks without a key."""
    try:
        webhooks, secrets = (
            load(site.environ, home=site.home).webhooks,
            load_secrets(site.environ, home=site.home),
        )
    except HermesError:
        return  # said elsewhere
    for name, webhook in webhooks.items():
        if secrets.get(webhook.secret):
            yield Finding(
                "webhooks",
                OK,
                t("{name} is signed with {secret}", name=name, secret=webhook.secret),
            )
        else:
            what = t(
                "{name} is off: {secret} is not set, and without it nothing is sent",
                name=name,
                secret=webhook.secret,
            )
            yield Finding(
                "webhooks",
                FAIL,
                what,
                t("Store it with: hermes config set {secret}", secret=webhook.secret),
            )
