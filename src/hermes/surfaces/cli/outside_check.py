"""What `hermes doctor` says of what leads out of Hermes: hooks that don't run, and webhooks without a key."""

from collections.abc import Iterator

from hermes.errors import HermesError
from hermes.settings import Home
from hermes.settings.load import load, load_secrets
from hermes.surfaces.cli.checks import Finding, Site
from hermes.surfaces.terminal.style import FAIL, OK, WARN


def findings(site: Site) -> list[Finding]:
    """None where there are neither hooks nor webhooks."""
    return [*_hooks(site.home), *_webhooks(site)]


def _hooks(home: Home) -> Iterator[Finding]:
    if not home.hooks.is_dir():
        return
    from hermes.plugins.hooks import Hooks

    try:
        found = Hooks(home).every()
    except HermesError as error:
        yield Finding("hooks", FAIL, f"no hook runs: {error.message}", error.hint)
        return
    for hook in found:
        match hook.state:
            case "broken":
                yield Finding(
                    "hooks",
                    WARN,
                    f"{hook.name} can't be used: {hook.problem}",
                    f"Correct {hook.folder}",
                )
            case "changed":
                what = f"{hook.name} has changed since you trusted it, and does not run"
                yield Finding(
                    "hooks",
                    WARN,
                    what,
                    f"Look at it, then: hermes hooks trust {hook.name}",
                )
            case "off":
                yield Finding(
                    "hooks", OK, f"{hook.name} is new, and off until you trust it"
                )
            case "trusted":
                yield Finding("hooks", OK, f"{hook.name} is trusted")


def _webhooks(site: Site) -> Iterator[Finding]:
    try:
        webhooks, secrets = (
            load(site.environ, home=site.home).webhooks,
            load_secrets(site.environ, home=site.home),
        )
    except HermesError:
        return  # said elsewhere
    for name, webhook in webhooks.items():
        if secrets.get(webhook.secret):
            yield Finding("webhooks", OK, f"{name} is signed with {webhook.secret}")
        else:
            what = f"{name} is off: {webhook.secret} is not set, and without it nothing is sent"
            yield Finding(
                "webhooks",
                FAIL,
                what,
                f"Store it with: hermes config set {webhook.secret}",
            )
