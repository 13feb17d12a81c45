"""Opens what a conversation needs: the settings of this run, the session log, a session and a model."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from hermes.app import App, build
from hermes.app.model_info import kept_model
from hermes.codex.engine_choice import is_on
from hermes.errors import HermesError, UsageError
from hermes.providers.routing import ModelRoute, first_route, route_for
from hermes.schema.events import (
    ApprovalAnswered,
    PermissionsRevoked,
    SessionAgentChosen,
    SessionCreated,
)
from hermes.settings import Settings
from hermes.settings.load import current_folder, find_home, load, load_secrets
from hermes.store.sessions import SessionInfo
from hermes.surfaces.terminal.run_options import Approvals, RunOptions
from hermes.surfaces.terminal.stderr_message import remark, say
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


class SessionTarget(NamedTuple):
    """What a conversation opens: an existing session, or a folder for a new one."""

    before: SessionInfo | None
    cwd: Path


def open_app(question: RunOptions) -> App:
    """Builds the app with this run's settings. Reports a repair of the session log."""
    home = find_home()
    app = build(chosen(load(home=home), question), home)
    if (
        app.has_log
        and (report := app.store.recovery or app.store.incomplete) is not None
    ):
        say(shown_reason(str(report)))
    return app


def choose_model(app: App, question: RunOptions, *, may_ask: bool = True) -> ModelRoute:
    """Returns this run's model. Without one, lets a person at the terminal connect one first."""
    route = _route(app, question)
    if not route.embedded or is_on(app.settings.model):
        return route
    from hermes.surfaces.terminal import weights_download

    is_named = bool(question.model or question.provider or question.fetch)
    if may_ask and not is_named and _connects_first(app, question, route):
        app.settings = chosen(load(home=app.home), question)
        return choose_model(app, question, may_ask=False)
    weights_download.have_weights(
        route.model, fetch=question.fetch, may_ask=may_ask, verbose=question.verbose
    )
    return route


def with_kept_model(
    app: App, target: SessionTarget, question: RunOptions
) -> RunOptions:
    """The options with the model that was chosen for a resumed session, unless they name another."""
    if target.before is None or not keeps_models(question):
        return question
    kept = kept_model(app, target.before.id)
    return msgspec.structs.replace(question, model=kept) if kept else question


def keeps_models(question: RunOptions) -> bool:
    """Whether a run leaves the models as they were chosen for its sessions: it names none itself."""
    return not (question.model or question.provider)


def _route(app: App, question: RunOptions) -> ModelRoute:
    secrets = load_secrets(home=app.home)
    route = first_route(app.settings, secrets)
    if question.model:
        return route_for(app.settings, secrets, question.model, route)
    return route


def _connects_first(app: App, question: RunOptions, route: ModelRoute) -> bool:
    """Shows the first-run screen if it is needed and somebody is there. Returns whether a model was connected.

    A chat needs it while nobody has chosen a model; a single question only if nothing can answer it.
    """
    from hermes.surfaces.terminal.weights_download import are_here, is_requested

    is_chosen = app.settings.model.provider not in {"", "auto"} or route.model
    is_chat = question.text is None and not question.json
    if is_requested(fetch=False) or (are_here(route.model) and (is_chosen or not is_chat)):  # fmt: skip
        return False
    from hermes.surfaces.terminal.menus import terminal_menus

    menus = terminal_menus()
    if menus is None:
        return False
    from hermes.surfaces.terminal.connect_screen import ConnectScreen

    screen = ConnectScreen(menus, app.home, verbose=question.verbose)
    return screen.run(is_first_run=True) is not None


def chosen(settings: Settings, question: RunOptions) -> Settings:
    """Returns the settings with the provider named on the command line, and its default model."""
    if not question.provider:
        return settings
    address = (
        settings.model.base_url if question.provider == settings.model.provider else ""
    )
    model = msgspec.structs.replace(
        settings.model, provider=question.provider, default="", base_url=address
    )
    return msgspec.structs.replace(settings, model=model)


def in_worktree(app: App, question: RunOptions) -> RunOptions:
    """The options of a run that works in a worktree, which is made if there is none of that name."""
    if question.worktree is None:
        return question
    if question.resume:
        raise UsageError(
            t("--worktree and --resume can't be used together."),
            hint=t("A session that began in a worktree is resumed there."),
        )
    from hermes.app.worktrees import user_worktrees

    trees, folder = user_worktrees(), _requested_folder(question)
    known = {one.name for one in trees.all()}
    tree = trees.open(folder, question.worktree, now=app.clock.now())
    if tree.name not in known:
        remark(
            t("Made the worktree {name}: {folder}", name=tree.name, folder=tree.folder)
        )
    return msgspec.structs.replace(question, cwd=tree.folder)


