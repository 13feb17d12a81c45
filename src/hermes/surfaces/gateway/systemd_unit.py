"""The systemd unit of the gateway: its text, and installing it."""

import getpass
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hermes.children.helper_programs import find_program, trusted_path
from hermes.children.own_python import hermes_command
from hermes.errors import HermesError, os_reason
from hermes.settings import Home
from hermes.settings.load import environment
from hermes.settings.profiles import DEFAULT_PROFILE, PROFILE_VARIABLE
from hermes.text.translation import translator

t = translator(__name__)


UNIT_NAME = "hermes-gateway.service"
_SYSTEM_FOLDER = Path("/etc/systemd/system")
_SYSTEMCTL_TIMEOUT_S = 60.0

# not translated: systemd reads it
_UNIT = """\
[Unit]
Description=Hermes gateway: the agent in chat apps
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
{account}WorkingDirectory={folder}
Environment={home}
Environment={profile}
Environment={path}
Restart=always
RestartSec=5
# It drains on SIGTERM: running turns get time to finish; the rest resume at the next start.
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec=90
# What the gateway may do to this machine. Commands of the model are confined further, by Hermes itself.
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RestrictRealtime=yes
UMask=0077
LimitNOFILE=65536

[Install]
WantedBy={target}
"""


def unit_text(
    home: Home, *, system: bool, user_home: Path, command: Sequence[str], path: str
) -> str:
    """The text of the unit."""
    account = f"User={getpass.getuser()}\n" if system else ""
    return t.marked(
        _UNIT,
        command=" ".join(map(_quoted, command)),
        account=account,
        folder=str(user_home).replace("%", "%%"),
        home=_quoted(f"HERMES_HOME={home.root}"),
        profile=_quoted(f"{PROFILE_VARIABLE}={home.profile or DEFAULT_PROFILE}"),
        path=_quoted(f"PATH={path}"),
        target="multi-user.target" if system else "default.target",
    )


def unit_name(profile: str) -> str:
    """The name of the unit of a profile's gateway; empty for the default profile."""
    return f"hermes-gateway-{profile}.service" if profile else UNIT_NAME


def install(home: Home, *, system: bool, show: bool, all_profiles: bool = False) -> int:
    """Writes the unit, enables it and starts it."""
    if all_profiles:
        home = home.base
    name = unit_name(home.profile)
    more = ("--all-profiles",) if all_profiles else ()
    command = hermes_command("gateway", "run", *more)
    path = trusted_path(environment())
    text = unit_text(
        home, system=system, user_home=Path.home(), command=command, path=path
    )
    if show:
        print(text, end="")
        return 0
    target = _folder(system=system) / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    except OSError as error:
        hint = (
            t("Run it as root: sudo hermes gateway install --system")
            if system
            else t("Check the folder's permissions.")
        )
        raise HermesError(
            t(
                "The unit can't be written: {target} ({error}).",
                target=target,
                error=os_reason(error),
            ),
            hint=hint,
        ) from error
    print(f"Wrote {target}")
    _systemctl("daemon-reload", system=system)
    _systemctl("enable", "--now", name, system=system)
    user = "" if system else "--user "
    print(
        t(
            "The gateway is running. See: hermes gateway status, journalctl {user}-u {name}",
            user=user,
            name=name,
        )
    )
    if not system:
        print(
            t("To keep it running while you are not logged in: loginctl enable-linger")
        )
    return 0


def is_installed(profile: str = "") -> bool:
    """Whether a unit is installed that runs the gateway of a profile."""
    name = unit_name(profile)
    return any((_folder(system=system) / name).exists() for system in (False, True))


def replace_command(home: Home, command: Sequence[str]) -> Path | None:
    """Makes the user's unit of a gateway start another program at its next start. Returns the unit, if there is one."""
    target = _folder(system=False) / unit_name(home.profile)
    if not target.exists():
        return None
    old = target.read_text()
    words = " ".join(map(_quoted, command))
    more = " --all-profiles" if "--all-profiles" in old else ""
    lines = [
        f"ExecStart={words}{more}" if one.startswith("ExecStart=") else one
        for one in old.splitlines()
    ]
    target.write_text("\n".join(lines) + "\n")
    _systemctl("daemon-reload", system=False)
    return target


def uninstall(home: Home, *, system: bool) -> int:
    """Stops the gateway and removes the unit."""
    name = unit_name(home.profile)
    target = _folder(system=system) / name
    if not target.exists():
        raise HermesError(
            t("There is no unit: {target}", target=target),
            hint=t("Nothing was changed."),
        )
    _systemctl("disable", "--now", name, system=system)
    target.unlink()
    _systemctl("daemon-reload", system=system)
    print(f"Removed {target}")
    return 0


def _folder(*, system: bool) -> Path:
    if system:
        return _SYSTEM_FOLDER
    named = environment().get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "systemd" / "user"


def _systemctl(*arguments: str, system: bool) -> None:
    command = ["systemctl", *(() if system else ("--user",)), *arguments]
    program = find_program("systemctl", environment())
    if program is None:
        raise HermesError(
            t("This machine has no systemd (systemctl was not found)."),
            hint=t("Run the gateway yourself: hermes gateway run"),
        )
    try:
        done = subprocess.run(
            [program, *command[1:]],
            check=False,
            capture_output=True,
            text=True,
            timeout=_SYSTEMCTL_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HermesError(
            t("systemd did not answer ({error}).", error=error),
            hint=t(
                "The unit was written. Once systemd answers, run: {command}",
                command=" ".join(command),
            ),
        ) from error
    if done.returncode:
        why = " ".join(done.stderr.split())[:300]
        raise HermesError(
            t("systemd refused: {why}", why=why),
            hint=t("The unit was written. Try: {command}", command=" ".join(command)),
        )


def _quoted(text: str) -> str:
    """A word of a unit file, quoted so that it may contain anything."""
    plain = (
        text.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("%", "%%")
        .replace("$", "$$")
    )
    return f'"{plain}"'
