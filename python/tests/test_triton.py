"""Tests of `fencepost.triton`. Those that compile need Triton; the others take PTX with its line table."""

import pytest

import fencepost.triton
from fencepost import Verdict

PTX = """
.version 8.4
.target sm_90
.address_size 64
.file 1 "/kernels/sum.py"
.visible .entry k(.param .u64 k_param_0)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  .loc 1 12 5
  ld.param.u64 %rd1, [k_param_0]; mov.u32 %r1, %ctaid.x;
  .loc 1 14 9
  st.global.u32 [%rd1], %r1;
  ret;
}
"""


def test_lines_of_ptx_have_lines_of_python():
    found = fencepost.triton.places(PTX)
    assert found[11] == ("/kernels/sum.py", 12)
    assert found[13] == ("/kernels/sum.py", 14)
    assert 2 not in found


def test_a_launch_gets_the_parameters_that_triton_appends():
    ptx = ".visible .entry f(\n .param .u64 f_0,\n .param .u64 f_1,\n .param .u64 f_2\n)"
    whole = "f<<<1, 32>>>(x[4], global_scratch[1], profile_scratch[1])"
    assert fencepost.triton._whole(ptx, "f<<<1, 32>>>(x[4])") == whole
    assert fencepost.triton._whole(ptx, whole) == whole
    assert fencepost.triton._whole(ptx, "any") == "any"


def test_a_race_names_the_line_of_python():
    [race, *_] = fencepost.triton.check(PTX, "k<<<2, 1>>>(out:u32[1])")
    assert race.verdict is Verdict.RACY
    assert race.lines == [("/kernels/sum.py", 14), ("/kernels/sum.py", 14)]
    with pytest.raises(TypeError, match="triton.compile"):
        fencepost.triton.ptx_of(object())


def test_stores_of_one_value_race_by_the_letter_alone():
    same = PTX.replace("%ctaid.x", "7")
    launch = "k<<<2, 1>>>(out:u32[1])"
    assert fencepost.triton.check(same, launch)[0].verdict is Verdict.RACE_FREE
    letter = fencepost.triton.check(same, launch, options={"same-value": "racy"})
    assert letter[0].verdict is Verdict.RACY


def test_a_kernel_of_triton_is_race_free_and_its_twin_without_a_mask_races():
    triton = pytest.importorskip("triton")
    from kernels import add, overlap

    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    for function, is_racy in [(add, False), (overlap, True)]:
        assert isinstance(function, triton.JITFunction)
        compiled = fencepost.triton.compile(function, signature, constants={"BLOCK": 32}, num_warps=1)
        launch = f"{function.__name__}<<<2, 32>>>(x:u32[64], y:u32[64], out:u32[64], 64)"
        race = fencepost.triton.check(compiled, launch)[0]
        assert race.verdict is (Verdict.RACY if is_racy else Verdict.RACE_FREE), str(race)
        if is_racy:
            assert all(place is not None for place in race.lines)


def without_a_barrier(ptx):
    line = next(line for line in ptx.splitlines() if "bar.sync" in line)
    return ptx.replace(line + "\n", "", 1)


def test_softmax_needs_its_barrier():
    pytest.importorskip("triton")
    from kernels import softmax

    signature = {"x": "*fp32", "out": "*fp32", "stride": "i32", "n": "i32", "BLOCK": "constexpr"}
    ptx = fencepost.triton.compile(softmax, signature, constants={"BLOCK": 64}, num_warps=2).asm["ptx"]
    launch = "softmax<<<1, 64>>>(x:u32[64], out:u32[64], 64, 64)"
    options = {"property": "race", "timeout": 300}
    assert fencepost.triton.check(ptx, launch, **options)[0].verdict is Verdict.RACE_FREE
    race = fencepost.triton.check(without_a_barrier(ptx), launch, **options)[0]
    assert race.verdict is Verdict.RACY


def test_a_lock_is_given_back_with_release():
    pytest.importorskip("triton")
    from kernels import split_k

    signature = {"a": "*i32", "b": "*i32", "c": "*i32", "lock": "*i32"}
    signature |= {name: "constexpr" for name in ("M", "N", "K", "SEM")}
    launch = "split_k<<<2, 32>>>(a:u32[32], b:u32[64], c:u32[32], lock:u32[1])"
    for order, verdict in [("acq_rel", Verdict.RACE_FREE), ("relaxed", Verdict.RACY)]:
        constants = {"M": 4, "N": 8, "K": 4, "SEM": order}
        compiled = fencepost.triton.compile(split_k, signature, constants=constants, num_warps=1)
        race = fencepost.triton.check(compiled, launch, property="race", timeout=600)[0]
        assert race.verdict is verdict, order


def test_tiles_of_a_persistent_product_are_apart():
    pytest.importorskip("triton")
    from kernels import persistent

    signature = {"a": "*i32", "b": "*i32", "c": "*i32", "tiles": "i32"}
    signature |= {name: "constexpr" for name in ("APART", "N", "K", "STEP")}
    launch = "persistent<<<2, 32>>>(a:u32[32], b:u32[32], c:u32[64], 2)"
    for apart, verdict in [(4, Verdict.RACE_FREE), (3, Verdict.RACY)]:
        constants = {"APART": apart, "N": 8, "K": 4, "STEP": 2}
        compiled = fencepost.triton.compile(persistent, signature, constants=constants, num_warps=1)
        race = fencepost.triton.check(compiled, launch, property="race", timeout=300)[0]
        assert race.verdict is verdict, str(race)
