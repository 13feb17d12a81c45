"""What `hermes doctor` says about the model: which one answers, and whether it can be asked. Asks nobody."""

from hermes.commands.models import current_model
from hermes.errors import HermesError
from hermes.settings.load import load, load_secrets
from hermes.surfaces.cli.checks import Finding, Site
from hermes.surfaces.terminal.style import OK, WARN


def findings(site: Site) -> list[Finding]:
    """One line; none if the settings can't be read, which is said elsewhere."""
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
                error.hint or "Choose one: hermes model pick",
            )
        ]
    name = f"{answers.provider} {answers.model}".rstrip()
    if answers.provider == "embedded" and not answers.key_set:
        to_do = f"It is offered at the first question, or download it now: hermes model add {answers.model}"
        return [
            Finding("model", WARN, f"{name} answers, but is not downloaded yet", to_do)
        ]
    if answers.key and not answers.key_set:
        to_do = f"Store it with: hermes config set {answers.key}"
        return [
            Finding(
                "model", WARN, f"{name} answers, but {answers.key} is not set", to_do
            )
        ]
    return [Finding("model", OK, f"{name} answers ({answers.ready})")]
