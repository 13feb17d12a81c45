"""The checks of `hermes doctor` for PostgreSQL and NATS: each server reports its own state, and nothing is changed."""

import msgspec

from hermes.commands.doctor_checks import Finding, Site
from hermes.commands.views import FAIL, OK, WARN
from hermes.errors import HermesError, translated
from hermes.settings.load import load, load_secrets
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


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
        return [
            Finding(
                "store", FAIL, translated(error.words), translated(error.hint_words)
            )
        ]
    facts = ", ".join(f"{name} {shown_reason(value)}" for name, value in details)
    text = f"{store.engine}: {place}; {facts}"
    found = [
        Finding("store", WARN, shown_reason(what), shown_reason(to_do))
        for what, to_do in problems
    ]
    return [Finding("store", OK, text), *found]


def check_events(site: Site) -> list[Finding]:
    """Returns findings about the NATS server at `events.url`; none without one."""
    try:
        settings = load(site.environ, home=site.home).events
        if not settings.url:
            return []
        secrets = load_secrets(site.environ, home=site.home)
    except HermesError:
        return []  # another check reports it
    from hermes.bridge.nats_link import link_options

    try:
        options = link_options(settings, secrets)
        from hermes.bridge.nats_health import nats_health

        found = nats_health(options)
    except HermesError as error:
        return [
            Finding(
                "events", FAIL, translated(error.words), translated(error.hint_words)
            )
        ]
    if found.fault:
        return [
            Finding(
                "events",
                FAIL,
                t(
                    "NATS at {shown}: {fault}",
                    shown=options.shown,
                    fault=shown_reason(found.fault),
                ),
                shown_reason(found.to_do),
            )
        ]
    encrypted = "encrypted" if found.is_encrypted else "not encrypted"
    facts = f"{found.version}, {encrypted}, latency {found.latency_s * 1000:.1f} ms"
    findings = [
        Finding(
            "events", OK, t("NATS: {shown}; {facts}", shown=options.shown, facts=facts)
        )
    ]
    if not found.has_work_queue:
        to_do = t(
            "Start the server with JetStream (`-js`). Until then workers look for work in the store, once a second."
        )
        findings.append(Finding("events", WARN, t("NATS has no JetStream"), to_do))
    if found.is_slow:
        to_do = t("Put NATS nearer to the machines that use it: live text is late.")
        findings.append(Finding("events", WARN, t("NATS is slow to answer"), to_do))
    return findings
