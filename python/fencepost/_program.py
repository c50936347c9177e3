"""Finds and runs the program.

What always holds:
- A run ends: at its time limit the program is killed, and `NoAnswer` is raised.
- Exit codes 2 and 70 are exceptions; 0, 1, 3 and 4 are results.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Sequence

#: Names the program, in place of the one of this package.
VARIABLE = "FENCEPOST"


class FencepostError(Exception):
    """Any failure of this module."""


class NoAnswer(FencepostError):
    """The program did not end within its time."""


class Defect(FencepostError):
    """A defect of Fencepost: nothing that it said can be relied on."""


@dataclass(frozen=True)
class InputError:
    """An error in the input. `line` and `column` count from 1."""

    id: str
    message: str
    path: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    label: str = ""
    help: Optional[str] = None

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}: " if self.line else ""
        label = f" ({self.label})" if self.label else ""
        advice = f"; {self.help}" if self.help else ""
        return f"{place}{self.message}{label}{advice}"


class InvalidInput(FencepostError, ValueError):
    """A test, a kernel, a model or an option could not be understood. `errors` has the places."""

    def __init__(self, errors: Sequence[InputError], text: str):
        self.errors = list(errors)
        self.text = text
        super().__init__("\n".join(map(str, self.errors)) or text)


@functools.lru_cache(maxsize=None)
def _installed() -> str:
    name = "fencepost" + (sysconfig.get_config_var("EXE") or "")
    schemes = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    if hasattr(sysconfig, "get_preferred_scheme"):
        schemes.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    # `pip install --target FOLDER` puts programs into FOLDER/bin.
    schemes.append(str(Path(__file__).resolve().parent.parent / "bin"))
    for folder in schemes:
        path = os.path.join(folder or "", name)
        if os.path.isfile(path):
            return path
    found = shutil.which(name)
    if found is None:
        raise FencepostError(
            f"the program `fencepost` is not in {', '.join(filter(None, schemes))} nor in PATH: "
            f"install the package again, or name the program in {VARIABLE}"
        )
    return found


def program() -> str:
    """The path of the program."""
    return os.environ.get(VARIABLE) or _installed()


@dataclass(frozen=True)
class Done:
    """What a run gave."""

    code: int
    out: str
    err: str
    report: dict[str, Any]


def run(
    arguments: Sequence[str],
    *,
    text: Optional[tuple[str, str]] = None,
    path: Optional[os.PathLike[str] | str] = None,
    limit: Optional[float] = None,
    report: bool = True,
) -> Done:
    """Runs the program over a file, or over a text that becomes a file of the given name."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
        command = [program(), *arguments, "--color", "never"]
        written = os.path.join(folder, "report.json")
        if report:
            command += ["--no-config", "--report", f"json={written}"]
        where = None
        if text is not None:
            where = os.path.join(folder, "input")
            os.mkdir(where)
            Path(where, text[0]).write_text(text[1], encoding="utf-8")
            command += ["--", text[0]]
        elif path is not None:
            command += ["--", os.fspath(path)]
        try:
            done = subprocess.run(
                command,
                cwd=where,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"no answer within {limit} s; give a smaller launch or more time") from None
        data: dict[str, Any] = {}
        if os.path.exists(written):
            data = json.loads(Path(written).read_text(encoding="utf-8") or "{}")
    if done.returncode == 70 or done.returncode < 0:
        raise Defect(done.stderr.strip() or f"the program ended with {done.returncode}")
    if done.returncode == 2:
        keys = InputError.__dataclass_fields__
        errors = [
            InputError(**{key: value for key, value in error.items() if key in keys})
            for error in data.get("errors", [])
        ]
        raise InvalidInput(errors, done.stderr.strip())
    return Done(done.returncode, done.stdout, done.stderr, data)
