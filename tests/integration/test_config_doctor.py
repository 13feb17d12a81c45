"""Which file system a folder is on, by the mount table."""

import os
from pathlib import Path

from hermes.commands.doctor_checks import filesystem_type

TABLE = """\
22 1 0:20 / / rw - ext4 /dev/sda rw
23 22 0:21 / {folder} rw,relatime shared:1 - nfs4 server:/x rw
24 22 0:22 / {folder}/with\\040blank rw - fuse.sshfs host rw
"""


def test_the_deepest_mount_decides(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE.format(folder=tmp_path / "net"))
    assert filesystem_type(tmp_path, table) == "ext4"
    assert filesystem_type(tmp_path / "net" / "home", table) == "nfs4"
    assert filesystem_type(tmp_path / "net" / "with blank", table) == "fuse.sshfs"


def test_no_mount_table_means_unknown(tmp_path: Path) -> None:
    assert filesystem_type(tmp_path, tmp_path / "none") == ""


def test_names_that_are_not_ascii_or_no_text_are_read_as_the_system_does(
    tmp_path: Path,
) -> None:
    table = tmp_path / "mountinfo"
    for name in ("müller".encode(), b"b\xffd", rb"a\040b"):
        folder = tmp_path / os.fsdecode(name.replace(rb"\040", b" "))
        table.write_bytes(
            b"22 1 0:20 / / rw - ext4 x rw\n23 22 0:21 / "
            + bytes(tmp_path)
            + b"/"
            + name
            + b" rw - nfs4 x rw\n"
        )
        assert filesystem_type(folder, table) == "nfs4"
