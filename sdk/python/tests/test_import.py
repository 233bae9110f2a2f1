"""What a program pays for that only imports the package."""

from __future__ import annotations

import subprocess
import sys

LATER = {"httpx", "nacl", "nats", "nkeys", "pydantic", "pytest", "parley_asp.bridges", "parley_asp.evidence", "parley_asp.verify"}


def test_import_loads_what_it_needs() -> None:
    said = subprocess.run([sys.executable, "-c", "import parley_asp, sys; print(*sys.modules)"], check=True, capture_output=True, text=True)
    loaded = set(said.stdout.split())
    assert "parley_asp.agent" in loaded and not loaded & LATER
