"""The roles of people: owners and users, by the settings or by pairing. Nobody else is let in.

A stranger gets a pairing code, which the owner types on the machine itself. Codes are
short-lived and few at a time, only their hash is stored, and after some wrong ones none
is accepted for a while.
"""

import hashlib
import hmac
import secrets
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from hermes.core.ports import Clock
from hermes.errors import HermesError, UsageError
from hermes.settings.gateway import GatewaySettings
from hermes.store.people import KnownPerson, PairingRequest, People
from hermes.text.translation import translator

t = translator(__name__)


Role: TypeAlias = Literal["owner", "user", ""]

CODE_LIFETIME_S = 3600.0
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # without letters that look alike
_CODE_CHARACTERS = 8
_MAX_CODES_PER_PLATFORM = 3
_MAX_WRONG_CODES = 5
_LOCK_S = 3600.0
"""How long no code is accepted after too many wrong ones."""
_APPROVER_CHECK_S = 2.0
_MAX_PERSON_NAME_CHARACTERS = 100


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    """The sender of a message, by the platform's own stable id, never by a name that people choose.

    `verified` is False when the platform does not vouch for the id; such a person has no role.
    """

    id: str
    name: str = ""
    verified: bool = True
    language: str = ""
    """The language of their app, such as `pt-br`, where the platform tells it."""


class PeopleAccess:
    """Roles and pairing of one home."""

    def __init__(self, settings: GatewaySettings, people: People, clock: Clock) -> None:
        self._settings = settings
        self._people = people
        self._clock = clock
        self._checked_at = float("-inf")
        self._approver = False

    def use(self, settings: GatewaySettings) -> None:
        """Switches to other settings."""
        self._settings = settings
        self._checked_at = float("-inf")

    def role(self, platform: str, person: Person) -> Role:
        """The role of a person; empty for strangers, and for ids that the platform does not vouch for."""
        if not person.verified or not person.id:
            return ""
        name = f"{platform}:{person.id}"
        known = self._people.find(platform, person.id)
        if known is not None and known.role == "blocked":
            return ""
        if name in self._settings.owners or (
            known is not None and known.role == "owner"
        ):
            return "owner"
        if known is not None or any(
            _allows(entry, name) for entry in self._settings.allow
        ):
            return "user"
        return ""

    def may_approve(self, role: Role) -> bool:
        """Whether a person with this role may answer a request for approval."""
        return role == "owner" or (
            role == "user" and self._settings.approvers == "user"
        )

    def owners(self) -> list[tuple[str, str]]:
        """Platform and id of each owner."""
        named = [
            (platform, person)
            for platform, _, person in (
                one.partition(":") for one in self._settings.owners
            )
        ]
        paired = [
            (one.platform, one.id)
            for one in self._people.every()
            if one.role == "owner"
        ]
        return [
            one
            for one in dict.fromkeys([*named, *paired])
            if self.role(one[0], Person(one[1])) == "owner"
        ]

    def has_approver(self) -> bool:
        """Whether anybody may approve; checked from time to time."""
        now = self._clock.now()
        if not 0 <= now - self._checked_at < _APPROVER_CHECK_S:
            self._checked_at, self._approver = now, self._find_approver()
        return self._approver

    def _find_approver(self) -> bool:
        if self._settings.owners:
            return True
        people = self._people.every()
        if self._settings.approvers == "user":
            return bool(self._settings.allow) or any(
                one.role != "blocked" for one in people
            )
        return any(one.role == "owner" for one in people)

    def request(self, platform: str, person: Person) -> str:
        """A new code for a stranger; empty when they have one, too many wait, or pairing is off."""
        if (
            not self._settings.pairing
            or not person.verified
            or not person.id
            or self._is_blocked(platform, person)
        ):
            return ""
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARACTERS))
        now = self._clock.now()
        request = PairingRequest(
            platform,
            person.id,
            person.name[:_MAX_PERSON_NAME_CHARACTERS],
            _digest(platform, code),
            now,
        )
        return (
            code
            if self._people.ask(
                request, most=_MAX_CODES_PER_PLATFORM, since=now - CODE_LIFETIME_S
            )
            else ""
        )

    def waiting(self) -> list[PairingRequest]:
        """The people who have a valid code."""
        return self._people.requests(self._clock.now() - CODE_LIFETIME_S)

    def approve(
        self, code: str, role: Literal["owner", "user", ""] = ""
    ) -> KnownPerson:
        """Lets in the person who has this code: as the first owner, unless a role is given."""
        since = self._clock.now() - _LOCK_S
        if self._people.failed(since, note=False) >= _MAX_WRONG_CODES:
            raise HermesError(
                t.later("Pairing is locked: there were too many wrong codes."),
                hint=t.later("It unlocks within an hour. Nobody was approved."),
            )
        typed = code.strip().upper().replace("-", "")
        for request in self.waiting():
            if hmac.compare_digest(request.digest, _digest(request.platform, typed)):
                chosen = role or ("user" if self._has_owner() else "owner")
                known = KnownPerson(
                    request.platform,
                    request.person,
                    request.name,
                    chosen,
                    self._clock.now(),
                )
                self._people.put(known)
                return known
        left = _MAX_WRONG_CODES - self._people.failed(since, note=True)
        what = t.later("Pairing is locked for an hour.")
        if left > 0:
            what = t.later("{count} more try.", "{count} more tries.", count=left)
        raise UsageError(
            t.later("There is no such code, or it is older than an hour."),
            hint=t.later("Nobody was approved. {what}", what=what),
        )

    def revoke(self, platform: str, person: str) -> bool:
        """Removes a person who was paired; returns False when they were not."""
        return self._people.remove(platform, person)

    def _has_owner(self) -> bool:
        return bool(self._settings.owners) or any(
            one.role == "owner" for one in self._people.every()
        )

    def _is_blocked(self, platform: str, person: Person) -> bool:
        known = self._people.find(platform, person.id)
        return known is not None and known.role == "blocked"


def _digest(platform: str, code: str) -> str:
    """A slow hash, because a code is short and its hash lies in a file."""
    return hashlib.scrypt(
        code.encode(), salt=f"hermes/{platform}".encode(), n=2**12, r=8, p=1
    ).hex()


def _allows(entry: str, name: str) -> bool:
    """Whether an entry of the settings matches a person: `telegram:*`, or an exact id."""
    if entry.endswith(":*"):
        return fnmatchcase(name, entry)
    return entry == name
