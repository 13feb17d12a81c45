"""A process that changes memory and skills without end, and says so; the test kills it. Run with home and a number."""

import itertools
import os
import sys
from pathlib import Path

from hermes.learning.change import (
    MemoryChange,
    MemoryEdit,
    Provenance,
    SkillChange,
    SkillFileChange,
)
from hermes.learning.learning_service import open_learning
from hermes.settings import Home
from hermes.settings.sections import LearningSettings

MODEL = Provenance("model", "session-1", "turn-1")


def main() -> None:
    settings = LearningSettings(memory_limit=50_000, user_limit=50_000)
    learning = open_learning(Home(Path(sys.argv[1])), settings, os.environ)
    for number in itertools.count(1):
        name = f"n{sys.argv[2]}-{number}"
        edits = (MemoryEdit("add", name), MemoryEdit("add", name, file="user"))
        learning.apply(MemoryChange(edits), MODEL)
        text = f"---\nname: {name}\ndescription: Does {name}. Use it.\n---\n1. Read notes.md.\n"
        files = (
            SkillFileChange("SKILL.md", None, text),
            SkillFileChange("notes.md", None, "whole\n"),
        )
        learning.apply(SkillChange(name, files), MODEL)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
