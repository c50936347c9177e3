"""Kernels of Triton: their PTX goes to Fencepost, and answers name lines of the Python source.

Triton compiles without a GPU, so this needs none.

What always holds:
- The answer is about the PTX that Triton made, not about the Python text.
- A line of Python is one that the PTX's own `.loc` directives name; without them, an answer has the lines of the PTX alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from ._answers import Answer, Language
from ._calls import check_kernel


@dataclass(frozen=True)
class TritonAnswer:
    """An answer about the PTX of a kernel, with the lines of Python of its accesses."""

    answer: Answer
    lines: list[Optional[tuple[str, int]]]
    ptx: str

    @property
    def verdict(self):
        return self.answer.verdict

    def __str__(self) -> str:
        named = [f"{path}:{line}" for path, line in filter(None, self.lines)]
        return f"{self.answer}" + (f" [{', '.join(named)}]" if named else "")

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()


def ptx_of(compiled: Any) -> str:
    """The PTX of a result of `triton.compile`, or a text that is PTX."""
    if isinstance(compiled, str):
        return compiled
    assembly = getattr(compiled, "asm", None)
    if not isinstance(assembly, Mapping) or "ptx" not in assembly:
        raise TypeError("pass the result of triton.compile for a CUDA target, or PTX as text")
    return assembly["ptx"]


def compile(function: Any, signature: Mapping[str, str], *, constants: Optional[Mapping[str, Any]] = None,
            capability: int = 90, **options: Any) -> Any:
    """Compiles a `@triton.jit` function for a capability of NVIDIA GPUs, without a GPU.

    `signature` as in `{"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}`, `constants` the values of `constexpr` parameters.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constants = dict(constants or {})
    source = ASTSource(fn=function, signature=dict(signature), constexprs=constants)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options or None)


def places(ptx: str) -> dict[int, tuple[str, int]]:
    """By line of PTX: the line of source that its last `.loc` names."""
    files = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.MULTILINE))
    found: dict[int, tuple[str, int]] = {}
    current: Optional[tuple[str, int]] = None
    for number, line in enumerate(ptx.splitlines(), start=1):
        location = re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line)
        if location:
            path = files.get(location[1], "")
            current = (path, int(location[2])) if int(location[2]) else None
        elif re.match(r"\s*\.(visible|entry|func)\b", line):
            current = None
        elif current is not None:
            found[number] = current
    return found


#: Pointers that Triton appends to the parameters of every kernel.
_SCRATCH = ("global_scratch[1]", "profile_scratch[1]")


def _whole(ptx: str, launch: str) -> str:
    """The launch with the parameters that Triton appends, if it has those of the Python function alone."""
    parts = re.fullmatch(r"\s*([\w$.]+)\s*(<<<.*>>>)\s*\((.*)\)\s*", launch, re.DOTALL)
    if parts is None:
        return launch
    name, sizes, given = parts.groups()
    head = re.search(rf"\.entry\s+{re.escape(name)}\s*\(([^)]*)\)", ptx)
    arguments = [one for one in given.split(",") if one.strip()]
    if head is None or head[1].count(".param") != len(arguments) + len(_SCRATCH):
        return launch
    return f"{name}{sizes}({', '.join([*map(str.strip, arguments), *_SCRATCH])})"


def check(compiled: Any, launch: Optional[str] = None, **options: Any) -> list[TritonAnswer]:
    """Decides whether the PTX of a Triton kernel races, diverges or hangs.

    `launch` as in `"add<<<2, 128>>>(x:u32[256], y:u32[256], out:u32[256], 256)"`: the parameters of the Python function that are no constants. A
    block has 32 threads for each of `num_warps`.

    The lanes of a warp that have reduced a value all store it to one place, in every reduction that Triton compiles. So stores of one value
    do not race here; `options={"same-value": "racy"}` says that they do.
    """
    options["options"] = {"same-value": "benign", **(options.get("options") or {})}
    ptx = ptx_of(compiled)
    if launch is not None:
        launch = _whole(ptx, launch)
    source = places(ptx)
    answers = check_kernel(ptx, language=Language.PTX, launch=launch, **options)
    return [
        TritonAnswer(answer, [source.get(access.line) for access in answer.accesses], ptx)
        for answer in answers
    ]
