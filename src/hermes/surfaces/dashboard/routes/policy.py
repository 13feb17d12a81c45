"""Routes of the policy: show the rules and the sandbox, check a command, forget a remembered answer."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hermes.schema.events import Reach
from hermes.settings.load import environment, typed_path
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Acknowledged, Endpoint, EndpointCall
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode, RuleFile
from hermes.tools.sandbox.detect import find_sandbox


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


class PolicyVerdict(msgspec.Struct, frozen=True):
    verdict: str
    reason: str
    reach: str


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
                answer=PolicyVerdict,
            ),
            Endpoint(
                "POST", "/api/policy/forget", "admin", self.forget, body=ForgetBody
            ),
        ]

    def policy(self) -> PolicyView:
        """The rules, the remembered answers, and the sandbox."""
        rules = RuleFile(self._app.home.root)
        book, problem = rules.current(), rules.problem
        sandbox = find_sandbox(environment().get("PATH", ""), Path.home())
        return PolicyView(
            str(rules.path),
            problem,
            sandbox.kind,
            sandbox.why,
            msgspec.to_builtins(book),
        )

    def check(self, call: EndpointCall) -> PolicyVerdict:
        """Whether a command would run, need approval or be refused if the model asked for it."""
        body: CheckBody = call.body
        sandboxed = (
            find_sandbox(environment().get("PATH", ""), Path.home()).kind != "none"
        )
        policy = ApprovalPolicy(
            body.mode,
            Circumstances(self._app.home.root, Path.home(), sandboxed=sandboxed),
        )
        found = policy.check(
            body.command, typed_path(body.cwd or str(self._board.folder)), body.reach
        )
        return PolicyVerdict(found.verdict, found.reason, found.reach)

    def forget(self, call: EndpointCall) -> Acknowledged:
        """Forgets a remembered answer."""
        rules = RuleFile(self._app.home.root)
        if call.body.shape in rules.current().remembered:
            rules.forget((call.body.shape,))
        return Acknowledged()
