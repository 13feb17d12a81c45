"""Scans the files of a skill: its texts for instructions, its code for theft, concealment, damage
and persistence.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal, TypeAlias

import msgspec

from hermes.learning.scan.disguise import hidden, readings
from hermes.learning.scan.phrases import phrases, scan, scan_readings
from hermes.learning.scan.prefixes import PrefixedPattern, SearchedText, prefixed
from hermes.text.translation import shown_reason, to_translate

Level: TypeAlias = Literal["danger", "caution"]

_MAX_FILE_CHARS = 2_000_000
_MAX_CHARS_BY_LINE = 20_000
"""Characters of a file that are scanned line by line, to locate a disguised finding."""
_PROGRAMS = (
    b"\x7fELF",
    b"MZ",
    b"\xca\xfe\xba\xbe",
    b"\xfe\xed\xfa",
    b"\xcf\xfa\xed\xfe",
    b"\x80\x04\x95",
    b"\x80\x05\x95",
)
_COMPILED = (
    ".so",
    ".dll",
    ".dylib",
    ".exe",
    ".pyc",
    ".pth",
    ".pkl",
    ".pickle",
    ".jar",
    ".node",
    ".wasm",
    ".bin",
)
_HOME = r"(?:~|\$\{?home\}?|/home/\w+|/root|expanduser)"
_PRIVATE = (
    r"(?:\.ssh\b|id_(?:rsa|ed25519|ecdsa)|\.aws/|\.netrc|\.gnupg|\.pgpass|\.kube/config|/etc/shadow|\.hermes/(?:\.env|state)|"
    r"\.config/(?:gh|gcloud)|\.docker/config|login\.keychain|cookies\.sqlite|wallet\.dat|\.bash_history|\.zsh_history)"
)
_SENDS = (
    r"(?:\bcurl\b|\bwget\b|\bnc\b|\bncat\b|\bscp\b|\bsendmail\b|\brequests\.(?:post|put|request|get)|\burlopen|\bfetch\(|"
    r"\bhttpx?2?\.|\baiohttp\b|\bsocket\.|\bxmlhttprequest|\binvoke-(?:webrequest|restmethod)|\bsmtplib)"
)
_WHOLE_ENVIRONMENT = r"(?:\$\(\s*(?:env|printenv|set)\b|`\s*(?:env|printenv)\b|\bprintenv\b|\bos\.environ(?!\.get|\[)|\bprocess\.env(?!\.\w)|\benv\s*\|)"

# ruff: noqa: E501 - a pattern is harder to read in pieces than on a long line
_SOURCES: tuple[tuple[Level, str, str], ...] = (
    (
        "danger",
        to_translate("runs what it downloads"),
        r"\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^\n]{0,300}?\|\s*(?:sudo\s+)?(?:(?:/usr)?/bin/)?(?:env\s+)?(?:(?:ba|z|da|k|fi)?sh|python\d?(?:\.\d+)?|perl|ruby|node|php|iex)\b",
    ),
    (
        "danger",
        to_translate("runs what it downloads"),
        r"\b(?:ba|z|da)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\(|`)\s*(?:curl|wget)|\b(?:eval|source|exec)\s+[\"']?(?:\$\(|`|<\()\s*(?:curl|wget)|\.\s+<\(\s*curl",
    ),
    (
        "danger",
        to_translate("runs what it downloads"),
        r"\bexec\s*\(\s*(?:\w+\.)*(?:urlopen|get|read|decode)\b|\beval\s*\(\s*(?:await\s+)?(?:fetch|requests|urlopen)",
    ),
    (
        "danger",
        to_translate("runs what it downloads"),
        r"\b(?:curl|wget)\b(?>[^\n]{0,400}?(?:-o|-O|>))\s*+(\S++)(?>[^\n]{0,400}?(?:&&|;|\n))[^\n]{0,400}?(?:chmod\s+\+?[x7]\S*\s|\b(?:ba|z)?sh\s)",
    ),
    (
        "danger",
        to_translate("runs hidden code"),
        r"\bbase(?:64|32)\s+(?:-d|-D|--decode)\b[^\n]{0,200}\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|perl|node|ruby)\b|\bxxd\s+-r\b[^\n]{0,100}\|\s*\w*sh\b|\|\s*(?:rev|tr\s+\S+\s+\S+)\s*\|\s*\w*sh\b",
    ),
    (
        "danger",
        to_translate("runs hidden code"),
        r"\b(?:exec|eval|compile)\s*\(\s*(?:\w+\.)*(?:b(?:ase)?64\w*decode|b64decode|decode|unhexlify|fromhex|decompress|loads|join|atob|fromcharcode|buffer\.from)\b",
    ),
    (
        "danger",
        to_translate("runs hidden code"),
        r"\bmarshal\.loads|\bpickle\.loads?\b|\bcodecs\.decode\([^)]*rot|\bfunction\(\s*atob|\b__builtins__\b|\bgetattr\s*\(\s*(?:__import__|os\b|builtins|sys\.modules|importlib|subprocess|__builtins__)|\b__import__\s*\(\s*(?!['\"](?:json|re|math|datetime|time|pathlib)['\"])",
    ),
    (
        "danger",
        to_translate("runs hidden code"),
        r"(?:chr\(\s*\d+\s*\)\s*\+\s*){3}|(?:\\x[0-9a-f]{2}){12}|['\"][a-z]{1,5}['\"]\s*\+\s*['\"][a-z:/.]{1,12}['\"]\s*(?:\+\s*['\"][\w./:]{1,12}['\"])?[^\n]{0,200}(?:urlopen|requests|curl|system|popen|getattr|exec|fetch)",
    ),
    (
        "danger",
        "collects secrets",
        rf"{_SENDS}[^\n]{{0,300}}(?:{_PRIVATE}|{_WHOLE_ENVIRONMENT})|(?:{_PRIVATE}|{_WHOLE_ENVIRONMENT})[^\n]{{0,300}}{_SENDS}",
    ),
    (
        "danger",
        to_translate("reads private files"),
        rf"\b(?:cat|less|head|tail|cp|tar|zip|base64|open|read|readfile\w*|copyfile|get-content|type)\b[^\n]{{0,80}}{_PRIVATE}|{_HOME}[^\n]{{0,10}}/\.(?:ssh|aws|gnupg|netrc)\b(?!/config|/known_hosts)|\bsecurity\s+find-(?:generic|internet)-password",
    ),
    (
        "danger",
        to_translate("stays active after it has run"),
        r"\bcrontab\s+-(?!l\s*$|l\s*\n)|\|\s*crontab\b|/etc/cron|\bsystemctl\b[^\n]{0,400}\benable\b|\blaunchctl\s+(?:load|bootstrap)|launchagents/|\bschtasks\b[^\n]{0,400}/create|currentversion\\+run",
    ),
    (
        "danger",
        to_translate("stays active after it has run"),
        r"(?:>>?|tee(?:\s+-a)?|\bopen\()\s*[\"']?(?:~|\$home|\$\{home\}|/root|/home/\w+)?/?\.(?:bashrc|bash_profile|profile|zshrc|zprofile|config/fish|config/autostart|xinitrc)|authorized_keys|\.git/hooks/|\bcore\.hookspath|/etc/(?:profile|rc\.local|ld\.so\.preload|sudoers)|\bld_preload\b|sitecustomize",
    ),
    (
        "danger",
        "opens a backdoor",
        r"/dev/(?:tcp|udp)/|\bnc(?:at)?\b[^\n]{0,400}\s-\w*[ec]\b|\bsocat\b[^\n]{0,400}\bexec:|\bbash\s+-i\b[^\n]{0,400}[<>]&|\bpty\.spawn|\bsocket\.socket\([^\n]{0,400}(?:\n[^\n]{0,400}){0,6}?\bdup2\b|\bngrok\b|\bssh\s+[^\n]{0,400}-R\s",
    ),
    (
        "danger",
        "destroys files",
        r"\brm\s+(?:-\w+\s+)*-\w*[rf]\w*\s+(?:-\w+\s+|--\S+\s+)*[\"']?(?:/(?:\s|$|\*|[\"'])|~|\$\{?home\}?|\*(?:\s|$))|\brmtree\s*\(\s*(?:os\.path\.)?(?:expanduser|path\.home|['\"][/~])|\bmkfs|\bdd\b[^\n]{0,400}\bof=/dev/|>\s*/dev/sd|:\(\)\s*\{|\bfind\s+(?:/|~)\s[^\n]{0,400}-delete|\bshred\b",
    ),
    (
        "danger",
        to_translate("turns off protection"),
        r"\b(?:setenforce\s+0|ufw\s+disable|iptables\s+-f\b|csrutil\s+disable|set-mppreference|spctl\s+--master-disable)|approvals?\.?(?:mode)?\W{0,3}(?:=|:|to)\W*(?:off|full)\b|\bpolicy\.yaml\b|hermes\s+config\s+set\s+(?:approvals|tools|mcp)|--(?:yolo|dangerously)",
    ),
    (
        "danger",
        to_translate("changes Hermes itself"),
        r"(?:>>?|tee|write_file|cp|mv)\b[^\n]{0,80}\.hermes/(?:config\.yaml|\.env|policy\.yaml|hooks|plugins|memories)",
    ),
    (
        "danger",
        to_translate("mines cryptocurrency or contacts a remote server"),
        r"\b(?:xmrig|minerd|stratum\+tcp|coinhive)\b|\b(?:discord(?:app)?\.com/api/webhooks|api\.telegram\.org/bot|requestbin|webhook\.site|pipedream\.net|ngrok\.io|burpcollaborator|interact\.sh|oast\.(?:fun|pro|live|site))",
    ),
    (
        "caution",
        to_translate("sends data somewhere"),
        r"\bcurl\b[^\n]{0,400}\s(?:-d|--data\S*|-F|--form|-T|--upload-file|-X\s*(?:POST|PUT))\b|\brequests\.(?:post|put|patch)\b|\burlopen\([^\n]{0,400}data\s*=|\bsmtplib\b",
    ),
    (
        "caution",
        to_translate("asks for more permissions"),
        r"\bsudo\b|\bchmod\s+(?:-R\s+)?(?:0?777|[ugoa]*\+s)\b|\bchown\s+root|\bdoas\b",
    ),
    (
        "caution",
        "installs packages",
        r"\b(?:pip3?|uv pip|npm|pnpm|yarn|gem|cargo|go|brew|apt(?:-get)?)\s+(?:install|add|i)\b[^\n]{0,400}(?:https?://|git\+|--(?:index-url|extra-index-url|registry))",
    ),
    (
        "caution",
        to_translate("starts programs from code"),
        r"\b(?:os\.system|os\.popen|subprocess\.\w+\([^\n]{0,400}shell\s*=\s*true|child_process)\b",
    ),
    (
        "danger",
        to_translate("runs what it downloads"),
        r"\b(?:curl|wget)\b(?>[^\n]{0,400}?(?:-o|-qo|--output(?:-document)?|>))\s*+([^\s;&|]++)(?>[^\n]{0,400}?(?:&&|;|\n))[^\n]{0,400}?(?:\b(?:ba|z|da)?sh|python\d?|node|perl|source|\.)\s+\1",
    ),
    (
        "danger",
        to_translate("runs what it downloads"),
        r"\b(?:run|call|popen|system|exec|check_output|spawn)\w*\s*\([^\n]{0,80}\b(?:requests\.get|urlopen|httpx\.get|fetch)\b",
    ),
    (
        "danger",
        to_translate("runs hidden code"),
        r"\b(?:system|popen|run|call|exec|eval|spawn)\w*\s*\([^\n]{0,60}\b(?:fromhex|b64decode|unhexlify|atob|rot13|decompress)\b|\beval\s+[\"']?\$\([^)\n]*base64|\bpower?shell\b[^\n]{0,400}\s-e(?:nc|ncodedcommand)?\s+[a-z0-9+/=]{16}|\b(?:globals|vars|locals)\s*\(\s*\)\s*\[\s*['\"][^'\"]*['\"]\s*\+",
    ),
    (
        "danger",
        "collects secrets",
        rf"\b(?:history|set|declare -p)\b\s*\|[^\n]{{0,60}}{_SENDS}|\bfind\s+[/~][^\n]{{0,400}}-exec\s+(?:curl|wget|scp|nc)\b|document\.cookie[^\n]{{0,80}}{_SENDS}|{_SENDS}[^\n]{{0,120}}document\.cookie|\b(?:zip|tar)\b(?>[^\n]{{0,400}}?{_HOME})(?>[^\n]{{0,400}}?(?:&&|;|\|))[^\n]{{0,400}}?{_SENDS}",
    ),
    (
        "danger",
        "collects secrets",
        r"\b(?:nslookup|dig)\b[^\n]{0,400}\$\(|169\.254\.169\.254|metadata\.google\.internal|/proc/(?:self|\d+)/environ",
    ),
    (
        "danger",
        to_translate("reads private files"),
        r"\bsecurity\s+(?:dump-keychain|export)|\bgpg\b[^\n]{0,400}--export-secret|(?:google-chrome|chromium|firefox|brave)[^\n]{0,400}\b(?:cookies|login data|logins\.json|key4\.db)",
    ),
    (
        "danger",
        "opens a backdoor",
        r"\bsock_stream\b[^\n]{0,400}\b(?:exec|sh)\b|\bfsockopen\s*\([^\n]{0,400}\bexec|\bat\s+now\b|\bnohup\b[^\n]{0,400}\b(?:nc|ncat|socat)\b",
    ),
)


class SkillFinding(msgspec.Struct, frozen=True):
    """Something a person should know before they keep a file."""

    level: Level
    what: str
    file: str
    line: int = 0
    excerpt: str = ""

    def __str__(self) -> str:
        return f"{self.level}: {self._said(self.what)}"

    def shown(self) -> str:
        """Where it is and what, in the reader's language."""
        return self._said(shown_reason(self.what))

    def _said(self, what: str) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {what}" + (f": {self.excerpt}" if self.excerpt else "")


