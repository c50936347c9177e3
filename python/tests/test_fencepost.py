"""Tests of the module: they run in the environment that it is installed in, without a network."""

import subprocess
import sys

import pytest

import fencepost
from fencepost import Verdict

pytest_plugins = ["pytester"]

TEST = r"""
name = "MP"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
memory = { x = 0, f = 0 }
[[thread]]
cta = 0
code = "st.weak x, 1; st.release.gpu f, 1"
[[thread]]
cta = 1
code = "ld.acquire.gpu r0, f; ld.weak r1, x"
[expect]
ptx = { reachability = "forbidden" }
"""
BROKEN = TEST.replace("st.release.gpu", "st.release.cta")
RACY = """
__global__ void k(int *out) {
  __shared__ int s[2];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[1 - threadIdx.x];
}
"""
FIXED = RACY.replace("= 1;\n", "= 1;\n  __syncthreads();\n")
LAUNCH = "k<<<1, 2>>>(out[2])"


def test_a_forbidden_outcome_and_its_allowed_twin():
    [answer] = fencepost.check(TEST)
    assert (answer.verdict, answer.is_met, answer.model) == (Verdict.FORBIDDEN, True, "ptx")
    [twin] = fencepost.ask(BROKEN, model="ptx")
    assert (twin.verdict, twin.is_met) == (Verdict.ALLOWED, False)
    assert "`.gpu` in place of `.cta`" in twin.repair[0]
    [other] = fencepost.ask(TEST, "P1:r0 == 0", model="ptx")
    assert other.verdict == "allowed"


def test_a_racy_kernel_and_its_repair():
    race = fencepost.check_kernel(RACY, language="cuda", launch=LAUNCH)[0]
    assert race.verdict is Verdict.RACY and race.is_fault
    assert race.race_lines == [4, 5]
    assert "__syncthreads();" in race.repair[0]
    fixed = fencepost.check_kernel(FIXED, language="cuda", launch=LAUNCH)
    assert not any(answer.is_fault for answer in fixed)
    with pytest.raises(ValueError, match="language"):
        fencepost.check_kernel(RACY)


def test_outcomes_comparisons_and_advice():
    [table] = fencepost.outcomes(TEST, model="ptx")
    assert table.complete and sum(one.allowed for one in table.outcomes) == 3
    assert "<table>" in table._repr_html_()
    answers = fencepost.compare(BROKEN, ["ptx", "sc"])
    said = [a.verdict.value for a in answers if a.property == "reachability"]
    assert said == ["allowed", "forbidden"]
    assert answers[0].data["compared"][0]["rule"] == "scope inclusion"
    [advice] = fencepost.advise(TEST, model="ptx")
    assert advice.verdict == "minimal"
    assert {"ptx", "sc", "opencl"} <= set(fencepost.models())


def test_a_notebook_gets_a_picture():
    [answer] = fencepost.ask(BROKEN, model="ptx")
    shown = answer._repr_html_()
    assert "<svg" in shown and "allowed" in shown


def test_errors_have_places(tmp_path):
    with pytest.raises(fencepost.InvalidInput) as caught:
        fencepost.check(TEST.replace(".gpu f", ".gpuu f"))
    [error] = caught.value.errors
    assert (error.id, error.path, error.line) == ("unknown-qualifier", "test.toml", 7)
    assert "did you mean" in str(error)
    with pytest.raises(fencepost.InvalidInput, match="does not exist"):
        fencepost.check(tmp_path / "missing.toml")
    with pytest.raises(fencepost.InvalidInput):
        fencepost.ask(TEST, model="ptxx")


def test_a_limit_ends_a_call(monkeypatch, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("FENCEPOST", str(slow))
    with pytest.raises(fencepost.NoAnswer, match="0.2 s"):
        fencepost.check(TEST, limit=0.2)
    slow.write_text("#!/bin/sh\necho broken >&2\nexit 70\n")
    with pytest.raises(fencepost.Defect, match="broken"):
        fencepost.check(TEST)


def test_the_module_is_the_program():
    done = subprocess.run(
        [sys.executable, "-m", "fencepost", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("fencepost ")


def test_litmus_files_and_kernels_are_tests_of_pytest(pytester):
    pytester.makefile(".toml", **{"litmus/MP": TEST, "litmus/broken": BROKEN, "other": "a = 1"})
    pytester.makeini("[pytest]\nfencepost_paths = litmus/**/*.toml\n")
    pytester.makepyfile(
        f"from fencepost.pytest_plugin import kernel\n\n"
        f"options = {{'language': 'cuda', 'launch': {LAUNCH!r}}}\n\n"
        f"@kernel(**options)\ndef test_fixed():\n    return {FIXED!r}\n\n"
        f"@kernel(**options)\ndef test_racy():\n    return {RACY!r}\n"
    )
    plugins = ["-p", "no:cacheprovider", "-p", "fencepost.pytest_plugin"]
    result = pytester.runpytest_subprocess(*plugins)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*allowed, expected forbidden*", "*`.gpu` in place of `.cta`*"])
    result.stdout.fnmatch_lines(["*racy, lines 4 and 5*"])
