"""The check of `hermes doctor` for a store in PostgreSQL: it is asked about itself, and nothing is changed."""

import msgspec

from hermes.commands.checks import Finding, Site
from hermes.commands.views import FAIL, OK, WARN
from hermes.errors import HermesError
from hermes.settings.load import load

_OUTAGE_TIMEOUT_S = 5.0


def check_store(site: Site) -> list[Finding]:
    """Returns findings about the database at `store.url`; none if the sessions are in `state.db`."""
    try:
        settings = load(site.environ, home=site.home).store
    except HermesError:
        return []  # another check reports it
    if not settings.url:
        return []
    from hermes.store import open_configured  # takes long to load

    brief = msgspec.structs.replace(settings, outage_timeout=_OUTAGE_TIMEOUT_S)
    try:
        with open_configured(brief, site.home, may_migrate=False) as store:
            place, details = store.describe()
            problems = store.problems()
    except HermesError as error:
        return [Finding("store", FAIL, error.message, error.hint)]
    facts = ", ".join(f"{name} {value}" for name, value in details)
    text = f"{store.engine}: {place}; {facts}"
    found = [Finding("store", WARN, what, to_do) for what, to_do in problems]
    return [Finding("store", OK, text), *found]
