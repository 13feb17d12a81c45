"""The main function of a child that reads one file and writes one result: it limits itself and keeps its output clean.

Such a child reads untrusted files, which may be crafted to exploit their reader.
"""

import os
import resource
from collections.abc import Callable, Mapping
from typing import IO


def write_one_result(
    work: Callable[[IO[bytes]], bytes], limits: Mapping[int, int]
) -> None:
    """Processes the file on stdin and writes the result to stdout. Anything that libraries print is dropped.

    The file is read from its beginning: its position is shared with the process that opened it, which may have read
    some of it. `limits` are those of the module `resource`; core dumps are never made.
    """
    output = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    for what, limit in {resource.RLIMIT_CORE: 0, **limits}.items():
        resource.setrlimit(what, (limit, limit))
    os.lseek(0, 0, os.SEEK_SET)
    with os.fdopen(0, "rb") as file:
        result = work(file)
    with os.fdopen(output, "wb") as pipe:
        pipe.write(result)