def changed_worktrees(folder: Path) -> str:
    """A line that names the worktrees of a folder's repository that hold unmerged work; empty if none does."""
    from hermes.app.worktrees import user_worktrees

    trees = user_worktrees()
    if not (found := trees.all()):
        return ""
    try:
        own = trees.at(folder)
        source = Path(own.source) if own is not None else trees.repository(folder)
        states = [(one, trees.state(one)) for one in found if one.source == str(source)]
    except (HermesError, OSError):
        return ""
    listed = ", ".join(f"{one.name} ({state})" for one, state in states if not state.is_clean)  # fmt: skip
    return t("Worktrees with unmerged work: {listed}. See: hermes worktree list", listed=listed) if listed else ""  # fmt: skip


def find_target(app: App, question: RunOptions) -> SessionTarget:
    """Returns the session and folder that the options name. Changes nothing."""
    if not question.resume:
        return SessionTarget(None, _requested_folder(question))
    if not app.has_log:
        raise HermesError(
            t("There are no sessions yet."), hint=t('Start one: hermes "hello"')
        )
    info = app.store.sessions.find(question.resume)
    folder = Path(info.cwd) if info.cwd else _requested_folder(question)
    if not folder.is_dir():
        hint = t(
            "Create the folder again, or start a new session: leave out --continue and --resume."
        )
        raise HermesError(
            t(
                "Session {id} worked in {folder}, which no longer exists.",
                id=info.id,
                folder=folder,
            ),
            hint=hint,
        )
    if question.cwd and folder.resolve() != _requested_folder(question):
        raise UsageError(
            t("Session {id} works in {folder}.", id=info.id, folder=folder),
            hint=t("Leave out --cwd to resume it there, or start a new session."),
        )
    return SessionTarget(info, folder)


def _requested_folder(question: RunOptions) -> Path:
    """Returns the folder named on the command line, else the current one."""
    named = Path(question.cwd).expanduser()
    folder = (named if named.is_absolute() else current_folder() / named).resolve()
    if not folder.is_dir():
        raise UsageError(
            t("There is no folder {folder}.", folder=folder),
            hint=t("--cwd needs a folder that exists."),
        )
    return folder


def begin(app: App, target: SessionTarget, surface: str) -> str:
    """Returns the id of the existing or new session, and makes it visible to other processes."""
    app.go_live(load_secrets(home=app.home))
    if target.before is None:
        created = SessionCreated(surface=surface, cwd=str(target.cwd))
        session = app.begin(created).session
    else:
        session = target.before.id
        if session not in _opened:
            _end_permissions(app, session, surface)
    _opened.add(session)
    return session


_opened: set[str] = set()
"""The sessions that this process has begun or resumed in a terminal."""


def _end_permissions(app: App, session: str, surface: str) -> None:
    """Takes back what was allowed until the person quit, however they quit. A session that runs elsewhere keeps it."""
    store = app.store
    if store.log.latest(session, ApprovalAnswered.topic) is None:
        return
    if store.leases.holder(session) is not None:
        return
    from hermes.app.session_journal import read_history

    allowed = read_history(store, session).allowed
    if allowed:
        ended = PermissionsRevoked(permissions=tuple(sorted(allowed)), by=surface)
        app.record(session, ended)


def as_agent(app: App, target: SessionTarget, question: RunOptions) -> RunOptions:
    """The options of a run that works as an agent from a file: with its model, and its mode if that allows less.

    Raises NotFound, or Refused if the user has not agreed to the file. Changes nothing.
    """
    if not question.agent:
        return question
    from hermes.app.prompt_files import PromptFiles, stricter

    files = PromptFiles(app.home.root, Path.home())
    file = files.find(target.cwd, "agent", question.agent)
    mode = question.approvals
    if stricter(file.mode, mode):
        mode = msgspec.convert(file.mode, Approvals)
    return msgspec.structs.replace(
        question, agent=file.name, model=question.model or file.model, approvals=mode
    )


def begin_as(app: App, session: str, agent: str) -> None:
    """Lets a session work as an agent from now on, if one is named."""
    if agent:
        app.record(session, SessionAgentChosen(agent=agent))
