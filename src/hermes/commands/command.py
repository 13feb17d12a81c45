"""`@command`: a plain typed function becomes a command of every surface that it names.

    @command("sessions rename", slash="title title", role="user", scope="chat", group="Sessions")
    def rename_session(context: CommandContext, id: SessionId, title: Annotated[str, "the new title"]) -> TextResult:
        "Give a session a title."

Parameters before `*` are operands in the shell, those after it are options. The docstring is the help. A synchronous
function runs in a thread where there is an event loop. The result is a `Result`, or the exit code of a command that
talks to the terminal by itself.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from hermes.errors import UsageError
from hermes.text.translation import Translator, translator

t = translator(__name__)


Role: TypeAlias = Literal["owner", "user", ""]
"""Who may use a command in a chat app; empty when nobody may."""

Scope: TypeAlias = Literal["observe", "chat", "approve", "admin", ""]
"""The scope that a token needs to use a command over HTTP; empty when no token may."""

HELP_CONTEXT = "command help"
"""The key of parameters' help in the catalogue of sentences."""

Place: TypeAlias = Literal["shell", "chat", "http"]


class Arg(msgspec.Struct, frozen=True):
    """How one parameter is given. A plain text in `Annotated` is an `Arg` with that help."""

    help: str = ""
    metavar: str = ""
    short: str = ""
    """A short option, such as `-o`."""
    at_least: int | None = None
    excludes: str = ""
    """Options with the same word here can't be given together."""
    after_dashes: bool = False
    """Everything after `--` goes here as it is."""
    current: str = ""
    """What fills it in a chat: `session`. Then it is no parameter there."""


