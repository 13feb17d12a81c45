"""Notices about compaction and checks, in the same words on every surface."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes.schema.shown_reasons import state_in_words
from hermes.surfaces.terminal.text import cut, money, one_line
from hermes.text.translation import to_translate, translator

t = translator(__name__)

COMPACTION = frozenset(
    ("session.compacted", "session.trimmed", "session.compaction_failed")
)
"""Events about a compaction, successful or not."""


_MAX_SAID_COLUMNS = 200  # of what a background task said


def compaction_notice(event: Mapping[str, Any]) -> str:
    """Returns the notice for a compaction event."""
    match event["type"]:
        case "session.compacted":
            return t(
                "The conversation got too long for the model, so its middle was summarized:"
                " about {before:,} tokens became {after:,}.",
                before=event.get("before", 0),
                after=event.get("after", 0),
            )
        case "session.trimmed":
            number = len(event.get("call_ids") or ())
            if not number:
                return t(
                    "The conversation got too long for the model, so it no longer sees old pictures."
                )
            return t(
                "The conversation got too long for the model, so it no longer sees {count} old result.",
                "The conversation got too long for the model, so it no longer sees {count} old results.",
                count=number,
            )
        case _:
            why = one_line(str(event.get("detail", ""))).rstrip(".")
            return t(
                "The conversation could not be shortened: {why}. Nothing was removed; Hermes will try again later.",
                why=why,
            )


def reviewed_notice(event: Mapping[str, Any], cost: float) -> str:
    """Returns what a review in the background found, and what it cost."""
    if event.get("failure"):
        found = t(
            "The background review failed: {failure}",
            failure=one_line(event["failure"]),
        )
    elif event.get("summary"):
        found = one_line(event["summary"])
    else:
        found = t("Reviewed the conversation in the background: nothing to remember.")
    review = t("Review: /learn or Alt-L")
    how = f" {review}" if event.get("proposals") else ""
    spent = f" ({money(cost)})" if cost else ""
    return f"{found}{spent}{how}"


GOAL = "agent.goal."
"""How the topics of goals begin."""
_VERDICTS = {
    "done": to_translate("Goal reached"),
    "continue": to_translate("Goal not reached yet"),
    "wait": to_translate("Goal waits"),
    "needs_you": to_translate("The goal needs you"),
}


def goal_notice(event: Mapping[str, Any], resume: str = "/goal resume") -> str:
    """Returns the notice for an event about a goal; empty for one that needs none.

    `resume` is the command that continues it.
    """
    why = one_line(str(event.get("reason") or ""))
    match event["type"].removeprefix(GOAL):
        case "set":
            state = t("Goal, drafted") if event.get("is_draft") else t("Goal")
            notice = f"{state}: {one_line(event['text'])}"
        case "judged":
            notice = _judged_notice(event, why)
        case "woken":
            notice = f"{why} {t('Going on with the goal.')}".lstrip()
        case "paused" if event.get("by") == "hermes":
            notice = t(
                "Goal paused. {why} To continue: {resume}", why=why, resume=resume
            )
        case _:  # what a person did themselves is said by the command
            notice = ""
    return notice


def _judged_notice(event: Mapping[str, Any], why: str) -> str:
    head, turns = t.marked(_VERDICTS[event["verdict"]]), event.get("turns", 0)
    took = t("after {count} turn", "after {count} turns", count=turns) if turns else ""
    after = f" {took}" if took else ""
    check = event.get("check")
    ran = ""
    if check:
        outcome = check["outcome"].replace("_", " ")
        ran = f" [{one_line(check['command'])}: {outcome}]"
    return f"{head}{after}{f': {why}' if why else '.'}{ran}"


_MARKS = re.compile(r"\*\*|`")  # of Markdown


def child_notice(event: Mapping[str, Any]) -> str:
    """Returns how a session ended that worked in the background."""
    kinds = {"background": t("Background task"), "review": t("Review")}
    name = kinds.get(event.get("kind", ""), t("Child agent"))
    reason = event.get("reason") or "ended"
    how = state_in_words(reason)
    if reason != "done":
        how = f"{how} {event.get('detail', '')}".rstrip()
    title = one_line(event.get("title") or "")
    label = f" ({cut(title, 40)})" if title else ""
    cost = money(event.get("cost_usd") or 0.0)
    said = cut(_MARKS.sub("", one_line(event.get("text") or "")), _MAX_SAID_COLUMNS)
    ending = f"{how}{f', {cost}' if cost else ''}"
    return f"{name} {event['child'][-6:]}{label} {ending}{f': {said}' if said else '.'}"


_MAX_EVIDENCE_LINES = 12  # of the output of one check


def evidence_lines(event: Mapping[str, Any]) -> Iterator[str]:
    """The lines that show what the project's rules found: each check, and the end of what a failed one printed."""
    checks = event.get("checks") or ()
    for number, line in enumerate(str(event.get("detail", "")).splitlines()):
        yield line
        output = str(checks[number].get("output") or "") if number < len(checks) else ""
        yield from (f"  {one}" for one in output.splitlines()[-_MAX_EVIDENCE_LINES:])
