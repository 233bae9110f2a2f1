"""Writes the reference of the package, from its docstrings. It fails if a public module, class or function has none.

python reference.py FOLDER
"""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from typing import Any

import pdoc
import pdoc.doc

import parley_asp

REEXPORTED = {"acts", "agent", "deal", "execution"}  # parley_asp has what is theirs


def public() -> list[str]:
    """The modules that programs import."""
    found = [m.name for m in pkgutil.walk_packages(parley_asp.__path__, "parley_asp.") if not m.ispkg]
    return ["parley_asp", *(name for name in found if "._" not in name and name.split(".")[1] not in REEXPORTED)]


def undocumented(names: pdoc.doc.Namespace[Any]) -> list[str]:
    """What has no docstring, not even an inherited one. Attributes need none: their names and types say what they are."""
    members = [m for m in names.members.values() if not m.name.startswith("_")]
    found = [m.fullname for m in (names, *members) if not m.docstring and not isinstance(m, pdoc.doc.Variable)]
    return found + [name for m in members if isinstance(m, pdoc.doc.Class) for name in undocumented(m)]


missing = sorted({name for m in public() for name in undocumented(pdoc.doc.Module.from_name(m))})
if missing:
    sys.exit("no docstring: " + ", ".join(missing))
pdoc.pdoc(*public(), output_directory=Path(sys.argv[1]))
