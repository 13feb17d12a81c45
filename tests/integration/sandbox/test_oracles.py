"""Destructive and prying commands, really run against decoys outside the workspace: nothing outside may change, be
read, be reached or be ended. That they would do damage is shown where the fence holds the decoys too."""

import asyncio
import os

import pytest
from tests.integration.sandbox.machine import SECRET, Machine

DESTRUCTIVE = {
    "rm": "rm -rf {out}/home/projects",
    "rm quoted": '"r""m" "-r""f" {out}/home/projects',
    "rm permuted": "rm {out}/home/projects -r -f",
    "rm abbreviated": "rm --recurs --forc {out}/home/projects",
    "rm by glob": "/bin/r[m] -rf {out}/home/projects",
    "rm by base64": "$(echo cm0gLXJm | base64 -d) {out}/home/projects",
    "rm by alias": "shopt -s expand_aliases\nalias ll='rm -rf'\nll {out}/home/projects",
    "rm continued": "r\\\nm -rf {out}/home/projects",
    "rm by variable": "X=rm; $X -rf {out}/home/projects",
    "rm by eval": "eval 'rm -r'f {out}/home/projects",
    "rm by env": "env -S 'rm -rf {out}/home/projects'",
    "rm by xargs": "echo {out}/home/projects | xargs rm -rf",
    "rm by find": "find {out}/home/projects -delete",
    "rm through a link": "ln -s {out}/home/projects l && rm -rf l/",
    "rm by parent": "rm -rf ../outside/home/projects",
    "rm by cd": "cd {out}/home && rm -rf projects",
    "rm by timeout": "timeout 5 nice -n 5 rm -r {out}/home/projects",
    "rm detached": "setsid -w rm -rf {out}/home/projects",
    "shred": "shred -u {out}/home/projects/keep.txt",
    "truncate": "truncate -s 0 {out}/home/projects/keep.txt",
    "redirect": ": > {out}/home/projects/keep.txt",
    "append": "echo x >> {out}/home/.bashrc",
    "tee": "echo x | tee {out}/home/.bashrc",
    "dd": "dd if=/dev/zero of={out}/disk.img bs=1k count=1 conv=notrunc",
    "cp": "cp keep.txt {out}/home/projects/keep.txt",
    "mv in": "mv keep.txt {out}/home/projects/keep.txt",
    "mv out": "mv {out}/home/projects .",
    "tar": "tar --remove-files -cf /dev/null {out}/home/projects",
    "sed": "sed -i s/precious/gone/ {out}/home/projects/keep.txt",
    "ln over": "ln -sf /dev/null {out}/home/projects/keep.txt",
    "hard link and write": "ln {out}/home/projects/keep.txt h && echo gone > h",
    "mkdir": "mkdir {out}/home/new",
    "mkfifo": "mkfifo {out}/home/new",
    "chmod": "chmod -R 000 {out}/home/projects",
    "chmod by handle": "python3 -c \"import os; os.fchmod(os.open('{out}/home/projects/keep.txt', os.O_RDONLY), 0)\"",
    "chmod through a link": "ln -s {out}/home/projects/keep.txt l && chmod 777 l",
    "chmod by /proc": "exec 9<{out}/home/projects/keep.txt; chmod 777 /proc/self/fd/9",
    "chown": "chown 1234 {out}/home/projects/keep.txt",
    "touch": "touch -d 2001-01-01 {out}/home/projects/keep.txt",
    "touch by handle": "python3 -c \"import os; os.utime(os.open('{out}/home/projects/keep.txt', 0), (1, 1))\"",
    "setfattr": "python3 -c \"import os; os.setxattr('{out}/home/projects/keep.txt', 'user.x', b'1')\"; false",
    "python": "python3 -c \"import shutil; shutil.rmtree('{out}/home/projects')\"",
    "python heredoc": "python3 - <<'E'\nimport shutil\nshutil.rmtree('{out}/home/projects')\nE",
    "perl": "perl -e 'exit system(q(rm -rf {out}/home/projects)) >> 8'",
    "ssh key": "echo 'ssh-ed25519 AAAA evil' >> $HOME/.ssh/authorized_keys",
    "ssh key by dd": "echo evil | dd of=$HOME/.ssh/authorized_keys oflag=append conv=notrunc",
    "own settings": "echo 'approvals: full' > $HOME/.hermes/config.yaml",
    "own log": "rm $HOME/.hermes/state.db",
    "git of another": "git -C {out}/home init -q evil",
    "git settings": "git config --global core.pager evil",
    "kill": "kill -9 {pid}",
    "kill by python": "python3 -c \"import os; os.kill({pid}, 9)\"",
    "kill by handle": "python3 -c \"import os, signal; signal.pidfd_send_signal(os.pidfd_open({pid}), 9)\"",
    "kill the group": "kill -9 -- -{pid}",
    "stop": "kill -STOP {pid}; kill -KILL {pid}",
    "connect": "exec 3<>/dev/tcp/127.0.0.1/{port}",
    "connect by python": "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\"",
    "connect from a thread": (
        "python3 -c \"import socket, threading; t = threading.Thread(target=lambda: "
        "socket.create_connection(('127.0.0.1', {port}))); t.start(); t.join()\"; false"
    ),
    "datagram": "echo leak > /dev/udp/127.0.0.1/{udp}; false",
    "socket by path": "python3 -c \"import socket; socket.socket(1).connect('{out}/socket')\"",
    "socket by a link": "ln -s {out}/socket s; python3 -c \"import socket; socket.socket(1).connect('s')\"",
}  # fmt: skip
ONLY_CONFINED = {
    "kill everything": "kill -9 -1; false",
    "mount": "mount --bind . {out}/home",
    "remount": "mount -o remount,rw / ; echo x > {out}/home/.bashrc",
    "new namespaces": "unshare -rm rm -rf {out}/home/projects",
    "namespace of another": "nsenter -t {pid} -m rm -rf {out}/home/projects",
    "chroot": "chroot {out}/home /bin/true",
    "device": "mknod d b 254 0 && dd if=d count=1",
    "debugger": "strace -p {pid} -o /dev/null -e trace=none & sleep 0.2; kill %1",
}
PRYING = {
    "cat key": "cat $HOME/.ssh/id_ed25519",
    "cat by python": "python3 -c \"import os; print(open(os.environ['HOME'] + '/.ssh/id_ed25519').read())\"",
    "cat through a link": "ln -s $HOME/.ssh/id_ed25519 k; cat k",
    "cat by parent": "cat ../outside/home/projects/../.ssh/id_ed25519",
    "copy": "cp -r $HOME/.ssh here; cat here/*",
    "hard link": "ln $HOME/.ssh/id_ed25519 k; cat k",
    "tar": "tar -cf k.tar $HOME/.aws; cat k.tar",
    "grep": "grep -r decoy $HOME",
    "find": "find $HOME -type f -exec cat {{}} +",
    "netrc": "cat $HOME/.netrc $HOME/.docker/config.json",
    "cloud": "cat $HOME/.config/gcloud/credentials.db $HOME/.config/gh/hosts.yml",
    "browser": "cat $HOME/.config/google-chrome/Default/Cookies $HOME/.mozilla/firefox/x/logins.json",
    "history": "cat $HOME/.bash_history $HOME/.env",
    "own home": "cat $HOME/.hermes/.env $HOME/.hermes/state.db $HOME/.hermes/config.yaml",
    "root of another": "cat /proc/{pid}/root{out}/home/.ssh/id_ed25519",
    "folder of another": "cat /proc/{pid}/cwd{out}/home/.netrc",
    "own root": "cat /proc/self/root{out}/home/.ssh/id_ed25519",
    "environment of another": "cat /proc/{pid}/environ | tr '\\0' '\\n'",
    "every environment": "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
    "memory of the parent": "head -c 1 /proc/{hermes}/mem || grep -m1 heap /proc/{hermes}/maps",
}


