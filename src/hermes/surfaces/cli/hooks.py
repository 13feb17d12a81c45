"""`hermes hooks`: which hooks there are, trusting one exactly as it is, and trying it out."""

import argparse
import asyncio
import inspect
import sys
import time
import traceback
from typing import Any

import msgspec

from hermes.errors import HermesError
from hermes.plugins.hooks import EVENTS, HANDLER, Hook, Hooks
from hermes.settings.load import find_home
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.terminal.text import one_line, stdout_screen, table

_STATES = {
    "off": "new: off until you trust it",
    "trusted": "trusted",
    "changed": "changed since you trusted it: off until you trust it again",
    "broken": "can't be used",
}
_SAMPLE = {
    "platform": "test",
    "user": "",
    "session_id": "test-session",
    "turn_id": "test-turn",
    "message": "hello",
    "response": "Hello. How can I help?",
    "reason": "done",
}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser
    )
    every = add_action(actions, "list", "list the hooks; none of them is run")
    every.add_argument("--json", action="store_true", help="print JSON")
    trust = add_action(actions, "trust", "let a hook run, exactly as it is now")
    untrust = add_action(actions, "untrust", "keep a hook from running")
    test = add_action(actions, "test", "run a hook once, with a made-up event")
    for action in (trust, untrust, test):
        action.add_argument("name", metavar="NAME", help="the hook")
    test.add_argument(
        "event",
        metavar="EVENT",
        nargs="?",
        default="",
        help="such as agent:end; else its first one",
    )
    parser.epilog = "A hook is a folder in `hooks/` of the Hermes home with HOOK.yaml and handler.py. It runs as you."


def run(args: argparse.Namespace) -> int:
    hooks = Hooks(find_home())
    match args.action:
        case "trust":
            _print_trusted(hooks.trust(args.name))
        case "untrust":
            was = hooks.untrust(args.name)
            print(
                f"{args.name} is off, from the next start of Hermes on."
                if was
                else f"{args.name} was not trusted."
            )
        case "test":
            return _test(hooks.find(args.name), args.event)
        case _:
            _list(hooks.every(), as_json=getattr(args, "json", False))
    return 0


def _print_trusted(hook: Hook) -> None:
    assert hook.manifest is not None  # noqa: S101 - what has none can't be trusted
    print(
        f"{hook.name} is trusted as it is now ({hook.hash[:12]}), for {', '.join(hook.manifest.events)}."
    )
    print(f"It runs {hook.folder / HANDLER} as you, from the next start of Hermes on.")


def _test(hook: Hook, event: str) -> int:
    if hook.manifest is None or hook.state != "trusted":
        raise HermesError(
            f"The hook {hook.name} is not trusted: {hook.problem or _STATES[hook.state]}.",
            hint=f"Look at {hook.folder / HANDLER}, then: hermes hooks trust {hook.name}",
        )
    from hermes.plugins.hook_runner import load_handler

    kind = event or next(
        (one for one in hook.manifest.events if "*" not in one), "agent:end"
    )
    if not hook.hears(kind):
        print(
            f"{hook.name} does not listen to {kind}; it is run all the same.",
            file=sys.stderr,
        )
    started = time.monotonic()
    try:
        result = load_handler(hook, printing=True)(kind, dict(_SAMPLE))
        if inspect.isawaitable(result):
            asyncio.run(asyncio.wait_for(_awaited(result), hook.manifest.timeout))
    except Exception as error:  # noqa: BLE001 - the hook's own failure is what the user wants to see
        traceback.print_exception(error)
        print(f"{hook.name} failed on {kind}.", file=sys.stderr)
        return 1
    print(f"{hook.name} took {time.monotonic() - started:.3f} s for {kind}.")
    return 0


async def _awaited(result: Any) -> None:
    await result


def _list(hooks: list[Hook], *, as_json: bool) -> None:
    if as_json:
        rows = [msgspec.to_builtins(hook, enc_hook=str) for hook in hooks]
        print(
            msgspec.json.format(msgspec.json.encode({"hooks": rows}), indent=2).decode()
        )
        return
    if not hooks:
        print(
            f"There are no hooks. One is a folder in {find_home().hooks}; it can be told of {', '.join(EVENTS)}."
        )
        return
    screen = stdout_screen()
    for number, line in enumerate(
        table([("HOOK", "EVENTS", "STATE"), *map(_row, hooks)])
    ):
        print(line if number else screen.style.bold(line))


def _row(hook: Hook) -> tuple[str, str, str]:
    events = " ".join(hook.manifest.events) if hook.manifest else ""
    state = _STATES[hook.state] + (f": {hook.problem}" if hook.problem else "")
    return one_line(hook.name), one_line(events), one_line(state)
