"""Reads the settings of OpenClaw that have an equivalent here: model, providers, platforms; and its secrets."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.learning.imports import openclaw
from hermes.learning.imports.hermes_agent_config import ImportedConfig
from hermes.learning.imports.json_fields import Object, text
from hermes.primitives.untyped import list_in, list_of, object_in, object_of
from hermes.settings.gateway import CHAT_PLATFORMS
from hermes.settings.load import read_text
from hermes.settings.secrets import is_secret_name, parse_env
from hermes.text.translation import translator

t = translator(__name__)


_APIS = {
    "openai-completions": "chat",
    "openai-responses": "responses",
    "anthropic-messages": "anthropic",
}
_TOKENS = (
    ("telegram", "botToken", "TELEGRAM_BOT_TOKEN"),
    ("discord", "token", "DISCORD_BOT_TOKEN"),
    ("slack", "botToken", "SLACK_BOT_TOKEN"),
    ("slack", "appToken", "SLACK_APP_TOKEN"),
    ("mattermost", "botToken", "MATTERMOST_TOKEN"),
    ("matrix", "accessToken", "MATRIX_ACCESS_TOKEN"),
)
_ADDRESSES = (
    ("mattermost", "baseUrl", "gateway.mattermost.url"),
    ("matrix", "homeserver", "gateway.matrix.url"),
)
_KNOWN = frozenset(
    ("agents", "agent", "models", "channels", "env", "mcp", "cron", "meta", "wizard")
)
_REFERENCE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


def read_openclaw_configuration(home: Path, *, secrets: bool) -> ImportedConfig:
    """Reads the settings, and with `secrets` also keys, tokens and who may talk to the agent.

    Raises LearningError if the configuration is not valid.
    """
    config = openclaw.read_config(home)
    reader = _ConfigReader(home, config)
    settings = {**dict(reader.model()), **dict(reader.providers())}
    left = [f"openclaw.json: {name}" for name in config if name not in _KNOWN]
    if secrets:
        reader.collect_keys()
        reader.collect_tokens()
        settings |= dict(reader.addresses())
        if people := sorted(set(reader.people())):
            settings["gateway.allow"] = people
    return ImportedConfig(
        settings, reader.secrets if secrets else {}, (*left, *reader.left)
    )


def secret_names(home: Path) -> list[str]:
    """Returns the names of the secrets in a home, to report what was not imported. Never returns values."""
    return sorted(read_openclaw_configuration(home, secrets=True).secrets)


class _ConfigReader:
    """Reads one configuration. Secrets go into `secrets`; settings that can't be used are named in `left`."""

    def __init__(self, home: Path, config: Object) -> None:
        self._home = home
        self._config = config
        self._environment = dict(_environment(home, config))
        self.secrets: dict[str, str] = {}
        self.left: list[str] = []

    def model(self) -> Iterator[tuple[str, Any]]:
        chosen = (
            object_in(object_in(self._config, "agents"), "defaults").get("model")
            or object_in(self._config, "agent").get("model")
            or ""
        )
        name = text(chosen) or text(
            object_in({"model": chosen}, "model").get("primary")
        )
        provider, _, model = name.partition("/")
        if not model:
            return
        yield "model.provider", provider
        yield "model.default", model
        others = [
            text(one).replace("/", ":", 1)
            for one in list_in(chosen, "fallbacks")
            if "/" in text(one)
        ]
        if others:
            yield "model.fallback", others

    def providers(self) -> Iterator[tuple[str, Any]]:
        for name, entry in object_in(
            object_in(self._config, "models"), "providers"
        ).items():
            address = text(object_of(entry).get("baseUrl"))
            if not address or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
                self.left.append(f"provider {name[:60]}")
                continue
            key = f"custom_providers.{name}"
            yield f"{key}.base_url", address
            if api := _APIS.get(text(entry.get("api"))):
                yield f"{key}.api", api
            if variable := self._key_of(name, entry.get("apiKey")):
                yield f"{key}.key_env", variable

    def _key_of(self, provider: str, given: object) -> str:
        """Returns the variable with a provider's key. A key in the file itself becomes a secret."""
        value = text(given)
        reference = _REFERENCE.fullmatch(value)
        if not value:
            return ""
        if reference or re.fullmatch(r"[A-Z][A-Z0-9_]+_(KEY|TOKEN)", value):
            return reference[1] if reference else value
        name = re.sub(r"\W+", "_", f"{provider}_API_KEY").upper()
        self.secrets[name] = value
        return name

    def collect_keys(self) -> None:
        for name, value in self._environment.items():
            if is_secret_name(name):
                self.secrets.setdefault(name, value)
        for path in sorted(self._home.glob("agents/*/agent/auth-profiles.json")):
            for entry in object_in(openclaw.read_json5(path), "profiles").values():
                self._collect_profile(object_of(entry))

    def _collect_profile(self, entry: Object) -> None:
        provider = re.sub(r"\W+", "_", text(entry.get("provider"))).upper()
        value = self._resolved(entry.get("key"))
        if entry.get("type") == "api_key" and provider and value:
            self.secrets.setdefault(f"{provider}_API_KEY", value)
        elif provider:
            self.left.append(
                t.logged("the sign-in of {provider}", provider=provider.lower())
            )

    def collect_tokens(self) -> None:
        for platform, key, secret in _TOKENS:
            value = self._resolved(self._channel(platform).get(key))
            if value:
                self.secrets.setdefault(secret, value)
        for name in object_in(self._config, "channels"):
            if name not in CHAT_PLATFORMS and name != "defaults":
                self.left.append(f"channel {name[:60]}")

    def addresses(self) -> Iterator[tuple[str, str]]:
        for platform, key, setting in _ADDRESSES:
            if value := text(self._channel(platform).get(key)):
                yield setting, value

    def people(self) -> Iterator[str]:
        """Returns the people who may talk to the agent. A list that lets everyone in is skipped."""
        for platform in CHAT_PLATFORMS:
            channel = self._channel(platform)
            own, direct = (
                channel.get("allowFrom"),
                object_in(channel, "dm").get("allowFrom"),
            )
            for one in [*_listed(own), *_listed(direct)]:
                if one == "*":
                    self.left.append(f"channels.{platform}.allowFrom: everyone")
                else:
                    yield f"{platform}:{one}"
        for platform, one in openclaw.paired_people(self._home):
            if platform in CHAT_PLATFORMS and one != "*":
                yield f"{platform}:{one}"

    def _channel(self, platform: str) -> Object:
        """Returns a platform's section; if it has several accounts, that of the default one."""
        section = object_in(object_in(self._config, "channels"), platform)
        accounts = object_in(section, "accounts")
        return section | object_in(accounts, "default") if accounts else section

    def _resolved(self, value: object) -> str:
        """Returns a secret's text: the value itself, or that of the variable it names."""
        given = text(value)
        reference = _REFERENCE.fullmatch(given)
        if reference:
            return self._environment.get(reference[1], "")
        return given


def _environment(home: Path, config: Object) -> Iterator[tuple[str, str]]:
    section = object_in(config, "env")
    for name, value in {**section, **object_in(section, "vars")}.items():
        if isinstance(value, str) and value and "${" not in value:
            yield name, value
    for line in parse_env(read_text(home / ".env") or ""):
        if line.name and line.value and not line.problem:
            yield line.name, line.value


def _listed(value: object) -> list[str]:
    items = list_of(value)
    found = [str(one).strip() for one in items if isinstance(one, str | int)]
    plain = [re.sub(r"^(telegram|tg|discord|slack|user):", "", one) for one in found]
    return [one for one in plain if re.fullmatch(r"[^\s,]{1,100}", one)]
