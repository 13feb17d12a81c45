"""Routes of the policy: show the rules and the sandbox, check a command, forget a remembered answer."""

import contextlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hermes.commands.policy import (
    CommandVerdict,
    check_command,
    forget_answers,
    show_policy,
)
from hermes.errors import NotFound
from hermes.schema.events import Reach
from hermes.settings.load import typed_path
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.commands import run_command
from hermes.surfaces.web.endpoint import Acknowledged, Endpoint, EndpointCall
from hermes.tools.policy import Mode


class PolicyView(msgspec.Struct, frozen=True):
    file: str
    problem: str
    sandbox: str
    why: str
    rules: Any


class CheckBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(max_length=100_000)]
    cwd: str = ""
    mode: Mode = "ask"
    reach: Reach = "workspace"


class ForgetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shape: str


class PolicyRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._app = dashboard.app

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/api/policy", "observe", self.policy, answer=PolicyView),
            Endpoint(
                "POST",
                "/api/policy/check",
                "observe",
                self.check,
                body=CheckBody,
                answer=CommandVerdict,
            ),
            Endpoint(
                "POST", "/api/policy/forget", "admin", self.forget, body=ForgetBody
            ),
        ]

    def policy(self) -> PolicyView:
        """The rules, the remembered answers, and the sandbox."""
        return PolicyView(**run_command(self._app, show_policy).document())

    def check(self, call: EndpointCall) -> CommandVerdict:
        """Whether a command would run, need approval or be refused if the model asked for it."""
        body: CheckBody = call.body
        cwd = str(typed_path(body.cwd or str(self._board.folder)))
        return run_command(
            self._app,
            check_command,
            command_text=body.command,
            mode=body.mode,
            cwd=cwd,
            reach=body.reach,
        )

    def forget(self, call: EndpointCall) -> Acknowledged:
        """Forgets a remembered answer; one that is already forgotten is not an error."""
        with contextlib.suppress(NotFound):
            run_command(self._app, forget_answers, which=call.body.shape)
        return Acknowledged()