SessionId: TypeAlias = Annotated[
    str, Arg("which session", metavar="ID", current="session")
]
"""A session by its id, the beginning of one, its title, or `last`; in a chat the current one."""


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a command."""

    name: str
    kind: Any
    """Its type, without `Annotated` and `None`."""
    arg: Arg
    default: Any
    """`msgspec.NODEFAULT` when it must be given."""
    is_option: bool

    @property
    def help(self) -> str:
        """What it is for, in the reader's language."""
        text = self.arg.help
        return Translator(HELP_CONTEXT)(text) if text else ""

    @property
    def is_required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    @property
    def is_many(self) -> bool:
        """Whether it takes several words."""
        return get_origin(self.kind) is tuple

    @property
    def choices(self) -> tuple[str, ...]:
        if get_origin(self.kind) is Literal:
            return get_args(self.kind)
        return ()

    @property
    def flag(self) -> str:
        """Its long option."""
        return "--" + self.name.removesuffix("_").replace("_", "-")

    @property
    def metavar(self) -> str:
        return self.arg.metavar or self.name.removesuffix("_").upper()

    @property
    def value_type(self) -> Any:
        """The type of one word of its value."""
        kind = get_args(self.kind)[0] if self.is_many else self.kind
        limit = self.arg.at_least
        if limit is None:
            return kind
        return Annotated[kind, msgspec.Meta(ge=limit)]

    def read(self, word: str) -> Any:
        """Parses one word. Raises UsageError if it is invalid."""
        if not word.isascii() and any("\ud800" <= sign <= "\udfff" for sign in word):
            raise UsageError(t("{word!r} is not UTF-8 text", word=word))
        try:
            return msgspec.convert(word, self.value_type, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(self._expected(word)) from error

    def _expected(self, word: str) -> str:
        if self.choices:
            return t(
                "there is no {word!r}; expected one of {choices}",
                word=word,
                choices=", ".join(self.choices),
            )
        if self.arg.at_least is None:
            return t("expected a number, not {word!r}", word=word)
        return t(
            "expected a number of at least {at_least}, not {word!r}",
            at_least=self.arg.at_least,
            word=word,
        )


class Command:
    """A command made of a function."""

    def __init__(  # noqa: PLR0913 - what the decorator is told
        self,
        function: Callable[..., Any],
        *,
        name: str,
        slash: str,
        role: Role,
        scope: Scope,
        group: str,
        private: bool,
    ) -> None:
        self.function = function
        self.name = name
        """What is typed in the shell after `hermes`; empty for a command that only chats have."""
        self.slash, *self._slash_names = slash.split() or [""]
        self.role: Role = role
        self.scope: Scope = scope
        self.group = group
        """Its heading in help, in English."""
        self.private = private
        """Whether it shows more than the session it is given in, so that it is refused where others read along."""
        self.is_async = inspect.iscoroutinefunction(function)

    @property
    def key(self) -> str:
        """Its name in addresses and translations: `sessions.list`, or `chat.stop` for a command of chats alone."""
        return self.name.replace(" ", ".") or f"chat.{self.slash}"

    @property
    def translation_context(self) -> str:
        """The key of its help in the catalogue of sentences."""
        return f"command {self.key}"

    @property
    def summary(self) -> str:
        """The first sentence of the docstring, as lists of commands show it, in the reader's language."""
        return Translator(self.translation_context)(self.summary_text)

    @cached_property
    def summary_text(self) -> str:
        """The same in English."""
        first = inspect.cleandoc(self.function.__doc__ or "").partition("\n\n")[0]
        text = " ".join(first.split()).removesuffix(".")
        if text[1:2].isupper():
            return text
        return text[:1].lower() + text[1:]

    @cached_property
    def description(self) -> str:
        """The docstring after its first sentence."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n\n")[2]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Everything but the context, in the order of the signature."""
        signature = inspect.signature(self.function, eval_str=True)
        _, *rest = signature.parameters.values()
        return tuple(one for found in rest for one in _parameters(found))

    @cached_property
    def result_type(self) -> Any:
        return inspect.signature(self.function, eval_str=True).return_annotation

    @cached_property
    def slash_parameters(self) -> tuple[Parameter, ...]:
        """The parameters for the words after the slash command, in order; without one, after the command in the shell."""
        if not self.slash:
            return tuple(one for one in self.parameters if not one.is_option)
        named = {parameter.name: parameter for parameter in self.parameters}
        return tuple(named[name] for name in self._slash_names)

    @cached_property
    def slash_value(self) -> str:
        """What follows the slash command, as help shows it."""
        return " ".join(one.metavar for one in self.slash_parameters)

    @property
    def slash_choices(self) -> tuple[str, ...]:
        """The choices for the first word after the slash command."""
        return self.slash_parameters[0].choices if self.slash_parameters else ()

    @cached_property
    def form(self) -> type[msgspec.Struct]:
        """The arguments as a type, for requests over HTTP."""
        return self._struct("Body", [_field(one, one.kind) for one in self.parameters])

    @cached_property
    def query(self) -> type[msgspec.Struct]:
        """The same for the query of an address, where several words are one text."""
        kinds = [(one, str if one.is_many else one.kind) for one in self.parameters]
        return self._struct("Query", [_field(one, kind) for one, kind in kinds])

    def _struct(self, suffix: str, fields: list[Any]) -> type[msgspec.Struct]:
        name = "".join(part.title() for part in re.split(r"[ .-]", self.key))
        return msgspec.defstruct(
            f"{name}{suffix}",
            fields,
            forbid_unknown_fields=True,
            frozen=True,
            kw_only=True,
        )

    def arguments(self, given: msgspec.Struct) -> dict[str, Any]:
        """The arguments of a request, as the function takes them. As in a shell, no word may contain a NUL."""
        values = msgspec.structs.asdict(given)
        for one in self.parameters:
            if _has_nul(values[one.name]):
                raise UsageError(
                    t("{metavar} has a NUL character.", metavar=one.metavar)
                )
            if one.is_many and isinstance(values[one.name], str):
                values[one.name] = tuple(map(one.read, values[one.name].split()))
        return values

    async def run(self, context: Any, arguments: Mapping[str, Any]) -> Any:
        """Calls the function from inside an event loop."""
        if self.is_async:
            return await self.function(context, **arguments)
        import asyncio

        return await asyncio.to_thread(self.function, context, **arguments)

    def words(self, text: str, current: Mapping[str, str]) -> dict[str, Any]:
        """The arguments of a slash command. The name of a switch, such as `force`, at either end switches it on."""
        given: dict[str, Any] = {
            one.name: current[one.arg.current]
            for one in self.parameters
            if one.arg.current in current
        }
        rest = self._take_switches(text.strip(), given)
        waiting = list(self.slash_parameters)
        while rest:
            if not waiting:
                raise UsageError(
                    t(
                        "/{slash} does not take {rest!r}.",
                        slash=self.slash or self.name,
                        rest=rest,
                    ),
                    hint=self._how,
                )
            parameter = waiting.pop(0)
            takes_rest = parameter.is_many or (parameter.kind is str and not waiting)
            value = rest if takes_rest else rest.split(None, 1)[0]
            rest = rest[len(value) :].lstrip()
            given[parameter.name] = self._read(parameter, value)
        missing = next((one for one in waiting if one.is_required), None)
        if missing is not None:
            raise UsageError(
                t("{metavar} is missing.", metavar=missing.metavar), hint=self._how
            )
        return given

    def _take_switches(self, text: str, given: dict[str, Any]) -> str:
        """Sets the switches that are named at the beginning and end of a text; returns the rest."""
        switches = {
            name: one.name
            for one in self.parameters
            if one.kind is bool
            for name in (one.name, one.flag)
        }
        while (word := text.rpartition(" ")[2]) in switches:
            given[switches[word]], text = True, text[: -len(word)].rstrip()
        while (word := text.partition(" ")[0]) in switches:
            given[switches[word]], text = True, text[len(word) :].lstrip()
        return text

    def _read(self, parameter: Parameter, text: str) -> Any:
        try:
            if parameter.is_many:
                return tuple(map(parameter.read, text.split()))
            return parameter.read(text)
        except UsageError as error:
            raise UsageError(
                f"{parameter.metavar}: {error.message}.", hint=self._how
            ) from error

    @property
    def _how(self) -> str:
        how = f"/{self.slash or self.name} {self.slash_value}".rstrip()
        return t("Usage: {how}", how=how)


def command(
    name: str = "",
    *,
    slash: str = "",
    role: Role = "",
    scope: Scope = "",
    group: str = "",
    private: bool = False,
) -> Callable[[Callable[..., Any]], Command]:
    """Makes a command of a function.

    `slash` is its name in chats, followed by the parameters that are typed after it. `role` lets people use it in chat
    apps, `scope` lets tokens use it over HTTP. `group` is its heading in the help of chats. A `private` command is
    refused in chats of several people.
    """

    def make(function: Callable[..., Any]) -> Command:
        return Command(
            function,
            name=name,
            slash=slash,
            role=role,
            scope=scope,
            group=group,
            private=private,
        )

    return make


def _parameters(found: inspect.Parameter) -> Iterator[Parameter]:
    """A parameter of the function; `**options: Unpack[SomeOptions]` is an option for each key."""
    if get_origin(found.annotation) is not Unpack:
        yield _parameter(found)
        return
    (keys,) = get_args(found.annotation)
    for name, kind in get_type_hints(keys, include_extras=True).items():
        option = inspect.Parameter(
            name, found.KEYWORD_ONLY, default=None, annotation=kind
        )
        yield _parameter(option)


def _parameter(found: inspect.Parameter) -> Parameter:
    kind, arg = found.annotation, Arg()
    if get_origin(kind) is Annotated:
        kind, first, *_ = get_args(kind)
        arg = Arg(first) if isinstance(first, str) else first
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    no_default = found.default is found.empty
    return Parameter(
        found.name,
        kind,
        arg,
        msgspec.NODEFAULT if no_default else found.default,
        is_option=found.kind is found.KEYWORD_ONLY,
    )


def _has_nul(value: Any) -> bool:
    words = value if isinstance(value, tuple) else (value,)
    return any(isinstance(word, str) and "\0" in word for word in words)


def _field(parameter: Parameter, kind: Any) -> tuple[str, Any, Any]:
    """The field of a request's type; `kind` is the parameter's type there."""
    default = parameter.default
    if kind is str and default == ():
        default = ""
    about = parameter.arg.help or None
    meta = msgspec.Meta(description=about, ge=parameter.arg.at_least)
    if parameter.is_many and parameter.is_required:
        meta = msgspec.Meta(description=about, min_length=1)
    described: Any = Annotated[kind, meta]
    name = parameter.name
    return (
        name,
        described | None if default is None else described,
        msgspec.field(default=default, name=name.removesuffix("_")),
    )
