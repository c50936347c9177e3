"""Decides questions about the memory model of GPU programs.

Every function takes a path, or the text of a test or kernel, and calls the program `fencepost` of this package. Answers have the keys
of its `--format json`, unchanged, in `Answer.data`.

    >>> import fencepost
    >>> [answer] = fencepost.ask("MP.toml", model="ptx")
    >>> answer.verdict
    <Verdict.FORBIDDEN: 'forbidden'>
"""

from __future__ import annotations

from ._answers import Advice, Answer, Language, Outcome, Outcomes, Place, Verdict
from ._calls import advise, ask, check, check_kernel, compare, models, outcomes, show
from ._program import Defect, FencepostError, InputError, InvalidInput, NoAnswer, program

__all__ = [
    "Advice",
    "Answer",
    "Defect",
    "FencepostError",
    "InputError",
    "InvalidInput",
    "Language",
    "NoAnswer",
    "Outcome",
    "Outcomes",
    "Place",
    "Verdict",
    "advise",
    "ask",
    "check",
    "check_kernel",
    "compare",
    "models",
    "outcomes",
    "program",
    "show",
]
