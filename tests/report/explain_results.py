"""Hand-made explanations, for the tests of the reports of ``explain``."""

from dataclasses import replace
from typing import Any

from report_results import text_of

from breakscan.explanation.breaks import BreakSite, FunctionPart
from breakscan.explanation.compilations import (
    CompiledFrame,
    CompileTarget,
    GuardLine,
    MadeLine,
    Precompiled,
    Specialisation,
)
from breakscan.explanation.explanation import Explanation, RankDifference, RankReport, exit_ending
from breakscan.explanation.exports import Export
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.graphs import CudaGraphSkip, Generated, Graph, Kernel, KernelKind, LineStages
from breakscan.explanation.notices import Notice
from breakscan.explanation.recompiles import Recompile
from breakscan.explanation.run_totals import Calls, StepProfile
from breakscan.model.findings import ChangeKind, Origin, Place, Severity, Site, Verdict
from breakscan.model.problem import Caller, Price, Problem, ProblemKind, SharedCode
from breakscan.model.remedy import Remedy, RemedyKind
from breakscan.recording.parsers.guards import ParsedGuard
from breakscan.recording.records import CacheLooked, HostCall, StepsProfiled
from breakscan.report.explain import ExplainReport
from breakscan.report.formats import EXPLAIN
from breakscan.rulebook.library import load_library

LIBRARY = load_library()
ITEM = LIBRARY.get("BRK201")
SIZE = LIBRARY.get("BRK711")
LIMIT = LIBRARY.get("BRK717")

SITE = Site("src/model.py", 3, 8, 3, 15)


CALLER = Caller("train.py", 41, "main", Origin.USER)
MODEL = Caller("src/model.py", 3, "Block.forward", Origin.USER)
PRICE = Price(
    passes=340,
    host_seconds=0.00123456789,
    device_seconds=None,
    waits=True,
    compile_seconds=0.9,
    low_seconds=0.0012,
    high_seconds=0.0013,
)

BREAK = BreakSite(
    rule=ITEM,
    gb_type="Unsupported Tensor.item() call with capture_scalar_outputs=False",
    gb_id="GB0124",
    reason="Dynamo does not support tracing `Tensor.item()`",
    hints=("Set torch._dynamo.config.capture_scalar_outputs = True",),
    site=SITE,
    function="Block.forward",
    origin=Origin.USER,
    place=Place.LOOP,
    count=3,
    verdict=Verdict.EAGER,
    consequence="graph break in loop",
    given_up=(FunctionPart("Block.forward"),),
    compile_ids=("0/0", "r1:0/0"),
    stack=(CALLER, MODEL),
    price=PRICE,
    code="if x.item():",
    remedies=("capture_scalar_outputs",),
)
IN_LIBRARY = replace(
    BREAK,
    rule=None,
    gb_id=None,
    gb_type="Data-dependent branching",
    site=Site("/site-packages/lib/attention.py", 88, 1, 88, 9),
    function="attend",
    origin=Origin.LIBRARY,
    place=Place.PLAIN,
    count=1,
    verdict=Verdict.SPLITS,
    consequence=None,
    given_up=(),
    stack=(CALLER, MODEL, Caller("/site-packages/lib/attention.py", 88, "attend", Origin.LIBRARY)),
    price=None,
    code=None,
)
RAISES = replace(BREAK, site=Site("src/model.py", 9, 1, 11, 4), verdict=Verdict.RAISES, count=1, price=None)

