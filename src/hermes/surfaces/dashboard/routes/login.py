"""Signing in and out: one-time links, the password, tickets."""

import asyncio
import html
from urllib.parse import parse_qs

import msgspec
from starlette.responses import HTMLResponse, Response

from hermes.surfaces.dashboard.access_control import Identity
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.page_language import direction
from hermes.surfaces.web.endpoint import Acknowledged, Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import current_language, translator

t = translator(__name__)

SIGNED_IN_S = 30 * 24 * 3600.0
_MAX_FORM_BYTES = 10_000
_REFRESH = '<meta http-equiv="refresh" content="0;url=/">'  # not translated: markup
_FORM_TIMEOUT_S = 30.0
_PURPOSES = (
    "sec-purpose",
    "purpose",
    "x-purpose",
    "x-moz",
)  # headers with which browsers fetch in advance
# not translated: markup; the words are filled in
_PAGE = """<!doctype html><html lang="{language}" dir="{direction}"><head><meta charset="utf-8"><title>{title} · Hermes</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{head}
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<meta name="color-scheme" content="light dark">
<style>:root{{--text:light-dark(#1c1c21,#ececf1);--muted:light-dark(#5e5f69,#a3a6b1);--line:light-dark(#d9d9d3,#383b45);
--card:light-dark(#fff,#18191f);--accent:light-dark(#4b42d6,#9c98ff);--on:light-dark(#fff,#11111f);
--bad:light-dark(#b92525,#ff8585)}}
body{{font:16px/1.55 system-ui,sans-serif;margin:0;min-height:100vh;display:grid;place-items:center;color:var(--text);
background:radial-gradient(60rem 40rem at 50% -10rem,light-dark(#e8e6ff,#23214a),light-dark(#fafaf8,#111216))}}
main{{box-sizing:border-box;width:min(27rem,100% - 2rem);margin:2rem 0;padding:2.4rem 2rem;text-align:center;
background:var(--card);border:1px solid var(--line);border-radius:18px;box-shadow:0 18px 60px light-dark(#1414280f,#0008)}}
h1{{font-size:1.6rem;margin:.9rem 0 .2rem}}p{{margin:.6rem 0}}
.muted{{color:var(--muted);font-size:.92rem}}.bad{{color:var(--bad)}}
form,ol{{text-align:left;margin:1.4rem 0 0}}label{{display:block;font-weight:600;font-size:.92rem}}
input,button{{font:inherit;box-sizing:border-box;width:100%;padding:.7rem .9rem;border-radius:10px;
border:1px solid var(--line)}}input{{margin:.35rem 0 .9rem;background:transparent;color:inherit}}
:focus-visible{{outline:3px solid var(--accent);outline-offset:2px}}
button,.go{{background:var(--accent);border-color:var(--accent);color:var(--on);font-weight:600;cursor:pointer}}
.go{{display:inline-block;padding:.7rem 1.4rem;border-radius:10px;text-decoration:none}}
ol{{padding-left:1.3rem}}li{{margin:.5rem 0}}code{{display:inline-block;font:.92rem ui-monospace,monospace;padding:.35rem .6rem;
border:1px solid var(--line);border-radius:8px;user-select:all}}</style></head>
<body><main>{logo}<h1>Hermes</h1><p class="muted">{about}</p>{body}</main></body></html>"""
_LOGO = (  # not translated: markup
    '<svg width="56" height="56" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" '
    'fill="#544bdc"/><path d="M9 23V9m14 14V9M9 16h14" stroke="#fff" stroke-width="3.2" stroke-linecap="round" '
    'fill="none"/><circle cx="16" cy="16" r="3.4" fill="#fff"/></svg>'
)


class LoginQuery(msgspec.Struct, frozen=True):
    code: str = ""


class Ticket(msgspec.Struct, frozen=True):
    ticket: str
    expires_in: float


class Link(msgspec.Struct, frozen=True):
    url: str
    expires_in: float


class Who(msgspec.Struct, frozen=True):
    """The caller's credential."""

    scopes: tuple[str, ...]
    by: str
    expires: float
    shared_store: bool
    """Whether several machines may use the store."""
    profile: str = ""
    """The profile that is shown; empty for the default one."""


class LoginRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._access = dashboard.access

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                "/login",
                "open",
                self.arrive,
                LoginQuery,
                answer=None,
                is_page=True,
            ),
            Endpoint("POST", "/login", "open", self.sign_in, answer=None),
            Endpoint("GET", "/api/auth", "observe", self.who, answer=Who),
            Endpoint(
                "POST", "/api/auth/tickets", "observe", self.ticket, answer=Ticket
            ),
            Endpoint("POST", "/api/auth/links", "admin", self.link, answer=Link),
            Endpoint("POST", "/api/auth/logout", "observe", self.sign_out),
        ]

    async def arrive(self, call: EndpointCall) -> Response:
        """Signs in with a one-time code; without one, says how to sign in."""
        code = call.query.code
        if (
            not code or call.request.method == "HEAD"
        ):  # a HEAD request must not use up the code
            return _page(_form() if self._access.password else _how())
        purpose = " ".join(
            call.request.headers.get(name, "") for name in _PURPOSES
        ).lower()
        if "prefetch" in purpose or "preview" in purpose:
            raise Refusal(503, t("This link works once, so it can't be prefetched."))
        if self._access.links.redeem(code) is None:
            return self._wrong(
                "link",
                _alert(t("This link has already been used or has expired.")) + _how(),
            )
        return self._welcome()

    async def sign_in(self, call: EndpointCall) -> Response:
        """Signs in with the password."""
        form = (await _body(call)).decode(errors="replace")
        given = parse_qs(form, keep_blank_values=True).get("password", [""])[0]
        throttle = self._access.throttle
        # No await from here on: otherwise many requests at once would all pass the throttle.
        if wait := throttle.wait("password"):
            return _page(
                _paragraph(
                    t("Too many wrong passwords. Wait {wait:.0f} seconds.", wait=wait)
                ),
                429,
                wait=wait,
            )
        if not self._access.is_password(given):
            return self._wrong("password", _alert(t("Wrong password.")) + _form())
        throttle.succeeded("password")
        return self._welcome()

    async def who(self, call: EndpointCall) -> Who:
        """The caller's scopes, and when they expire."""
        identity: Identity = call.caller
        app, held = self._board.app, identity.held
        is_shared = bool(app.settings.store.url)
        return Who(
            identity.scopes, identity.by, held.expires, is_shared, app.home.profile
        )

    async def ticket(self, call: EndpointCall) -> Ticket:
        """A ticket for one WebSocket, with the caller's scopes."""
        return Ticket(
            self._access.tickets.issue(call.caller.held),
            self._access.tickets.lifetime_s,
        )

    async def link(self) -> Link:
        """A link that signs in once."""
        return Link(first_visit(self._board), self._access.links.lifetime_s)

    async def sign_out(self, call: EndpointCall) -> Response:
        """Revokes the caller's credential."""
        self._access.keys.revoke(call.caller.held)
        answer = Response(
            msgspec.json.encode(Acknowledged()), media_type="application/json"
        )
        answer.delete_cookie(
            self._access.cookie_name,
            path="/",
            secure=self._access.secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    def _welcome(self) -> Response:
        """The page after signing in. A redirect would not work: a browser from another site would not send the cookie."""
        answer = _page(
            f'<p><a class="go" href="/">{_escaped(t("Continue to Hermes"))}</a></p>',
            head=_REFRESH,
        )
        answer.set_cookie(
            self._access.cookie_name,
            self._access.owner_cookie(SIGNED_IN_S),
            max_age=int(SIGNED_IN_S),
            path="/",
            secure=self._access.secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    def _wrong(self, kind: str, words: str) -> Response:
        wait = self._access.throttle.failed(kind)
        return _page(words, 429 if wait else 401, wait=wait)


def first_visit(board: Dashboard) -> str:
    """A link that works once."""
    return f"{board.url}/login?code={board.access.links.issue(True)}"


async def _body(call: EndpointCall) -> bytes:
    content = b""
    try:
        async with asyncio.timeout(_FORM_TIMEOUT_S):
            async for chunk in call.request.stream():
                content += chunk
                if len(content) > _MAX_FORM_BYTES:
                    raise Refusal(413, t("The form is too large."))
    except TimeoutError as error:
        raise Refusal(408, t("The form took too long.")) from error
    return content


def _page(
    body: str, status: int = 200, *, wait: float = 0.0, head: str = ""
) -> Response:
    headers = {"retry-after": html.escape(f"{max(1, round(wait))}")} if wait else {}
    language = current_language()
    content = _PAGE.format(
        language=language,
        direction=direction(language),
        title=_escaped(t("Sign in")),
        about=_escaped(t("The AI agent that belongs to you.")),
        body=body,
        head=head,
        logo=_LOGO,
    )
    return HTMLResponse(content, status, headers)


def _form() -> str:  # not translated: markup around translated words
    return (
        f'<form method="post" action="/login"><label>{_escaped(t("Password"))}<input type="password" name="password" '
        'required autofocus autocomplete="current-password"></label>'
        f"<button>{_escaped(t('Sign in'))}</button></form>"
    )


def _how() -> str:
    run = _escaped(t("On the machine that runs Hermes, run"))
    then = _escaped(t("Open the link that it prints, in this browser."))
    note = _escaped(
        t("A link works once. Afterwards this browser stays signed in for 30 days.")
    )
    return (  # not translated: markup
        f"<ol><li>{run}<br><code>hermes dashboard --link</code></li><li>{then}</li></ol>"
        f'<p class="muted">{note}</p>'
    )


def _alert(words: str) -> str:
    return f'<p class="bad" role="alert">{_escaped(words)}</p>'


def _paragraph(words: str) -> str:
    return f"<p>{_escaped(words)}</p>"


def _escaped(words: str) -> str:
    return html.escape(words, quote=False)
