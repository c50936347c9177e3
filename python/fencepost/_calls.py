"""The questions, one function each."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Union

from ._answers import Advice, Answer, Language, Outcomes
from ._program import Done, run

PathOrText = Union[str, "os.PathLike[str]"]
Models = Union[str, Iterable[str], None]

#: The first word of a `.litmus` file.
_LITMUS = re.compile(r"\A\s*(PTX|OPENCL|VULKAN|C|CUDA)\s+\S+", re.IGNORECASE)


def _input(what: PathOrText, name: Optional[str] = None) -> dict[str, Any]:
    """A path stays one. A text has several lines, and becomes a file."""
    if not isinstance(what, str) or "\n" not in what:
        return {"path": what}
    ending = "litmus" if _LITMUS.match(what) else "toml"
    return {"text": (name or f"test.{ending}", what)}


def _options(
    model: Models = None,
    *,
    engine: Optional[str] = None,
    bound: Optional[int] = None,
    timeout: Optional[float] = None,
    launch: Union[str, Iterable[str], None] = None,
    defines: Optional[Mapping[str, int]] = None,
    options: Optional[Mapping[str, str]] = None,
) -> list[str]:
    line: list[str] = []
    models = [model] if isinstance(model, str) else list(model or [])
    launches = [launch] if isinstance(launch, str) else list(launch or [])
    line += [f"--model={name}" for name in models]
    line += [f"--launch={one}" for one in launches]
    line += [f"--define={name}={value}" for name, value in (defines or {}).items()]
    line += [f"--set={name}={value}" for name, value in (options or {}).items()]
    if engine is not None:
        line.append(f"--engine={engine}")
    if bound is not None:
        line.append(f"--bound={bound}")
    if timeout is not None:
        line.append(f"--timeout={max(1, round(timeout * 1000))}ms")
    return line


def _answers(done: Done, given: dict[str, Any]) -> list[Answer]:
    def picture_of(data: dict[str, Any]):
        def picture() -> str:
            line = ["show", f"--model={data['model']}", f"--name={data['test']}"]
            if data["property"] != "reachability":
                line.append(f"--property={data['property']}")
            if data.get("launch"):
                line.append(f"--launch={data['launch']}")
            return _picture(run(line, **given, report=False).out)

        return picture

    return [Answer.of(data, picture_of(data)) for data in done.report.get("answers", [])]


def _properties(property: Union[str, Iterable[str], None]) -> list[str]:
    names = [property] if isinstance(property, str) else list(property or [])
    return [f"--property={name}" for name in names]


def _picture(text: str) -> str:
    start = text.find("<svg")
    return text[start:] if start >= 0 else ""


def check(
    path_or_text: PathOrText,
    *,
    model: Models = None,
    property: Union[str, Iterable[str], None] = None,
    limit: Optional[float] = None,
    **options: Any,
) -> list[Answer]:
    """Decides every expectation of the tests under a path, or what is asked of kernels.

    `options` are those of the questions: `engine`, `bound`, `timeout` (seconds per question), `launch`, `defines`, `options`. `limit`
    is the longest time of the call in seconds.
    """
    given = _input(path_or_text)
    line = ["check", *_options(model, **options), *_properties(property)]
    return _answers(run(line, **given, limit=limit), given)


def check_kernel(
    source: PathOrText,
    *,
    language: Union[Language, str, None] = None,
    launch: Union[str, Iterable[str], None] = None,
    property: Union[str, Iterable[str], None] = None,
    limit: Optional[float] = None,
    **options: Any,
) -> list[Answer]:
    """Decides whether a kernel races, diverges, hangs, or leaves its bounds; with `property`, that alone.

    `source` is a text in CUDA C++, OpenCL C or PTX (`language` is needed for the first two), or a path. Without `launch`, Fencepost
    chooses a small one; `launch="any"` asks for every launch, which needs Z3 (`pip install fencepost[z3]`).
    """
    if isinstance(source, str) and ("\n" in source or "{" in source):
        if language is None and re.search(r"^\s*\.version\s+\d", source, re.MULTILINE):
            language = Language.PTX
        if language is None:
            raise ValueError("pass language='cuda', 'opencl' or 'ptx' with the text of a kernel")
        given = {"text": (f"kernel.{Language(language).ending}", source)}
    else:
        given = {"path": source}
    line = ["check", *_options(launch=launch, **options), *_properties(property)]
    return _answers(run(line, **given, limit=limit), given)


def ask(
    path_or_text: PathOrText,
    outcome: Optional[str] = None,
    *,
    model: Models = None,
    limit: Optional[float] = None,
    **options: Any,
) -> list[Answer]:
    """Decides whether an outcome is possible, as in `ask("MP.toml", "P1:r0 == 1")`; without one, the test's own condition."""
    given = _input(path_or_text)
    line = ["ask", *_options(model, **options)]
    if outcome is not None:
        line.append(f"--outcome={outcome}")
    return _answers(run(line, **given, limit=limit), given)


def compare(
    path_or_text: PathOrText, models: Iterable[str], *, limit: Optional[float] = None, **options: Any
) -> list[Answer]:
    """The answers of several models, each with the rule that makes the difference in `data["compared"]`."""
    given = _input(path_or_text)
    line = ["compare", f"--models={','.join(models)}", *_options(**options)]
    return _answers(run(line, **given, limit=limit), given)


def outcomes(
    path_or_text: PathOrText, *, model: Models = None, limit: Optional[float] = None, **options: Any
) -> list[Outcomes]:
    """Every outcome of a test, allowed or not."""
    done = run(["outcomes", *_options(model, **options)], **_input(path_or_text), limit=limit)
    return [Outcomes.of(table) for table in done.report.get("tables", [])]


def advise(
    path_or_text: PathOrText,
    *,
    model: Models = None,
    repair: bool = False,
    limit: Optional[float] = None,
    **options: Any,
) -> list[Advice]:
    """The weakest orders, scopes and fences with which a program keeps what its test expects, or the cheapest repair."""
    line = ["advise", *_options(model, **options), *(["--repair"] if repair else [])]
    done = run(line, **_input(path_or_text), limit=limit)
    return [Advice.of(one) for one in done.report.get("advice", [])]


def show(
    path_or_text: PathOrText, outcome: Optional[str] = None, *, model: Models = None, **options: Any
) -> str:
    """The execution, or the reason against it, as SVG."""
    line = ["show", *_options(model, **options)]
    if outcome is not None:
        line.append(f"--outcome={outcome}")
    return _picture(run(line, **_input(path_or_text), report=False).out)


def models() -> list[str]:
    """The names of the shipped models."""
    done = run(["models"], report=False)
    words = (line.split() for line in done.out.splitlines())
    return [line[0] for line in words if line and not line[0].startswith("(")]
