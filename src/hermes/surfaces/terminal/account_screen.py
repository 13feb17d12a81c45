"""The screen that signs in with an account: choose the account, then see the link, and a code if there is one, until
the sign-in is done."""

from hermes.app.sign_ins import PendingSignIn, SignInOptions, SignIns
from hermes.errors import HermesError, for_reader
from hermes.providers.sign_in.services import SERVICES, SignInService
from hermes.settings import Home
from hermes.surfaces.terminal.menus import MenuItem, Menus, MenuText, WaitNotes
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_INTRO = to_translate("No key is needed. The page that opens may be on any device.")


class AccountScreen:
    """Asks with `menus`, and stores accounts in `home`."""

    def __init__(self, menus: Menus, home: Home) -> None:
        self._menus = menus
        self._sign_ins = SignIns(home)

    def run(self) -> str:
        """Returns the provider whose account can be used; empty if the person went back."""
        problem = ""
        while True:
            used = {one.service for one in self._sign_ins.store.usable()}
            items = [_item(one, is_used=one.name in used) for one in SERVICES]
            text = MenuText(
                title=t("Sign in with what?"), intro=t.marked(_INTRO), problem=problem
            )
            chosen = self._menus.choose(text, items)
            if chosen is None:
                return ""
            service = SERVICES[chosen]
            if service.name in used:
                return service.provider
            is_there, problem = self._sign_in(service)
            if is_there:
                return service.provider

    def _sign_in(self, service: SignInService) -> tuple[bool, str]:
        """Signs in while the person waits. Returns whether that worked, and what went wrong."""
        notes = WaitNotes()
        work = self._sign_ins.add(
            service.name,
            SignInOptions(),
            lambda pending: notes.put(*_instructions(pending)),
        )
        try:
            account = self._menus.wait(
                t("Signing in with {label}", label=service.label), work, notes
            )
        except HermesError as error:
            return False, for_reader(error)
        return account is not None, ""


def _instructions(pending: PendingSignIn) -> tuple[str, ...]:
    """What the person has to do. Nothing can be pasted into this screen."""
    if not pending.can_paste:
        return pending.instructions()
    command = f"hermes auth add {pending.service}"
    return (
        pending.instructions()[0],
        t(
            "If your browser is on another machine, go back and use: {command}",
            command=command,
        ),
    )


def _item(service: SignInService, *, is_used: bool) -> MenuItem:
    return MenuItem(service.label, lambda: t("Signed in.") if is_used else "")
