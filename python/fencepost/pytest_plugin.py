"""A plugin for pytest: litmus tests in TOML are tests, and so are kernels that a function returns.

Files: every `*.toml` with a `condition` and threads below the folders that `fencepost_paths` in the configuration names (none without
it), or that are named on the command line.

Functions: `@fencepost.pytest_plugin.kernel(...)` makes a test of a function that returns the text of a kernel.
"""

from __future__ import annotations

import fnmatch
import functools
import os
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from . import _answers, check, check_kernel
from ._program import InvalidInput


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "fencepost_paths",
        "patterns of litmus tests in TOML, as in litmus/**/*.toml",
        type="args",
        default=[],
    )


def _is_test(path: Path, config: pytest.Config) -> bool:
    if path.suffix != ".toml" or path.name in ("Cargo.toml", "fencepost.toml", "pyproject.toml"):
        return False
    if any(Path(argument.split("::")[0]).resolve() == path for argument in config.args):
        return True
    name = os.path.relpath(path, config.rootpath).replace(os.sep, "/")
    patterns = config.getini("fencepost_paths")
    return any(fnmatch.fnmatch(name, pattern.replace("**/", "*")) for pattern in patterns)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Optional["LitmusFile"]:
    if _is_test(file_path, parent.config):
        return LitmusFile.from_parent(parent, path=file_path)
    return None


class LitmusFile(pytest.File):
    """A file of litmus tests, which are decided together."""

    def collect(self):
        yield LitmusItem.from_parent(self, name=self.path.stem)


class Unmet(Exception):
    """Expectations that are not met, or that were not decided."""


class LitmusItem(pytest.Item):
    """The expectations of a file."""

    def runtest(self) -> None:
        answers = check(self.path)
        wrong = [answer for answer in answers if answer.is_met is False or not answer.is_decided]
        if wrong:
            raise Unmet("\n".join(map(_line, wrong)))

    def repr_failure(self, excinfo: Any) -> str:
        if isinstance(excinfo.value, (Unmet, InvalidInput)):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self):
        return self.path, 0, f"litmus test {self.name}"


def _line(answer: _answers.Answer) -> str:
    text = str(answer)
    if answer.expected is not None:
        text += f", expected {answer.expected}"
    return "\n  repair: ".join([text, *answer.repair])


def kernel(**options: Any) -> Callable[[Callable[..., str]], Callable[..., None]]:
    """Makes a test of a function that returns the text of a kernel; options are those of `check_kernel`."""

    def make(function: Callable[..., str]) -> Callable[..., None]:
        @functools.wraps(function)
        def test(*arguments: Any, **named: Any) -> None:
            source = function(*arguments, **named)
            answers = check_kernel(source, **options)
            assert answers, "the text holds no kernel"
            wrong = [answer for answer in answers if answer.is_fault or not answer.is_decided]
            assert not wrong, "\n".join(map(_line, wrong))

        return test

    return make
