"""`/kanban WORDS` in chats: the words are those of `hermes kanban WORDS`, with its options."""

import shlex
import weakref
from typing import Annotated, Any

from hermes.app.app import App
from hermes.app.log_follower import LogFollower
from hermes.commands.command import Arg, Command, Parameter, command
from hermes.commands.context import CommandContext
from hermes.commands.table import Topic, commands_of, find_command, find_topic
from hermes.commands.views import Result, message
from hermes.errors import UsageError
from hermes.text.intended_word import intended_word
from hermes.text.translation import translator

t = translator(__name__)


_HERE = "hermes.commands."


@command(slash="kanban words", role="owner", group="Sessions", private=True)
async def kanban(
    context: CommandContext,
    words: Annotated[str, Arg("as behind `hermes kanban`", metavar="WORDS")] = "",
) -> Result:
    """Use the boards: list, create, show, move, comment ...; alone: list the open cards."""
    try:
        typed = shlex.split(words) if words.strip() else ["list"]
    except ValueError as error:
        raise UsageError(t("A quote is missing: {error}.", error=error)) from error
    topic = find_topic("kanban")
    assert topic is not None  # noqa: S101 - it is in the table
    found = find_command(topic, typed)
    if typed[0] in ("help", "--help", "-h"):
        return _help()
    if found is None:
        raise _no_such_action(topic, typed)
    if not found.function.__module__.startswith(_HERE):
        raise UsageError(
            t("`{name}` works in a shell only.", name=found.name),
            hint=f"hermes {found.name}",
        )
    rest = typed[len(found.name.split()) - 1 :]
    result = await found.run(context, shell_words(found, rest))
    _follow_workers(context)
    return result


_following: "weakref.WeakSet[App]" = weakref.WeakSet()


def _follow_workers(context: CommandContext) -> None:
    """Lets a chat see what other processes write, so that questions of its cards' workers are asked in it too."""
    if context.conversation is None or context.app in _following:
        return
    _following.add(context.app)
    background = context.conversation.agent.background
    background.start(LogFollower(context.app).run())


def shell_words(command_: Command, words: list[str]) -> dict[str, Any]:
    """The arguments of a command from words as a shell gives them: operands, and options with `--`."""
    operands = [one for one in command_.parameters if not one.is_option]
    options = {one.flag: one for one in command_.parameters if one.is_option}
    given: dict[str, Any] = {}
    rest: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None:
            if word.startswith("--"):
                raise UsageError(
                    t("There is no option {name}.", name=name),
                    hint=_usage(command_, options),
                )
            rest.append(word)
        elif option.kind is bool:
            given[option.name] = True
        else:
            if not equals and not queue:
                raise UsageError(t("{name} needs a value.", name=name))
            given[option.name] = option.read(value if equals else queue.pop(0))
    given |= _operands(command_, operands, rest)
    return given


def _operands(
    command_: Command, operands: list[Parameter], words: list[str]
) -> dict[str, Any]:
    """The operands; the last one takes what is left, so that a sentence needs no quotes."""
    if len(words) > len(operands) > 0:
        last = " ".join(words[len(operands) - 1 :])
        words = [*words[: len(operands) - 1], last]
    if words and not operands:
        raise UsageError(
            t("{name} does not take {words!r}.", name=command_.name, words=words[0])
        )
    missing = next((one for one in operands[len(words) :] if one.is_required), None)
    if missing is not None:
        raise UsageError(
            t("{metavar} is missing.", metavar=missing.metavar),
            hint=_usage(command_, {}),
        )
    return {one.name: one.read(word) for one, word in zip(operands, words, strict=False)}  # fmt: skip


def _no_such_action(topic: Topic, typed: list[str]) -> UsageError:
    actions = list(dict.fromkeys(one.name.split()[1] for one in commands_of(topic)))
    first, rest = typed[0], typed[1:]
    if near := intended_word(first, actions):
        meant = [near, *rest]
    elif rest and rest[0] in actions:
        meant = [rest[0], first, *rest[1:]]
    else:
        meant = ["create", " ".join(typed)] if rest or " " in first else []
    hint = t("See: /kanban help")
    if meant:
        after = f" {shlex.join(meant[1:])}" if meant[1:] else ""
        hint = t("Did you mean: /kanban {near}{rest}", near=meant[0], rest=after)
    return UsageError(t("There is no /kanban {typed}.", typed=first), hint=hint)


def _usage(command_: Command, options: dict[str, Parameter]) -> str:
    names = " ".join(one.metavar for one in command_.parameters if not one.is_option)
    flags = f" [{', '.join(options)}]" if options else ""
    return f"Usage: /{command_.name} {names}{flags}"


def _help() -> Result:
    topic = find_topic("kanban")
    found = [] if topic is None else list(commands_of(topic))
    return message(
        *(
            f"{_usage(one, {}).removeprefix('Usage: ')} - {one.summary}"
            for one in found
            if one.function.__module__.startswith(_HERE)
        )
    )
