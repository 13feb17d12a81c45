"""Finds skills by Hermes that nobody uses, to archive them. Nothing is deleted; the history can
restore them.
"""

from hermes.learning.change import SkillChange
from hermes.learning.learning_service import LearningService
from hermes.learning.skill_records import SkillUse

_DAY_S = 86_400.0


def unused(learning: LearningService, now: float, days: int) -> list[SkillChange]:
    """Returns changes that retire skills: written by Hermes, not pinned or edited by the user, and
    long unused.
    """
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
