"""`hermes skills`: what Hermes has learned to do; looking, writing, installing, switching, deciding on proposals."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from hermes.errors import UsageError
from hermes.learning.change import Provenance, SkillChange, SkillFileChange
from hermes.learning.learning_service import LearningService
from hermes.learning.scan import SkillFinding, scan_files
from hermes.learning.skill import MAIN, Skill, problems, read_files, require_name
from hermes.learning.skill_install import altered
from hermes.learning.skill_records import SkillUse
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.cli.skills_history import (
    add_history,
    learning_here,
    show_history,
    take_back,
)
from hermes.surfaces.terminal.text import (
    ago,
    clean,
    count,
    cut,
    one_line,
    stdout_screen,
    table,
)

Handler: TypeAlias = Callable[[LearningService, argparse.Namespace], int]

_EXAMPLES = """\
examples:
  hermes skills list                                  all skills
  hermes skills install ./brew-tea                    from a folder, a .zip or .tar file
  hermes skills install https://host/repo.git#skills/brew-tea
  hermes skills proposals                             changes that wait for your word
  hermes skills approve p3                            make one of them
  hermes skills list --archived                       what was retired; restore brings it back
  hermes skills history brew-tea                      how one skill changed
  hermes skills revert 3f2a91c0de                     take a change back

A skill is a folder with a SKILL.md in HERMES_HOME/skills. In the chat each one is a command: /brew-tea
"""
_TEMPLATE = """\
---
name: {name}
description: What it does, and when to use it, in the words of a request.
---
# {name}

1. The first step, with exact commands.
2. How to check that it worked.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser
    )
    listed = add_action(actions, "list", "list all skills")
    listed.add_argument(
        "--archived", action="store_true", help="those that were retired"
    )
    for action in (
        listed,
        add_action(actions, "stats", "show how often each skill is used"),
    ):
        action.add_argument("--json", action="store_true", help="print JSON")
    show = add_action(actions, "show", "show the text of a skill")
    show.add_argument("name", metavar="NAME")
    show.add_argument(
        "file", metavar="FILE", nargs="?", default="", help="one of its files"
    )
    new = add_action(actions, "new", "begin a skill of your own")
    new.add_argument("name", metavar="NAME", help="lower-case words with hyphens")
    check = add_action(actions, "check", "look for mistakes and dangers in skills")
    check.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default="",
        help="one skill, or a folder; all otherwise",
    )
    for name, summary in (
        ("enable", "offer a skill again"),
        ("disable", "stop offering a skill"),
        ("pin", "let only yourself change a skill"),
        ("unpin", "let Hermes improve a skill it wrote"),
        ("retire", "put a skill into the archive"),
        ("restore", "bring a skill back from the archive"),
    ):
        add_action(actions, name, summary).add_argument("name", metavar="NAME")
    _add_install(actions)
    _add_proposals(actions)
    add_history(actions, "skills")


def _add_install(actions: "argparse._SubParsersAction[Parser]") -> None:
    install = add_action(
        actions, "install", "install a skill from a folder, an archive or a git address"
    )
    install.add_argument(
        "source", metavar="SOURCE", help="a git address may end in #FOLDER"
    )
    install.add_argument(
        "--skill", metavar="NAME", default="", help="which one, when there are several"
    )
    install.add_argument(
        "--hash", metavar="SHA256", default="", help="refuse any other files than these"
    )
    install.add_argument(
        "--dry-run", action="store_true", help="only show what would be installed"
    )
    install.add_argument("--yes", action="store_true", help="don't ask")
    install.add_argument(
        "--despite-dangers",
        action="store_true",
        help="install although something dangerous was found",
    )


def _add_proposals(actions: "argparse._SubParsersAction[Parser]") -> None:
    listed = add_action(
        actions,
        "proposals",
        "show changes of memory and skills that wait for your word",
    )
    listed.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        default="",
        help="one of them, with its difference",
    )
    listed.add_argument(
        "--all", action="store_true", help="also those that were decided"
    )
    listed.add_argument("--json", action="store_true", help="print JSON")
    for name, summary in (
        ("approve", "make proposed changes"),
        ("reject", "put proposed changes aside for good"),
    ):
        add_action(actions, name, summary).add_argument(
            "ids", metavar="ID", nargs="+", help="such as p3; or all"
        )


def run(args: argparse.Namespace) -> int:
    learning = learning_here()
    if args.action == "revert":
        return take_back(learning, args, "skills")
    if args.action == "history":
        one = any(skill.name == args.change for skill in learning.skills.all())
        under = f"skills/{args.change}" if one else "skills"
        args.change = "" if one else args.change
        return show_history(learning, args, under)
    handlers: dict[str, Handler] = {
        "show": _show,
        "new": _new,
        "check": _check,
        "stats": _stats,
        "install": _install,
        "retire": _retire,
        "restore": _restore,
        **dict.fromkeys(("enable", "disable", "pin", "unpin"), _switch),
        **dict.fromkeys(("proposals", "approve", "reject"), _decide),
    }
    return handlers.get(args.action, _list)(learning, args)


def _show(learning: LearningService, args: argparse.Namespace) -> int:
    print(clean(learning.skills.view(args.name, args.file)))
    return 0


def _install(learning: LearningService, args: argparse.Namespace) -> int:
    from hermes.surfaces.cli.skills_install import install

    return install(learning, args)


def _decide(learning: LearningService, args: argparse.Namespace) -> int:
    from hermes.surfaces.cli.skills_proposals import decide

    return decide(learning, args)


