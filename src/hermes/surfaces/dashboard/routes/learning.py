"""Routes of memory, skills and proposals: show and change them, decide on proposals, revert changes."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hermes.app.learning.remote_lease import remote_lease
from hermes.commands.proposals import list_proposals
from hermes.errors import UsageError
from hermes.learning.change import (
    LearningNotFound,
    MemoryChange,
    MemoryEdit,
    Provenance,
)
from hermes.learning.history import HistoryEntry, RevertReport
from hermes.learning.learning_service import LearningService, open_learning
from hermes.learning.memory import FILES
from hermes.learning.memory_entries import Notes
from hermes.learning.skill import MAIN, Skill, parse
from hermes.learning.skill_records import SkillRecord, SkillUse
from hermes.settings.load import environment
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.commands import run_command
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.text.translation import translator

t = translator(__name__)


class MemoryFile(msgspec.Struct, frozen=True):
    name: str
    text: str
    fill: str
    length: int
    limit: int
    notes: list[str]


class MemoryView(msgspec.Struct, frozen=True):
    files: list[MemoryFile]
    flagged: list[Any]


class SkillRow(msgspec.Struct, frozen=True):
    name: str
    description: str
    origin: str
    enabled: bool
    pinned: bool
    problem: str
    source: str
    views: Annotated[int, Meta(description="How often the model read it.")]
    commands: Annotated[int, Meta(description="How often the user called it.")]
    last_used: Annotated[float, Meta(description="Unix seconds; 0 for never.")]


class SkillList(msgspec.Struct, frozen=True):
    skills: list[SkillRow]


class SkillText(msgspec.Struct, frozen=True):
    text: str


class FileName(msgspec.Struct, frozen=True):
    file: str = ""


class SkillSwitch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool | None = None
    pinned: bool | None = None


class ProposalQuery(msgspec.Struct, frozen=True):
    all: bool = False


class ProposalList(msgspec.Struct, frozen=True):
    proposals: list[Any]


class ProposalDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    decision: Literal["approve", "reject"]


class HistoryQuery(msgspec.Struct, frozen=True):
    under: Annotated[str, Meta(pattern=r"^(memories|skills(/[a-z0-9-]+)?)$")] = "skills"
    change: str = ""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class HistoryView(msgspec.Struct, frozen=True):
    """`diff` is what one change did, if one was named."""

    entries: list[HistoryEntry]
    diff: str
    missing: str


class Revert(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    change: str
    under: Literal["memories", "skills"]
    whole: bool = False


class LearningRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._settings = dashboard.app.settings.learning

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/api/memory", "observe", self.memory, answer=MemoryView),
            Endpoint(
                "POST",
                "/api/memory",
                "admin",
                self.note,
                body=MemoryEdit,
                answer=MemoryView,
            ),
            Endpoint("GET", "/api/skills", "observe", self.skills, answer=SkillList),
            Endpoint(
                "GET",
                "/api/skills/{name}",
                "observe",
                self.skill,
                FileName,
                answer=SkillText,
            ),
            Endpoint(
                "PATCH",
                "/api/skills/{name}",
                "admin",
                self.switch,
                body=SkillSwitch,
                answer=SkillList,
            ),
            Endpoint(
                "GET",
                "/api/proposals",
                "observe",
                self.proposals,
                ProposalQuery,
                answer=ProposalList,
            ),
            Endpoint(
                "POST",
                "/api/proposals/{id}",
                "approve",
                self.decide,
                body=ProposalDecision,
                answer=ProposalList,
            ),
            Endpoint(
                "GET",
                "/api/learning/history",
                "observe",
                self.history,
                HistoryQuery,
                answer=HistoryView,
            ),
            Endpoint(
                "POST",
                "/api/learning/revert",
                "approve",
                self.revert,
                body=Revert,
                answer=RevertReport,
            ),
        ]

    def memory(self) -> MemoryView:
        """What Hermes remembers, how full it is, and which notes are left out of the prompt."""
        memory = self._learning().memory
        limits = {
            "memory": self._settings.memory_limit,
            "user": self._settings.user_limit,
        }
        texts = {name: memory.read(name) for name in FILES}
        files = [
            MemoryFile(
                FILES[name],
                text,
                memory.fill(name),
                len(text),
                limits[name],
                [note.text for note in Notes(text).notes],
            )
            for name, text in texts.items()
        ]
        return MemoryView(files, msgspec.to_builtins(memory.flagged()))

    def note(self, call: EndpointCall) -> MemoryView:
        """Adds, replaces or removes one note, as the user's own change."""
        learning = self._learning()
        learning.home.ensure()
        learning.apply(MemoryChange((call.body,)), Provenance("user"))
        return self.memory()

    def skills(self) -> SkillList:
        """All skills, whether they are offered, and how often they were used."""
        skills = self._learning().skills
        uses, records = skills.records.uses(), skills.records.all()
        return SkillList(
            [
                _row(
                    one,
                    records.get(one.name, SkillRecord()),
                    uses.get(one.name, SkillUse()),
                )
                for one in skills.all()
            ]
        )

    def skill(self, call: EndpointCall) -> SkillText:
        """The text of a skill, or of one of its files, also of one that is not offered."""
        skills, name, file = (
            self._learning().skills,
            call.path["name"],
            call.query.file or MAIN,
        )
        skills.find(name)
        text = skills.text_of(name, file)
        if text is None:
            raise LearningNotFound(
                t("The skill {name} has no file {file}.", name=name, file=file)
            )
        return SkillText(parse(text).body.strip() if file == MAIN else text)

    def switch(self, call: EndpointCall) -> SkillList:
        """Enables or disables a skill; pins or unpins it."""
        body: SkillSwitch = call.body
        if body.enabled is None and body.pinned is None:
            raise UsageError(
                t("Nothing to change. Give enabled or pinned."),
                hint=t("Nothing was changed."),
            )
        learning = self._learning()
        learning.home.ensure()
        learning.skills.set(call.path["name"], enabled=body.enabled, pinned=body.pinned)
        return self.skills()

    def proposals(self, call: EndpointCall) -> ProposalList:
        """The pending proposals, each with its diff; or all of them, decided ones included."""
        found = run_command(self._board.app, list_proposals, all_=call.query.all)
        return ProposalList(msgspec.to_builtins(found.proposals))

    def decide(self, call: EndpointCall) -> ProposalList:
        """Applies a proposed change, or rejects it."""
        learning, name = self._learning(), call.path["id"]
        decided = (
            learning.approve(name)
            if call.body.decision == "approve"
            else learning.reject(name)
        )
        return ProposalList([msgspec.to_builtins(decided)])

    def history(self, call: EndpointCall) -> HistoryView:
        """How memory or skills changed, newest first; with `change`, what that one did."""
        history, query = self._learning().history, call.query
        if history.missing:
            return HistoryView([], "", history.missing)
        diff = history.diff(query.change, query.under) if query.change else ""
        return HistoryView(history.log(query.under, limit=query.limit), diff, "")

    def revert(self, call: EndpointCall) -> RevertReport:
        """Reverts one change; later ones stay. With `whole`, restores the state right after that change."""
        body: Revert = call.body
        return self._learning().revert(body.change, body.under, whole=body.whole)

    def _learning(self) -> LearningService:
        app = self._board.app
        return open_learning(
            app.home,
            self._settings,
            environment(),
            clock=app.clock,
            exclusive_remote=remote_lease(app.settings, lambda: app.store),
        )


def _row(skill: Skill, record: SkillRecord, use: SkillUse) -> SkillRow:
    return SkillRow(
        name=skill.name,
        description=skill.description,
        origin=skill.origin,
        enabled=skill.enabled,
        pinned=skill.pinned,
        problem=skill.problem,
        source=record.source,
        views=use.views,
        commands=use.commands,
        last_used=use.last,
    )
