"""Puts skills that Hermes wrote and nobody uses into the archive. Nothing is deleted; the history brings it back."""

from hermes.learning.change import SkillChange
from hermes.learning.learning_service import LearningService
from hermes.learning.skill_records import SkillUse

_DAY_S = 86_400.0


def unused(learning: LearningService, now: float, days: int) -> list[SkillChange]:
    """Skills to retire: of Hermes' own making, not pinned or touched by the user, and long without use."""
    if not days:
        return []
    uses, records = learning.skills.records.uses(), learning.skills.records.all()
    found: list[SkillChange] = []
    for skill in learning.skills.all():
        if skill.origin != "agent" or learning.skills.is_users(skill.name):
            continue
        last = max(uses.get(skill.name, SkillUse()).last, records[skill.name].created)
        if now - last > days * _DAY_S:
            found.append(SkillChange(skill.name, retire=True))
    return found
