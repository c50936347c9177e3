"""Answers as objects. `data` of each has the keys of `--format json`, unchanged."""

from __future__ import annotations

import enum
import html
from dataclasses import dataclass, field
from typing import Any, Callable, Optional


class Verdict(str, enum.Enum):
    """What was decided. `UNDECIDED` is no answer: `Answer.reason` says why."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    RACY = "racy"
    RACE_FREE = "race-free"
    UNDEFINED = "undefined"
    DEFINED = "defined"
    TERMINATES = "terminates"
    HANGS = "hangs"
    DIVERGENT = "divergent"
    UNIFORM = "uniform"
    OUT_OF_BOUNDS = "out-of-bounds"
    IN_BOUNDS = "in-bounds"
    FAILS = "fails"
    HOLDS = "holds"
    MISUSED = "misused"
    PROPER = "proper"
    UNDECIDED = "undecided"

    def __str__(self) -> str:
        return self.value


#: Verdicts that speak of something wrong in the program, whatever a test expects.
FAULTS = frozenset(
    {
        Verdict.RACY,
        Verdict.UNDEFINED,
        Verdict.HANGS,
        Verdict.DIVERGENT,
        Verdict.OUT_OF_BOUNDS,
        Verdict.FAILS,
        Verdict.MISUSED,
    }
)


class Language(str, enum.Enum):
    """The language of a kernel."""

    CUDA = "cuda"
    OPENCL = "opencl"
    PTX = "ptx"

    def __str__(self) -> str:
        return self.value

    @property
    def ending(self) -> str:
        return {"cuda": "cu", "opencl": "cl", "ptx": "ptx"}[self.value]


@dataclass(frozen=True)
class Place:
    """A line of the program, with its text; `thread` as in `P0`."""

    line: int
    text: str = ""
    thread: str = ""
    what: str = ""


@dataclass(frozen=True)
class Answer:
    """One answer: a test or kernel, a model, a property, a verdict."""

    path: str
    test: str
    model: str
    property: str
    verdict: Verdict
    expected: Optional[str]
    reason: Optional[str]
    data: dict[str, Any] = field(repr=False, compare=False)
    picture: Optional[Callable[[], str]] = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, data: dict[str, Any], picture: Optional[Callable[[], str]] = None) -> "Answer":
        return cls(
            path=data["path"],
            test=data["test"],
            model=data["model"],
            property=data["property"],
            verdict=Verdict(data["verdict"]),
            expected=data.get("expected"),
            reason=data.get("reason"),
            data=data,
            picture=picture,
        )

    @property
    def is_decided(self) -> bool:
        return self.verdict is not Verdict.UNDECIDED

    @property
    def is_fault(self) -> bool:
        """Whether the verdict speaks of something wrong in the program."""
        return self.verdict in FAULTS

    @property
    def is_met(self) -> Optional[bool]:
        """Whether the test's expectation is met; `None` without one, and where nothing was decided."""
        if self.expected is None or not self.is_decided:
            return None
        expected = "forbidden" if self.expected == "required" else self.expected
        return self.verdict.value == expected

    @property
    def proved(self) -> Optional[str]:
        """How far the answer goes: `every-launch`, `every-input`, `launch` or `tried`."""
        return self.data.get("proved")

    @property
    def accesses(self) -> list[Place]:
        """The two accesses of a race."""
        race = self.data.get("race") or {}
        return [
            Place(one["line"], one.get("text", ""), one.get("thread", ""), one.get("what", ""))
            for one in race.get("accesses", [])
        ]

    @property
    def race_lines(self) -> list[int]:
        """The lines of the two accesses of a race."""
        return [access.line for access in self.accesses]

    @property
    def repair(self) -> list[str]:
        """The changes that were decided to repair the program, in words."""
        race = self.data.get("race") or {}
        missing = (self.data.get("explanation") or {}).get("missing") or {}
        said = [change["change"] for change in race.get("remedy") or []]
        for edit in missing.get("edits", []):
            instead, line = edit["instead"], edit["line"]
            if edit.get("place") == "instead":
                said.append(f"line {line}: `{instead}` in place of `{edit['what']}`")
            else:
                said.append(f"line {line}: `{instead}` {edit.get('place', 'at')} `{edit['text']}`")
        return said

    def __str__(self) -> str:
        text = f"{self.test} under {self.model}: {self.property}: {self.verdict}"
        if self.reason:
            text += f" ({self.reason})"
        if self.race_lines:
            text += ", lines " + " and ".join(map(str, self.race_lines))
        return text

    def _repr_html_(self) -> str:
        """The answer for a notebook, with the picture of the execution if there is one."""
        parts = [f"<p><b>{html.escape(str(self))}</b></p>"]
        for change in self.repair:
            parts.append(f"<p>repair: <code>{html.escape(change)}</code></p>")
        if self.picture is not None:
            svg = self.picture()
            if svg:
                parts.append(svg)
        return "\n".join(parts)


@dataclass(frozen=True)
class Outcome:
    """Final values, by register and location."""

    state: dict[str, str]
    allowed: bool
    racy: bool


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of a test under a model."""

    test: str
    model: str
    complete: bool
    outcomes: list[Outcome]
    data: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Outcomes":
        listed = [
            Outcome(one["state"], bool(one.get("allowed")), bool(one.get("racy")))
            for one in data.get("outcomes", [])
        ]
        return cls(data["test"], data["model"], bool(data.get("complete")), listed, data)

    def _repr_html_(self) -> str:
        names = list(self.outcomes[0].state) if self.outcomes else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in [*names, self.model])
        rows = []
        for one in self.outcomes:
            word = ("allowed" if one.allowed else "forbidden") + (", racy" if one.racy else "")
            cells = [*one.state.values(), word]
            rows.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + "</tr>")
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


@dataclass(frozen=True)
class Advice:
    """The weakest orders, scopes and fences, or the cheapest repair."""

    tests: list[str]
    models: list[str]
    verdict: str
    diff: str
    data: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Advice":
        return cls(data["tests"], data["models"], data["verdict"], data.get("diff", ""), data)
