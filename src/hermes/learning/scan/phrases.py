"""Patterns of injected instructions. A strong one suffices; weak ones count in pairs of different
kinds.

They are searched in lower-case readings of a text (see `disguise`). The words of a pattern may
stand apart, but only within a sentence, so that ordinary prose about instructions, rules and keys
does not match.
"""
# ruff: noqa: E501 - a pattern is harder to read in pieces than on a long line

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from hermes.learning.scan.disguise import hidden, readings
from hermes.learning.scan.languages import LANGUAGES
from hermes.learning.scan.prefixes import PrefixedPattern, SearchedText, prefixed
from hermes.text.translation import to_translate

_MAX_HINT_DISTANCE_CHARS = 300  # between two hints that count as a pair
_MAX_HINTS_PER_KIND = 50  # examined

_GAP = r"[^.!?\n]{0,60}?"
_NEAR = r"(?:\W+\w+){0,4}?\W+"
_PRIOR = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|existing|original|initial|system|developer|safety|"
    r"your|everything|all (?:of )?(?:the |your |these |those |prior |previous )*)"
)
_ORDERS = r"(?:instructions?(?! (?:pointer|set|cache|count))|prompts?|directives?|directions|guidelines?|programming|training|orders|commands)"
_RULES = r"(?:rules|polic(?:y|ies)|constraints|restrictions|guardrails|safeguards|limitations|protocols?)"
_DROP = (
    r"\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|dismiss|discard|abandon|circumvent|"
    r"do(?: not|n.?t) (?:follow|obey|heed|respect)|stop (?:following|obeying)|pay no attention to|set aside)"
)
_SECRETS = (
    r"(?:api.?keys?|access.?keys?|tokens?|passwords?|passphrases?|credentials?|secrets?|private keys?|ssh keys?|"
    r"id_(?:rsa|ed25519|ecdsa|dsa)|\.env\b|\.ssh\b|\.aws\b|\.netrc|\.npmrc|\.pgpass|/etc/(?:passwd|shadow)|keychain|"
    r"wallets?|seed phrase|cookies|environment variables|system prompt|chat history|conversation|(?:api )?settings file|"
    r"config(?:uration)? file|\.hermes\b|memory\.md|user\.md|personal (?:data|information))"
)
_PLACES = (
    r"(?:~|\$home|/home/\w+|/root)/\.(?:ssh/(?!config|known_hosts)|aws/|gnupg|netrc|hermes/(?:\.env|state)|env\b|"
    r"config/(?:gh|gcloud)|kube/config|docker/config|codex/auth|claude/)|\bid_(?:rsa|ed25519|ecdsa)\b(?!\.pub)|/etc/shadow"
)
_SEND = (
    r"\b(?:send|e-?mail|mail|upload|post|forward|transmit|exfiltrate|leak|share|submit|deliver|publish|report|attach|"
    r"append|copy|paste|include|echo|encode)\b"
)
_OUTSIDE = r"(?:https?://|ftp://|\b[\w.+-]+@[\w-]+\.\w+|\b(?:external|remote|third.party|attacker)\b|\bwebhook\b)"
_USER = (
    r"(?:the )?(?:users?|human|person|owner|operator|anyone|anybody|them|developer)\b"
)
_ASSISTANT = r"(?:assistants?|ai(?: agents?| models?| assistants?)?|llms?|language models?|agents?|chatbots?|bots?|hermes|claude|gpt|copilot)"


class Phrase(NamedTuple):
    """A pattern, what it indicates, and whether it suffices alone."""

    kind: str
    strong: bool
    pattern: PrefixedPattern


