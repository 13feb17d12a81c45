"""A question to the person as a menu: choices with keys, a second step for a rule, and typed text.

`QuestionMenu` is the state machine. It knows no terminal: a live screen passes keys to `press` and draws `rows`; a
plain one prints the choices and passes whole lines to `line`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.surfaces.terminal.call_words import call_words
from hermes.text.translation import shown_approval_scope, shown_question, translator

t = translator(__name__)

Word: TypeAlias = Literal["once", "session", "always", "deny"]
Step: TypeAlias = Literal["choose", "rule", "reason", "text"]
Act: TypeAlias = Literal["view", "edit", "stop"]

READABLE_AFTER_S = 0.3
"""A key pressed earlier than this after the question appeared was not meant for it."""
PAUSE_S = 1.0
"""A person who is typing must pause this long before a key answers."""
OFFER_RULE_AFTER = 5
"""After so many similar approvals, a rule is offered."""

_EDITS = "changes to files in "  # not translated: a rule begins with it
_EXACTLY = "exactly `"  # not translated: a rule for one command begins with it
_NO_BECAUSE = lazy_pattern(r"(?:n|no)[,:;.]?\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_WORDS = {
    "yes": "y",
    "once": "y",
    "session": "s",
    "always": "a",
    "no": "n",
    "deny": "n",
    "view": "v",
    "edit": "e",
}


def is_rules_check(event: Mapping[str, Any]) -> bool:
    """Returns whether a question, or its answer, is about commands of the project's rules. A yes holds until they change."""
    is_verify = event.get("name", "verify") == "verify"
    return is_verify and str(event["call_id"]).startswith("check-")


class PersonAnswer(NamedTuple):
    """An answer: a decision on a call, with a reason for a denial, or the text a tool asked for."""

    call_id: str
    word: Word | None
    text: str = ""
    session: str = ""
    """The session that asked: the one shown, or a child of it."""
    shown: str = ""
    """The hash of the request that was on the screen."""
    rule: str = ""
    """What `always` is to cover; empty for only the same call."""
    plan: str = ""
    """The plan that was asked about, as the person changed it."""


class MenuChoice(msgspec.Struct, frozen=True):
    """One row of a menu. `key` chooses it, as its number does."""

    key: str
    label: str