def scan_files(files: Mapping[str, bytes]) -> list[SkillFinding]:
    """Returns all findings in a skill's files, worst first."""
    found = [
        finding
        for name, data in sorted(files.items())
        for finding in _scan_file(name, data)
    ]
    return sorted(found, key=lambda finding: finding.level != "danger")


def _scan_file(name: str, data: bytes) -> Iterator[SkillFinding]:
    if data.startswith(_PROGRAMS) or name.lower().endswith(_COMPILED):
        yield SkillFinding("danger", to_translate("is a compiled program"), name)
        return
    if len(data) > _MAX_FILE_CHARS:
        yield SkillFinding("caution", to_translate("is too large to scan"), name)
    try:
        text = data[:_MAX_FILE_CHARS].decode("utf-8")
    except UnicodeDecodeError:
        if not name.lower().endswith(
            (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".ico", ".ttf", ".woff2")
        ):
            yield SkillFinding("caution", to_translate("is not text"), name)
        return
    all_readings = [SearchedText(reading) for reading in readings(text)]
    folded = text.casefold()
    same = (reading for reading in all_readings if reading.text == folded)
    plain = next(same, None) or SearchedText(folded)
    if what := hidden(text) or scan_readings(all_readings):
        yield SkillFinding("danger", what, name, _line_of(text, plain, what), "")
    yield from _scan_code(name, plain, all_readings)