def _retire(learning: LearningService, args: argparse.Namespace) -> int:
    learning.apply(SkillChange(args.name, retire=True), Provenance("user"))
    print(f"{args.name} is in the archive. Back: hermes skills restore {args.name}")
    return 0


def _restore(learning: LearningService, args: argparse.Namespace) -> int:
    skill = learning.skills.restore(args.name)
    print(f"{skill.name} is back. New sessions know it.")
    return 0


def _list_archived(learning: LearningService, *, as_json: bool) -> int:
    found = learning.skills.archived()
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return 0
    screen, now = stdout_screen(), learning.now()
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        print(
            cut(
                f"{one.name:<{width}}  {ago(one.when, now):<10}  {one_line(one.description)}",
                screen.columns,
            )
        )
    print(
        "Bring one back with: hermes skills restore NAME"
        if found
        else "The archive is empty."
    )
    return 0


def _list(learning: LearningService, args: argparse.Namespace) -> int:
    if getattr(args, "archived", False):
        return _list_archived(learning, as_json=args.json)
    skills = learning.skills.all()
    if getattr(args, "json", False):
        data = [msgspec.to_builtins(skill, enc_hook=str) for skill in skills]
        print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
        return 0
    screen = stdout_screen()
    width = max((len(skill.name) for skill in skills), default=0)
    for skill in skills:
        line = cut(
            f"{skill.name:<{width}}  {_state(skill):<9}  {one_line(skill.description)}",
            screen.columns,
        )
        print(line if skill.offered else screen.style.dim(line))
    for skill in skills:
        if skill.problem:
            print(
                screen.style.yellow(
                    f"{skill.name} is not offered: {one_line(skill.problem)}"
                )
            )
    waiting, retired = (
        len(learning.proposals.pending()),
        len(learning.skills.archived()),
    )
    if retired:
        print(
            f"\n{count(retired, 'skill')} in the archive: hermes skills list --archived"
        )
    if waiting:
        print(
            f"\n{count(waiting, 'proposed change')} to decide: hermes skills proposals"
        )
    return 0


def _state(skill: Skill) -> str:
    if not skill.enabled:
        return "disabled"
    return (
        "pinned"
        if skill.pinned
        else {"agent": "learned", "user": "yours"}.get(skill.origin, skill.origin)
    )


def _new(learning: LearningService, args: argparse.Namespace) -> int:
    name = require_name(args.name)
    if learning.skills.text_of(name, MAIN) is not None:
        raise UsageError(
            f"There is a skill {name} already.",
            hint=f"See it with: hermes skills show {name}",
        )
    change = SkillChange(
        name, (SkillFileChange(MAIN, None, _TEMPLATE.format(name=name)),)
    )
    learning.home.ensure()
    learning.apply(change, Provenance("user"))
    print(learning.home.skills / name / MAIN)
    print(f"Write it there, then: hermes skills check {name}")
    return 0


def _check(learning: LearningService, args: argparse.Namespace) -> int:
    """Exit code 1 when something is wrong with a skill."""
    name: str = args.name
    folder = Path(name)
    if name and (folder / MAIN).is_file():
        return 1 if _report(folder.resolve().name, *_looked_at(folder)) else 0
    skills = [learning.skills.find(name)] if name else learning.skills.all()
    bad = 0
    for skill in skills:
        wrong, findings = _looked_at(skill.folder, bundled=skill.origin == "bundled")
        if skill.origin == "installed" and altered(learning.skills, skill.name):
            findings.append(
                SkillFinding("caution", "is no longer what was installed", MAIN)
            )
        bad += _report(skill.name, wrong, findings)
    return 1 if bad else 0


def _looked_at(
    folder: Path, *, bundled: bool = False
) -> tuple[list[str], list[SkillFinding]]:
    files = read_files(folder)
    wrong = problems(
        files.get(MAIN, b"").decode("utf-8", "replace"), folder.resolve().name
    )
    return wrong, [] if bundled else scan_files(files)


def _report(name: str, wrong: list[str], findings: list[SkillFinding]) -> bool:
    style = stdout_screen().style
    for text in wrong:
        print(f"{style.red('wrong')}    {name}: {one_line(text)}")
    for finding in findings:
        paint = style.red if finding.level == "danger" else style.yellow
        print(
            f"{paint(f'{finding.level:<8}')} {name}: {one_line(str(finding).partition(': ')[2])}"
        )
    if not wrong and not findings:
        print(f"{style.green('ok')}       {name}")
    return bool(wrong) or any(finding.level == "danger" for finding in findings)


def _switch(learning: LearningService, args: argparse.Namespace) -> int:
    action, name = args.action, args.name
    learning.home.ensure()
    if action in ("enable", "disable"):
        learning.skills.set(name, enabled=action == "enable")
    else:
        learning.skills.set(name, pinned=action == "pin")
    words = {
        "enable": "is offered", "disable": "is no longer offered", "pin": "is changed by you alone",
        "unpin": "may be improved, if Hermes wrote it",
    }  # fmt: skip
    print(f"{name} {words[action]}. New sessions know it.")
    return 0


def _stats(learning: LearningService, args: argparse.Namespace) -> int:
    uses = learning.skills.records.uses()
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(uses), indent=2).decode())
        return 0
    now = learning.now()
    rows = [["skill", "read", "called", "last"]]
    for skill in sorted(
        learning.skills.all(), key=lambda skill: -uses.get(skill.name, SkillUse()).last
    ):
        use = uses.get(skill.name, SkillUse())
        rows.append(
            [
                skill.name,
                str(use.views),
                str(use.commands),
                ago(use.last, now) if use.last else "never",
            ]
        )
    for line in table(rows, right=(1, 2)):
        print(line)
    return 0