RECOMPILE = Recompile(
    rule=SIZE,
    function="Block.forward",
    site=Site("src/model.py", 2, 19, 2, 20),
    origin=Origin.USER,
    trigger=CALLER,
    guard=ParsedGuard(ChangeKind.SIZE, "x.shape[0]", "x.shape[0] == 32"),
    subject="x.shape[0]",
    old="32",
    new="31",
    compile_id="0/1",
    cause=0,
    shared=SharedCode("Block.forward", ("x.shape[0]",), 8, 8, 0, (CALLER,), 0, ("29",)),
)
FRAME = UncompiledFrame(
    function="batches",
    site=Site("src/data.py", 7, 1, 7, 9),
    origin=Origin.USER,
    status=FrameStatus.EAGER,
    rest_only=False,
    reason="generators are not compiled",
    rule=None,
    gb_type=None,
    gb_id=None,
    break_site=None,
    over_limit=False,
    count=2,
    price=replace(PRICE, device_seconds=None),
    code="def batches(n):",
)
BEHIND_BREAK = replace(
    FRAME, function="Block.forward", site=SITE, rest_only=True, break_site=SITE, rule=ITEM, gb_type="x", gb_id="GB0124"
)
OVER_LIMIT = replace(
    FRAME,
    function="Block.forward",
    rule=LIMIT,
    reason="8 versions of it are compiled, which is the limit (torch._dynamo.config.recompile_limit), so further "
    "variants run eager",
    over_limit=True,
)
PASSED_OVER = replace(
    FRAME,
    function="empty",
    status=FrameStatus.PASSED_OVER,
    reason="it holds no tensor operation to compile",
    price=None,
)
FAILED = replace(FRAME, function="bad", status=FrameStatus.RAISED, reason="the backend raised", price=None)

KERNELS = tuple(
    Kernel(f"{kind.value}_0", kind, 1, ("aten.sin",), (Site("src/model.py", 4, 1, 4, 20),)) for kind in KernelKind
)
GRAPH = Graph(
    number=0,
    compile_id="0/0",
    function="Block.forward",
    site=SITE,
    ops=74,
    devices=("cuda:0 (NVIDIA H200)",),
    lines=(SITE,),
    ended_by=SITE,
    runs=340,
    seconds=0.1,
    device_seconds=0.2,
    compile_seconds=1.5,
    generated=(
        Generated("forward", 70, ("f32[4096, 512] relu",), KERNELS, "/tmp/cache/x.py", "x = 1\n" * 1000),
        Generated("backward", None, (), (), None, None),
    ),
    split_by_ddp=(40, 34),
    stages=(LineStages(SITE, {"add": 2}, {"aten.add": 2}, {"aten.mm": 1}, ("triton_0",)),),
)
UNTOLD = replace(
    GRAPH, number=1, site=None, ended_by=None, runs=None, seconds=None, device_seconds=None, compile_seconds=None
)
PLAIN_CALLS = Problem(
    kind=ProblemKind.PLAIN_CALLS,
    id="plain-calls",
    name="calls around the compiled model",
    rule=None,
    verdict=None,
    severity=Severity.WARNING,
    site=SITE,
    origin=Origin.USER,
    functions=("helper",),
    what="calls the plain model",
    why="helper is compiled; here it is called as it is: 3 calls",
    remedies=(Remedy(RemedyKind.REGION, "call-compiled", "call what torch.compile returned"),),
    count=3,
    called_from=(CALLER,),
)
COMPILE = CompiledFrame(
    compile_id="0/0",
    function="Block.forward",
    site=SITE,
    origin=Origin.USER,
    rest_only=False,
    at=1.5,
    seconds=2.0,
    backward_seconds=0.5,
    parts={"inductor": 1.0, "dynamo": 0.5, "aot_autograd": 0.25},
    guards=(GuardLine("TENSOR_MATCH", "check_tensor(x)", SITE), GuardLine("GRAD_MODE", "on", None)),
    guard_count=2,
    guard_seconds=0.0000035,
    caches=(
        CacheLooked("0/0", "fx_graph", "bypass", "a custom pass"),
        CacheLooked("0/0", "fx_graph", "miss", None),
        CacheLooked("0/0", "aotautograd", "miss", "what is stored holds for other sizes: s0 < 32"),
    ),
    restarts=("mutated while tracing", "<class 'torch._dynamo.exc.UnspecializeRestartAnalysis'>"),
    failed=None,
    made=(
        MadeLine("def forward(self, x):", None, ""),
        MadeLine("    return print(x)", SITE, "line 41, not in a graph"),
    ),
)