_SOURCES: tuple[tuple[str, bool, str], ...] = (
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"{_DROP}\b(?:\W+\w+){{0,3}}?\W+(?:{_ORDERS}|{_RULES})\W+(?:(?:that|which|you|were|have|been|from|i|the|user|is|are)\W+){{0,4}}?(?:above|before|earlier|given|so far|received|system|got)\b",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"{_DROP}\b(?:\W+\w+){{0,3}}?\W+{_PRIOR}\W*(?:\w+\W+){{0,3}}?(?:{_ORDERS}|{_RULES})\b",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"{_DROP}\b\W+(?:(?:the|your|all|any|these|those|safety|security|every)\W+)*{_RULES}\b(?! (?:in|of|for|from|that|which)\b)",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"{_DROP}\b\W+(?:everything|anything|all|what)\W+(?:\w+\W+){{0,2}}?(?:above|before|(?:you (?:were|have been) |i (?:said|told)|was )(?:told|said|given)?)",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        r"\b(?:ignore|disregard|forget)(?:all|any|the|your|my)*(?:previous|prior|above|earlier|system)(?:instruction|prompt|rule|message)",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"\b(?:{_ORDERS}|{_RULES})\b{_GAP}\b(?:no longer (?:apply|valid|in effect)|are (?:void|cancell?ed|revoked|superseded|obsolete))",
    ),
    (
        to_translate("a new identity for the assistant"),
        True,
        r"\byou(?: are|.re| must| will|r role is)(?: now| henceforth| from now on)(?: be| act as| become| a| an| the| in)*\W+(?:root|admin\w*|dan\b|unrestricted|uncensored|unfiltered|jailbroken|developer mode|god mode|maintenance mode|free from|evil|a different|superuser)",
    ),
    (
        to_translate("a new identity for the assistant"),
        True,
        r"\b(?:enter|enable|activate|switch (?:in)?to|you are in)\b\W+(?:\w+\W+){0,2}?(?:developer|debug|god|dan|jailbreak|unrestricted|maintenance|admin(?:istrator)?|sudo) mode\b",
    ),
    (
        to_translate("a new identity for the assistant"),
        False,
        r"\b(?:you are now|from now on,? you (?:are|will|must|shall)|pretend (?:to be|you are)|act as if you|act as an? (?:unrestricted|different))\b",
    ),
    (
        to_translate("fake conversation markers"),
        True,
        r"</?\s*(?:system|tool_results?|tool_response|function_results?|function_calls?|assistant|developer|instructions?|untrusted|memory|im_start|im_end|user_query|admin)(?:\s[^<>\n]{0,80})?>",
    ),
    (
        to_translate("fake conversation markers"),
        True,
        r"<\|\s*(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\s*\|?>|\[/?inst\]|<</?sys>>|\[/?system\]|\[system (?:message|note|prompt|override|update)|begin system (?:prompt|message)",
    ),
    (
        to_translate("fake conversation markers"),
        True,
        r"(?:^|\n|<!--|/\*|#)\W{0,6}(?:(?:system|developer|admin(?:istrator)?) (?:message|prompt|note|override|instructions?|notice|update|alert)\s*:|(?:system|developer|admin(?:istrator)?)\s*:\s*(?:you|your|ignore|disregard|forget|run|execute|send|read|new|the user|override|before|after|do|from|always|never|please|as|this is|assistant|respond|reply|delete|approve|all)\b)",
    ),
    (
        to_translate("fake conversation markers"),
        True,
        r"(?:^|\n)\W{0,6}(?:important|urgent|special|additional)(?: system)? instructions?\W{0,4}(?::|\n)|\b(?:new|updated|hidden|secret|real|actual)(?: system)? instructions?\s*:",
    ),
    (
        to_translate("text addressed to the assistant"),
        False,
        rf"\b(?:note|message|instructions?|attention|important|reminder|hint|hello|dear|hey|notice|memo)\b\W+(?:(?:to|for|the|all|any|this|every|your)\W+)*{_ASSISTANT}\b",
    ),
    (
        to_translate("text addressed to the assistant"),
        False,
        rf"\bif you are an? (?:\w+ )?{_ASSISTANT}\b|\b{_ASSISTANT} (?:that (?:reads?|process(?:es)?)|reading|processing|summari[sz]ing) this\b",
    ),
    (
        to_translate("text addressed to the assistant"),
        False,
        rf"\b{_ASSISTANT} (?:must|should|shall|has to|is required to|needs to|will now)\b",
    ),
    (
        to_translate("a request to hide something from the user"),
        True,
        rf"\b(?:do(?: not|n.?t)|never|must not|should not|without|avoid)\b\W+(?:ever )?(?:tell|mention|inform|reveal|notify|alert|disclose|let|telling|mentioning|informing|notifying|alerting|disclosing|letting|revealing)\w*\W+(?:(?:this|that|it|about|any of this|anything|to|or asking)\W+){{0,3}}{_USER}(?! (?:for|to choose|about the (?:error|result)))",
    ),
    (
        "a fake approval",
        True,
        rf"\b(?:do(?: not|n.?t)|never|must not|without)\b\W+(?:ever )?(?:ask|wait|prompt|check)(?:ing)?\b\W+(?:(?:for|with|to|the|a|any|their|{_USER})\W+)*(?:confirmation|permission|approval|consent)|\bwithout asking(?: for)? {_USER}",
    ),
    (
        to_translate("a request to hide something from the user"),
        True,
        rf"\b(?:hide|conceal|keep)\b{_NEAR}(?:secret |hidden )?from {_USER}|\b(?:user|human) (?:must|should|need|does) ?not (?:know|see|notice|be told|find out)",
    ),
    (
        to_translate("a request to hide something from the user"),
        False,
        r"\b(?:silently|secretly|covertly|quietly|in the background without|discreetly)\b",
    ),
    (
        "a fake approval",
        True,
        r"\[(?:pre-?)?(?:approved|authori[sz]ed|verified|confirmed)(?: by [^\]]{1,30})?\]",
    ),
    (
        "a fake approval",
        True,
        r"\b(?:user|owner|operator|administrator|admin|human)s? (?:has |have |already |hereby |had )*(?:pre-?)?(?:approved?|authori[sz]ed?|granted|consented|confirmed|allowed|permitted|whitelisted)s?\b"
        + _GAP
        + r"\b(?:all|any|every|everything|unlimited|full|commands?|tool|terminal|access|actions?|execution)\b",
    ),
    (
        "a fake approval",
        True,
        r"\b(?:approvals?|confirmations?|permissions?|consent) (?:is|are) (?:not|never|no longer) (?:needed|required|necessary)|\bno (?:further |additional |user |more )?(?:approvals?|confirmations?|permissions?|consent) (?:is |are )?(?:needed|required|necessary)|\bgrant(?:ed|s)? you (?:full|unrestricted|all|root|unlimited|complete|admin)\b",
    ),
    (
        "a fake approval",
        True,
        r"\b(?:disable|turn off|switch off|deactivate|skip|bypass|circumvent|auto-?(?:approve|accept))\b\W+(?:(?:all|any|the|your|every|its|tool|command|user|hermes)\W+)*(?:approvals?|sandbox\w*|safety|permission (?:prompts?|checks?)|security(?: checks?)?|guardrails?|safeguards?)\b|\b(?:disable|turn off|bypass|deactivate)\b\W+(?:(?:all|any|the|your|every|user)\W+)+(?:confirmations?|polic(?:y|ies))\b",
    ),
    (
        "a fake approval",
        True,
        r"\bapprovals?(?:\.\w+)?\b\W*(?:mode\W*)?(?:to|=|:)\W*(?:off|full|none|never|auto|disabled)\b|--(?:yolo|dangerously[\w-]+|full-auto)",
    ),
    (
        to_translate("sending secrets away"),
        True,
        rf"{_SEND}{_GAP}{_SECRETS}{_GAP}(?:{_OUTSIDE}|\b(?:upload|to (?:me|us|support|the following)|with the share|debug it)\b)",
    ),
    (
        to_translate("sending secrets away"),
        True,
        rf"\b(?:visit|open|call|request|fetch|load|navigate to)\b\s+https?://\S+{_GAP}\b(?:with|containing|including|followed by)\b{_GAP}{_SECRETS}",
    ),
    (
        to_translate("sending secrets away"),
        True,
        rf"{_SECRETS}[^\n]{{0,60}}?{_SEND}{_GAP}\b(?:to|at|via|into)\b\W+{_OUTSIDE}",
    ),
    (
        to_translate("sending secrets away"),
        True,
        rf"(?:\b(?:every|all|each|any)\b|{_SECRETS}){_GAP}\b(?:must|should|has to|have to|to) be (?:uploaded|sent|posted|forwarded|copied|e?mailed|submitted){_GAP}{_OUTSIDE}",
    ),
    (
        to_translate("sending secrets away"),
        True,
        rf"(?:{_SEND}|\b(?:read|cat|open|print|dump|show|output|reveal|fetch|load|get|grab|collect)\b){_GAP}(?:{_PLACES})",
    ),
    (
        to_translate("sending secrets away"),
        True,
        rf"\b(?:reveal|repeat|print|output|show|leak|disclose)\b{_NEAR}(?:system prompt|hidden (?:prompt|instructions)|initial instructions)",
    ),
    (to_translate("sending secrets away"), False, rf"{_SEND}{_GAP}{_SECRETS}"),
    (
        to_translate("an address that sends data away"),
        True,
        r"!?\[[^\]]*\]\(\s*<?https?://[^)\s]*[?#/=&][^)]*?(?:\{\{|\$\{|\{[a-z_ ]+\}|%7b|<[a-z_ ]+>|\[[a-z_ ]+\]|=(?:secret|password|api_?key|conversation|context|history)s?\b)",
    ),
    (
        to_translate("an address that sends data away"),
        True,
        r"<img\b[^>]{0,200}\bsrc\s*=\s*[\"']?https?://[^\"'>\s]*\?[^\"'>\s]*(?:\{|\$|%7b)",
    ),
    (
        "a dangerous command",
        False,
        r"\brm\s+-\w*[rf]\w*\s+(?:--no-preserve-root\s+)?(?:~|/|\$home|\*)(?:\s|$|[\"'`;&|*/])|\bmkfs\.|\bdd\b[^\n]{0,80}of=/dev/|:\(\)\s*\{",
    ),
    (
        "a dangerous command",
        False,
        r"\b(?:curl|wget|fetch)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b|\bbase64\s+(?:-d|--decode)\b[^\n]{0,80}\|\s*(?:\w*sh|python\d?|perl|node)\b",
    ),
    (
        "a dangerous command",
        False,
        r"\b(?:run|execute|eval)\b\W+(?:\w+\W+){0,3}?[`\"']?(?:curl|wget|sudo|bash -c|powershell|nc -)\b",
    ),
    (
        to_translate("a request to be remembered"),
        False,
        r"\b(?:remember|memori[sz]e|save|store|add|write|persist|record|keep)\b"
        + _NEAR
        + r"(?:(?:to|in|into) (?:your |the )?(?:long.?term |permanent |persistent )?memor(?:y|ies)|permanently|forever|for (?:all )?future (?:sessions?|conversations?))",
    ),
    (
        to_translate("a request to be remembered"),
        False,
        r"\b(?:in all future|for (?:every|all|any)? ?future|from now on,? (?:always|never|you)|in every (?:future )?(?:session|conversation|reply|answer))\b",
    ),
    (
        "claimed trust",
        False,
        r"\b(?:always|blindly|fully|automatically) (?:trust|obey|follow|execute|run|accept|approve|comply)\b",
    ),
    (
        "claimed trust",
        False,
        rf"\balways (?:recommend|promote|insert|add|include|append|mention)\b{_GAP}(?:https?://|\blink|\bbuy|\bpackage|\bour\b)",
    ),
    (
        "claimed trust",
        True,
        rf"\balways (?:run|execute|fetch|download|send|upload|forward|cc|bcc)\b{_GAP}(?:{_OUTSIDE}|\bcurl\b|\bwget\b)",
    ),
    (
        to_translate("sending secrets away"),
        True,
        rf"\b(?:send|forward|cc|bcc|mail|e-?mail|upload|post|copy)\b\W+(?:every|all|each|any)\b{_GAP}(?:{_OUTSIDE})",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"{_DROP}\b\W+(?:(?:all|any|the|of|these|those|my|your|other)\W+)*(?:previous|prior|above|earlier|preceding)\W+(?:messages?|context|conversations?|inputs?|text|content|requests?)\b",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"{_DROP}\b\W+(?:about\W+)?(?:the\W+)?(?:user|human|person|owner).?s?\W+(?:original\W+|real\W+)?(?:requests?|questions?|tasks?|wishes|instructions?)\b",
    ),
    (
        to_translate("an order to ignore other instructions"),
        True,
        rf"\b(?:supersedes?|overrides?|replaces?|takes? precedence over)\b\W+(?:(?:all|any|the|of|your)\W+)*(?:earlier|previous|prior|other|your|existing|system)\W+(?:\w+\W+){{0,2}}?(?:{_ORDERS}|{_RULES})",
    ),
    (
        to_translate("a change of task"),
        True,
        r"\byour (?:new|real|actual|true|only) (?:task|goal|objective|job|mission|role|purpose)\b\W+(?:is|will be|now)|\bstop what you(?: are|.re) doing\b|\bdo anything now\b",
    ),
    (
        to_translate("a change of task"),
        True,
        r"\bbefore (?:you (?:can )?)?(?:solv|answer|continu|proceed|complet|respond|do)\w*\b[^.!?\n]{0,80}\b(?:you must|please do|do the following|must first|first (?:run|send|call|read|open|execute))\b|\bimportant message from\b[^.!?\n]{0,80}\bto you\b",
    ),
    (
        to_translate("a change of task"),
        False,
        r"\b(?:do (?:this|the following) instead|instead,? (?:run|execute|send|do|call|open)|(?:run|execute|do) the following)\b",
    ),
    (
        to_translate("a new identity for the assistant"),
        True,
        r"\byou have no (?:more |longer any )?(?:restrictions|rules|limits|limitations|guidelines|constraints)\b|\byou (?:have been|are|were)(?: now)? granted (?:root|full|admin\w*|unrestricted|unlimited)\b",
    ),
    (
        to_translate("fake conversation markers"),
        True,
        r"(?:^|\n)\W{0,4}assistant\s*:\s*(?:sure|ok|okay|i |i.ll|certainly|of course|done|understood|yes)\b|\b(?:new|next) user (?:message|request|input|instruction)s?\s*:|(?:^|\n)###\s*(?:instruction|system|human|assistant)\s*:|</?\s*(?:important|information|hidden|secret|override)\s*>",
    ),
    (
        to_translate("a request to hide something from the user"),
        True,
        r"\b(?:do(?: not|n.?t)|never) (?:mention|reveal|disclose|talk about) (?:it|this|that|these|any of this|the instructions?|these instructions?)\b(?! (?:file|function|variable|key|endpoint|feature)\b)|\b(?:secretly|covertly|stealthily) (?:add|send|run|install|include|insert|upload|execute|change|modify|delete|e-?mail|forward|copy|download|append|call)\b",
    ),
    (
        "a fake approval",
        True,
        r"\b(?:pretend|assume|act as if)(?: that)? the (?:user|owner|human) (?:has |had |already )*(?:confirmed|approved|agreed|allowed|consented|authori[sz]ed|said yes)|\b(?:approvals?|sandbox\w*|safety (?:checks|rules)|security checks) (?:is|are|has been|have been) (?:now )?(?:disabled|turned off|off|suspended|lifted|waived)\b",
    ),
    (
        "a fake approval",
        True,
        r"\b(?:never|do(?: not|n.?t)|without) (?:ask|asking|confirm|confirming|check|checking)(?: \w+){0,3}? before (?:delet|remov|overwrit|push|send|pay|deploy|install|execut|wip|dropp|transfer|purchas|buy|upload)",
    ),
    (
        "claimed trust",
        True,
        r"\btreat\b(?:\W+(?!untrusted|not\b|never|rather|no\b)\w+){1,8}?\W+as\W+(?:(?:a|an|the|your)\W+)?(?:system|developer|trusted|verified|authoritative|orders?\b|instructions)",
    ),
    (
        "claimed trust",
        True,
        rf"\b(?:tell|advise|direct|instruct|persuade|convince|urge) (?:them|the users?|users|people|everyone|customers) to (?:visit|download|install|buy|call|click|go to|open|enter|run)\b{_GAP}(?:{_OUTSIDE})",
    ),
    (
        "claimed trust",
        True,
        r"\b(?:fetch|download|open|visit|load|read|get|curl)\b[^\n]{0,40}https?://\S+[^\n]{0,40}\b(?:and|then)\b\W+(?:\w+\W+){0,2}?(?:follow|execute|run|obey|do what)\b",
    ),
    *LANGUAGES,
)


@cache
def phrases() -> tuple[Phrase, ...]:
    """Returns all patterns, compiled on first use."""
    return tuple(
        Phrase(kind, strong, prefixed(source)) for kind, strong, source in _SOURCES
    )


def scan(text: str) -> str:
    """Returns what in the text looks like an injected instruction; empty if nothing does."""
    return hidden(text) or scan_readings(map(SearchedText, readings(text)))


def scan_readings(texts: Iterable[SearchedText]) -> str:
    """Returns what in the readings of a text looks like an injected instruction; empty if nothing does."""
    return next((found for reading in texts if (found := _judge(reading))), "")


def _judge(reading: SearchedText) -> str:
    hints: list[tuple[int, int, str]] = []
    for phrase in phrases():
        if phrase.strong:
            if reading.search(phrase.pattern):
                return phrase.kind
            continue
        for number, found in enumerate(reading.finditer(phrase.pattern)):
            if number >= _MAX_HINTS_PER_KIND:
                break
            hints.append((found.start(), found.end(), phrase.kind))
    hints.sort()
    for (_, end, one), (start, _, two) in pairwise(hints):
        if one != two and start - end < _MAX_HINT_DISTANCE_CHARS:
            return f"{one} and {two}"
    return ""