def filled(command: str, machine: Machine) -> str:
    listener = machine.listener
    return command.format(
        out=machine.outside,
        pid=machine.process.pid,
        port=listener.port,
        udp=listener.datagram_port,
        hermes=os.getpid(),
    )


@pytest.mark.parametrize("name", [*DESTRUCTIVE, *ONLY_CONFINED])
async def test_nothing_outside_is_touched(machine: Machine, name: str) -> None:
    if name in ONLY_CONFINED:
        await machine.prove()
    else:
        await machine.prove_once()
    command = filled((DESTRUCTIVE | ONLY_CONFINED)[name], machine)
    result = await machine.run(command, timeout=20)
    machine.assert_untouched()
    assert not result.ok, f"it says it worked: {result.text}"


@pytest.mark.parametrize("name", PRYING)
async def test_no_secret_is_read(machine: Machine, name: str) -> None:
    await machine.prove_once()
    result = await machine.run(filled(PRYING[name], machine), timeout=20)
    assert SECRET not in result.text
    assert "[heap]" not in result.text
    machine.assert_untouched()


ALWAYS_HELD = (
    "ssh key",
    "ssh key by dd",
    "own settings",
    "own log",
    "kill",
    "stop",
    "setfattr",
    "socket",
)


@pytest.mark.parametrize(
    "name", [name for name in DESTRUCTIVE if not name.startswith(ALWAYS_HELD)]
)
@pytest.mark.parametrize("sandbox", ["bubblewrap"], indirect=True)
async def test_the_damage_is_real(machine: Machine, name: str) -> None:
    """The negative twin: inside a fence that is wide enough, the same command does reach the decoys.

    A workspace that holds a home is not whole with Landlock; the commands are the same.
    """
    if name == "chown" and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    await machine.prove_once()
    command = f"cd {machine.workspace}; {filled(DESTRUCTIVE[name], machine)}"
    machine.workspace = machine.root
    await machine.run(
        command,
        reach="network" if name.startswith(("connect", "datagram")) else "workspace",
        timeout=20,
    )
    async with asyncio.timeout(20):
        while not _was_touched(machine):  # noqa: ASYNC110 - the listener notes a connection a moment after it was made
            await asyncio.sleep(0.01)


def _was_touched(machine: Machine) -> bool:
    try:
        machine.assert_untouched()
    except AssertionError:
        return True
    return False