EXPORT_PROBLEM = replace(
    PLAIN_CALLS,
    kind=ProblemKind.EXPORT,
    id="export",
    name="export",
    verdict=Verdict.RAISES,
    severity=Severity.ERROR,
    functions=("Model.forward",),
    what="fails to export",
    why="the code does not leave the sizes free that dynamic_shapes declares: You marked batch as dynamic",
    remedies=(Remedy(RemedyKind.CONSTRUCT, "export-sizes", "leave them to torch; torch suggests batch = 4"),),
    count=2,
    reason="sizes",
    consequences=("It ends torch.export.export(Model, strict=True) and draft_export(Model).",),
    stack=(CALLER,),
    code="x = 1",
)


def explanation(**changes: Any) -> Explanation:
    """One in which every field is set, with the given changes."""
    values: dict[str, Any] = {
        "argv": ("train.py", "--epochs", "2"),
        "status": 0,
        "seconds": 212.3456789123,
        "torch": "2.13.0",
        "python": "3.11.9",
        "devices": ("cuda:0 (NVIDIA H200)",),
        "torch_imported": True,
        "disabled_by": None,
        "breaks": (BREAK, RAISES, IN_LIBRARY),
        "recompiles": (RECOMPILE, replace(RECOMPILE, compile_id="0/2", new="30", trigger=None, old=None)),
        "frames": (FRAME, BEHIND_BREAK, OVER_LIMIT, PASSED_OVER, FAILED),
        "graphs": (GRAPH, UNTOLD),
        "targets": (
            CompileTarget("Model.forward", CALLER, True, "inductor", False, {"dynamic": "True"}),
            CompileTarget("other", None, False, None, True, {}),
        ),
        "entries": 1,
        "compile_seconds": 38.12345,
        "notices": (
            Notice("hook-missing", "this torch lacks what breakscan hooks into for memory: something is missing"),
        ),
        "compiles": (COMPILE, replace(COMPILE, compile_id="1/0", failed="RuntimeError", guard_count=None)),
        "specialisations": (
            Specialisation("0/0", ("x.size()[0]",), "32", "the code needs it as a Python number", SITE, "f"),
        ),
        "cudagraph_skips": (
            CudaGraphSkip("an input is mutated", SITE, ("0/0",), 2),
            CudaGraphSkip("a cpu device", None, (), 1),
        ),
        "calls": (Calls("Model.forward", 340, 4.0, 2.5, 1.0),),
        "around": (replace(PLAIN_CALLS, kind=ProblemKind.EAGER_CALLS, cause=ProblemKind.FUNCTION),),
        "precompiled": (Precompiled("helper", SITE, CALLER),),
        "exports": (Export("export", "Model", SITE, CALLER, True, "failed", 2, None, 0.25),),
        "export_problems": (EXPORT_PROBLEM,),
        "ranks": RankReport(
            2,
            (0, 1),
            {0: exit_ending(0), 1: exit_ending(-9)},
            (RankDifference("graph breaks at src/model.py:3 (print)", SITE, {0: "3 times", 1: "never"}),),
        ),
        "processes": 2,
        "trace": None,
        "libraries": {"transformers": "5.23.0"},
        "traced": {"src/model.py": (2, 4)},
        "profile": StepProfile(
            "Model.forward",
            StepsProfiled(0, 5, 0.1, 0.11, 0.08, 0.01, 0.005, 0.002, 0.009, (HostCall("aten::mm", 6.0, 0.06),)),
        ),
    }
    return Explanation(**(values | changes))


def written(format_: str, told: Explanation, **report: Any) -> str:
    """A report of ``explain`` in a format."""
    return text_of(EXPLAIN, format_, ExplainReport(told, **report))
