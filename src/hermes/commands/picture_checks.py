"""Checks of `hermes doctor`: documents, the model that looks at pictures, OCR, the service that makes pictures, the
browser. No service is called."""

from importlib.util import find_spec

from hermes.commands.doctor_checks import Finding, Site
from hermes.commands.views import OK, WARN
from hermes.errors import HermesError, MediaError, translated
from hermes.media.image_backends import ImageSettings, build_backend, chosen_backend
from hermes.providers.cheapest_model import Need, cheapest
from hermes.providers.routing import chosen_route, keys_of, route_facts, route_for
from hermes.settings import Secrets, Settings
from hermes.settings.load import load, load_secrets
from hermes.text.install_words import install_hint
from hermes.text.translation import translator
from hermes.tools.documents.ocr import PageOcr

t = translator(__name__)

_READERS = (
    ("PDF", "pypdfium2"),
    ("Word", "docx"),
    ("Excel", "openpyxl"),
    ("PowerPoint", "pptx"),
    ("EPUB", "html_to_markdown"),
    ("HTML", "html_to_markdown"),
)


def check_pictures(site: Site) -> list[Finding]:
    """One finding for each sense. Nothing if the settings can't be read, which another check reports."""
    try:
        settings = load(site.environ, home=site.home)
        secrets = load_secrets(site.environ, home=site.home)
    except HermesError:
        return []
    given = ImageSettings(settings, secrets, site.environ, site.home.root)
    return [
        _documents(settings),
        _vision(settings, secrets),
        _ocr(),
        _generation(given),
        _browser(settings, site),
    ]


def _vision(settings: Settings, secrets: Secrets) -> Finding:
    """Who looks at pictures: the model itself, another one, or OCR."""
    wanted = settings.media.vision.strip()
    if wanted == "off":
        return Finding("vision", OK, t("off (media.vision)"))
    if wanted != "ocr":
        try:
            if seeing := _seeing_model(settings, secrets, wanted):
                return Finding("vision", OK, seeing)
        except HermesError as error:
            return Finding(
                "vision", WARN, translated(error.words), translated(error.hint_words)
            )
    is_named = wanted not in ("auto", "ocr")
    if not is_named and PageOcr().is_available:
        text = t("no model looks at pictures; OCR reads the text in them")
        return Finding("vision", OK, text)
    to_do = t(
        "Choose a model that sees (hermes model), name one in auxiliary.vision, or install OCR."
    )
    if wanted == "auto":
        return Finding("vision", OK, t("not set up (optional). {to_do}", to_do=to_do))
    text = t("{wanted} (media.vision) can't look at pictures", wanted=wanted)
    return Finding("vision", WARN, text, to_do)


def _seeing_model(settings: Settings, secrets: Secrets, wanted: str) -> str:
    """Which model looks at pictures; empty if none does. Raises HermesError for one that can't be used."""
    main = chosen_route(settings, secrets)
    if wanted == "auto" and route_facts(main).images:
        return t(
            "{provider}:{model} sees pictures itself",
            provider=main.provider,
            model=main.model,
        )
    named = settings.auxiliary.vision.strip() if wanted == "auto" else wanted
    if named in ("off", "main", ""):
        return ""
    if named == "auto":
        route = None if main.embedded else cheapest(main, Need(images=True))
    else:
        route = route_for(settings, secrets, named, main)
        keys_of(route, secrets)
    if route is None or not route_facts(route).images:
        return ""
    return f"{route.provider}:{route.model} describes pictures"


def _documents(settings: Settings) -> Finding:
    """Which documents can be read. E-mail, notebooks, tables and archives always can."""
    if settings.media.documents == "off":
        return Finding("documents", OK, t("off (media.documents)"))
    readable = [name for name, package in _READERS if find_spec(package)]
    missing = [name for name, package in _READERS if not find_spec(package)]
    if not missing:
        return Finding("documents", OK, ", ".join(readable))
    extra = "markdown" if missing == ["EPUB", "HTML"] else "documents"
    text = t(
        "{readable}; can't be read: {missing} (optional). {to_do}",
        readable=", ".join(readable) or "-",
        missing=", ".join(missing),
        to_do=install_hint(extra).shown(),
    )
    return Finding("documents", OK, text)


def _ocr() -> Finding:
    ocr = PageOcr()
    text = (
        t("installed")
        if ocr.is_available
        else t("not installed (optional). {missing}", missing=ocr.missing)
    )
    return Finding("ocr", OK, text)


def _generation(given: ImageSettings) -> Finding:
    """Who makes pictures."""
    if given.wanted == "off":
        return Finding("image generation", OK, t("off (media.image_generation)"))
    if not chosen_backend(given):
        text = t(
            "not set up (optional): OPENAI_API_KEY, XAI_API_KEY, FAL_KEY or media.images.command"
        )
        return Finding("image generation", OK, text)
    try:
        backend = build_backend(given)
    except MediaError as error:
        return Finding(
            "image generation",
            WARN,
            translated(error.words),
            translated(error.hint_words),
        )
    return Finding("image generation", OK, f"{backend.name} {backend.model}".rstrip())


def _browser(settings: Settings, site: Site) -> Finding:
    """The browser. That there is none is a warning only if the settings ask for its tools."""
    from hermes.tools.browser.executable import find_browser, needs_no_sandbox
    from hermes.tools.toolsets import ToolChoice

    choice = ToolChoice("cli", settings.tools.enabled, settings.tools.disabled)
    found = find_browser(settings.browser.executable, site.environ)
    if not choice.wants("browser_navigate"):
        return Finding("browser", OK, t("off (tools.disabled)"))
    is_asked_for = choice.enables("browser_navigate") or settings.browser.as_root
    if found and needs_no_sandbox() and not is_asked_for:
        text = t(
            "not offered to root, whose pages run without Chromium's sandbox (browser.as_root)"
        )
        return Finding("browser", OK, text)
    if found:
        return Finding("browser", OK, found)
    to_do = t("Install Chromium and the extra `browser`, or set browser.executable.")
    if not choice.enables("browser_navigate"):
        return Finding("browser", OK, t("not set up (optional). {to_do}", to_do=to_do))
    text = t("its tools are enabled, but there is no browser, or playwright is missing")
    return Finding("browser", WARN, text, to_do)