class QuestionMenu:
    """The choices of one question, and what was chosen so far.

    `last_key_at` is when the person last pressed a key before the question appeared.
    """

    def __init__(
        self,
        request: Mapping[str, Any],
        clock: Callable[[], float],
        *,
        last_key_at: float = float("-inf"),
    ) -> None:
        self.request = request
        self.step: Step = "choose"
        self.at = 0
        self.plan = ""
        """The plan as the person changed it; empty if unchanged."""
        self._clock = clock
        self._readable_at = max(clock() + READABLE_AFTER_S, last_key_at + PAUSE_S)
        if not self.choices:
            self.step = "text"

    @property
    def is_approval(self) -> bool:
        """Whether a call waits for approval, and not a question for words."""
        return self.request["type"] == "agent.approval.requested"

    @property
    def has_choices(self) -> bool:
        """Whether there is something to choose from, and not only words to type."""
        return self.is_approval or bool(self.request.get("options"))

    @property
    def is_readable(self) -> bool:
        """Whether a key counts now. Any key that comes too early belongs to what was being typed."""
        return self._clock() >= self._readable_at

    @property
    def types(self) -> bool:
        """Whether words are typed now."""
        return self.step in ("reason", "text")

    @property
    def offers_rule(self) -> bool:
        """Whether so many similar calls were allowed that a rule is offered."""
        return (
            self.is_approval
            and self._is_memorable
            and self.request.get("similar", 0) >= OFFER_RULE_AFTER
        )

    @property
    def rule(self) -> str:
        """What a rule would cover; empty for only the same call."""
        if self._is_memorable:
            return str(self.request.get("scope") or "")
        return ""

    @property
    def _is_memorable(self) -> bool:
        return bool(self.request.get("memorable", True))

    @property
    def choices(self) -> Sequence[MenuChoice]:
        """The rows to choose from at this step."""
        if self.step == "rule":
            return (
                MenuChoice("y", t("Make this rule, and go on")),
                MenuChoice("n", t("Back, without a rule")),
            )
        if not self.is_approval:
            options = [
                MenuChoice("", shown_question(one))
                for one in self.request.get("options") or ()
            ]
            if not options:
                return ()
            if self.request.get("plan"):
                back = MenuChoice("n", t("No: say what should be different"))
                return (*options, MenuChoice("e", t("Edit the plan first")), back)
            return (*options, MenuChoice("", t("Something else: type your answer")))
        is_check = is_rules_check(self.request)
        yes = MenuChoice(
            "y", t("Yes, until the rules change") if is_check else t("Yes")
        )
        no = MenuChoice("n", t("No, and say why or what instead"))
        if not self._is_memorable:
            return (yes, no)
        return (
            yes,
            MenuChoice("s", self._session_label()),
            MenuChoice("a", t("Always allow exactly this ...") if self._is_exact else t("Always allow this kind ...")),
            no,
        )  # fmt: skip

    @property
    def _is_exact(self) -> bool:
        """Whether a rule would cover only the same call."""
        return not self.rule or self.rule.startswith(_EXACTLY)

    def _session_label(self) -> str:
        rule = self.rule
        if rule.startswith(_EDITS):
            return t("Yes, and don't ask again for edits in this folder until I quit")
        what = t("exactly this") if self._is_exact else shown_approval_scope(rule)
        return t("Yes, and don't ask again for {what} until I quit", what=what)

    @property
    def prompt(self) -> str:
        """The label before the words that are typed."""
        if self.step == "reason":
            return t("Why not, or what instead?")
        return (
            t("What should change?") if self.request.get("plan") else t("Your answer")
        )

    @property
    def title(self) -> Sequence[str]:
        """The lines above the choices. A rule is written out before it is made."""
        if self.step == "rule":
            return (
                t("New rule, for every session from now on:"),
                t(
                    "Hermes does this without asking: {rule}",
                    rule=shown_approval_scope(self.rule) or self._exactly(),
                ),
                t(
                    "It still asks about anything riskier. /permissions takes the rule back."
                ),
            )
        if self.step == "reason":
            return ()
        if not self.is_approval:
            if self.request.get("plan"):
                return (t("Start the work?"),)
            return ()
        if self.offers_rule:
            times = self.request["similar"]
            return (
                t(
                    "Allow? You have allowed this kind {times} times; a makes it a rule.",
                    times=times,
                ),
            )
        return (t("Allow?"),)

    def _exactly(self) -> str:
        """The rule for one call, in words."""
        label = call_words(self.request["name"], self.request["arguments"]).label
        return t("{label} (exactly this call, and no other)", label=label)

    def touched(self) -> None:
        """Notes a key that came too early: the person is typing something else."""
        if not self.is_readable:
            self._readable_at = self._clock() + PAUSE_S

    def press(  # noqa: PLR0911 - one line for each key
        self, key: str
    ) -> PersonAnswer | Act | None:
        """Handles a key by name (`up`, `enter`, `escape`, a character). Returns an answer, or what the screen should do."""
        if not self.is_readable:
            self.touched()
            return None
        count = len(self.choices)
        if key in ("escape", "c-c"):
            return self._back()
        if key in ("up", "down", "tab") and count:
            self.at = (self.at + (-1 if key == "up" else 1)) % count
        elif key == "enter" and count:
            return self._choose(self.at)
        elif key.isdecimal() and 1 <= int(key) <= count:
            return self._choose(int(key) - 1)
        elif (place := self._place(key.lower())) >= 0:
            return self._choose(place)
        elif key.lower() == "v" and (self.is_approval or self.request.get("plan")):
            return "view"
        return None

    def say(self, text: str) -> PersonAnswer | None:
        """Handles typed words. Returns None if they are no answer."""
        words = text.strip()
        call_id = self.request["call_id"]
        if self.step == "reason":
            return PersonAnswer(call_id, "deny", words.lstrip(",:;. "))
        if self.step == "text" and words:
            return PersonAnswer(call_id, None, words)
        return None

    def line(self, text: str) -> PersonAnswer | Act | None:
        """Handles a whole line, of a terminal that only prints: a number, a key, a word or an answer."""
        words = text.strip()
        if self.types:
            return self.say(words)
        because = _NO_BECAUSE.fullmatch(words) if self.is_approval else None
        if because and self.step == "choose":
            return PersonAnswer(self.request["call_id"], "deny", because[1])
        is_number = words.isdecimal() and 1 <= int(words) <= len(self.choices)
        key = words if is_number else _WORDS.get(words.lower(), words.lower())
        if is_number or (len(key) == 1 and (key == "v" or self._place(key) >= 0)):
            self._readable_at = float("-inf")  # the caller checked when it was typed
            return self.press(key)
        if not self.is_approval and self.step == "choose" and words:
            return PersonAnswer(self.request["call_id"], None, words)
        return None

    def typing(self, first: str = "") -> bool:
        """Starts free text with a character that chooses nothing, if words are an answer here."""
        is_free = not self.is_approval and not self.request.get("plan")
        if (
            self.step == "choose"
            and is_free
            and self.is_readable
            and first.isprintable()
        ):
            self.step = "text"
            return True
        return False

    def _place(self, key: str) -> int:
        """The place of the choice with that key; -1 if there is none."""
        keys = [one.key for one in self.choices]
        return keys.index(key) if key and key in keys else -1

    def _choose(self, place: int) -> PersonAnswer | Act | None:
        chosen, call_id = self.choices[place], self.request["call_id"]
        if self.step == "rule":
            if chosen.key == "y":
                return PersonAnswer(call_id, "always", rule=self.rule)
            return self._back()
        if not self.is_approval:
            return self._option(place)
        match chosen.key:
            case "y":
                return PersonAnswer(call_id, "once")
            case "s":
                return PersonAnswer(call_id, "session")
            case "a":
                self._go("rule")
            case _:
                self._go("reason")
        return None

    def _option(self, place: int) -> PersonAnswer | Act | None:
        options = self.request.get("options") or ()
        if place < len(options):
            call_id = self.request["call_id"]
            return PersonAnswer(call_id, None, options[place], plan=self.plan)
        if self.choices[place].key == "e":
            return "edit"
        self._go("text")
        return None

    def _go(self, step: Step) -> None:
        """Goes to another step. What it shows has to be readable first, too."""
        self.step, self.at = step, 0
        if step == "rule":
            self._readable_at = self._clock() + READABLE_AFTER_S

    def _back(self) -> Act | None:
        """Goes back one step; from the first one, stops the turn."""
        if self.step == "choose" or not self.has_choices:
            return "stop"
        self._go("choose")
        return None
