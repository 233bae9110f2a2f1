"""A real broker, in a process of its own, that a test may kill and start again."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PARLEY = os.environ.get("PARLEY_BINARY", "parley")


def _free() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Broker:
    """``parley serve --dev`` on ports and a data folder that outlive it."""

    def __init__(self, data: Path, *flags: str) -> None:
        self.data, self.flags, self.process = data, flags, None
        self.http, self.nats = _free(), _free()
        self.url = f"http://127.0.0.1:{self.http}"
        self.nats_url = f"nats://127.0.0.1:{self.nats}"
        self.start()

    process: subprocess.Popen[str] | None

    def start(self) -> None:
        listen = ["--listen", f"127.0.0.1:{self.nats}", "--http", f"127.0.0.1:{self.http}"]
        self.process = subprocess.Popen(
            [PARLEY, "serve", "--dev", "--data", str(self.data), *listen, *self.flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if re.match(r"\s+sync ", line):
                return
        raise RuntimeError("".join(said))

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def restart(self) -> None:
        self.kill()
        self.start()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    b = Broker(tmp_path / "data")
    yield b
    b.kill()