def _scan_code(
    name: str, plain: SearchedText, all_readings: list[SearchedText]
) -> Iterator[SkillFinding]:
    """Yields one finding per pattern: in the text as it is, else in another reading of it."""
    others = [reading for reading in all_readings if reading.text != plain.text]
    for level, what, pattern in code_patterns():
        if found := plain.search(pattern):
            line = plain.text.count("\n", 0, found.start()) + 1
            yield SkillFinding(level, what, name, line, " ".join(found[0].split())[:80])
        elif level == "danger" and any(reading.search(pattern) for reading in others):
            yield SkillFinding(level, f"{what}, in disguise", name)


def _line_of(text: str, plain: SearchedText, what: str) -> int:
    """Returns the line where the match starts in the folded text, else the first that shows it; 0 if it spans several."""
    places = [
        found.end() - len(found[0].lstrip())
        for one in phrases()
        if one.kind == what and (found := plain.search(one.pattern))
    ]
    if places:
        return plain.text.count("\n", 0, min(places)) + 1
    lines = text[:_MAX_CHARS_BY_LINE].split("\n")
    return next(
        (
            number
            for number, line in enumerate(lines, 1)
            if line.strip() and scan(line) == what
        ),
        0,
    )


@cache
def code_patterns() -> tuple[tuple[Level, str, PrefixedPattern], ...]:
    """Returns all patterns, compiled on first use."""
    return tuple((level, what, prefixed(source)) for level, what, source in _SOURCES)
