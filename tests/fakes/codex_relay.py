"""The process of a `CodexPeer`: what comes in goes to the test, what the test says goes out. Starts in milliseconds."""

import os
import select
import socket
import sys


def carry(path: str) -> None:
    """Carries until either end ends."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        while True:
            ready, _, _ = select.select([0, peer], (), ())
            if 0 in ready:
                data = os.read(0, 1 << 20)
                if not data:
                    return
                peer.sendall(data)
            if peer in ready:
                data = peer.recv(1 << 20)
                if not data:
                    return
                while data:
                    data = data[os.write(1, data) :]


if __name__ == "__main__":
    carry(sys.argv[1])
