"""The private names of torch that breakscan uses, each with what it is for and what is lost without it.

Only ``runtime/hooks/``, ``runtime/bootstrap/`` and ``prove/`` use them.  ``tests/record/test_torch_internals.py``
holds this table against the installed torch: run it alone to try another version.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Internal:
    """A private name, as ``module:name``; of an attribute, ``module`` is where torch sets or reads it.

    ``since`` is the first version that has it, where that is later than the oldest one supported.
    """

    name: str
    purpose: str
    without: str
    since: tuple[int, int] | None = None


_CANNOT_START = "explain, verify and bench cannot run"
_NOT_PUT_BACK = "breakscan.explain() and %%breakscan cannot run"

NAMES = (
    Internal(
        "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break",
        "graph breaks with their columns and whole stack (hook breaks)",
        "breaks come from the structured trace, without columns",
    ),
    Internal(
        "torch._dynamo.symbolic_convert:InstructionTranslator.__init__",
        "the values that functions start with (hook values)",
        "the values are missing",
    ),
    Internal(
        "torch._dynamo.symbolic_convert:InliningInstructionTranslator.__init__",
        "the values of functions that Dynamo inlines (hook values)",
        "the values are missing",
    ),
    Internal(
        "torch._dynamo.symbolic_convert:InstructionTranslatorBase.run",
        "how long a function is traced (hook lines)",
        "tracing is not told by line",
    ),
    Internal(
        "torch._dynamo.symbolic_convert:InstructionTranslatorBase.starts_line",
        "how long a line is traced (hook lines)",
        "tracing is not told by line",
    ),
    Internal(
        "torch._dynamo.output_graph:OutputGraph.mark_bytecode_tracing_stop",
        "when tracing ends (hook lines)",
        "tracing is not told by line",
    ),
    Internal("torch._C:DisableTorchFunction", "values without code of the program", "the values are missing"),
    Internal("torch._dynamo.variables:TensorVariable", "values of inlined functions", "the values are missing"),
    Internal("torch._dynamo.variables.tensor:SymNodeVariable", "values of inlined functions", "the values are missing"),
    Internal("torch._dynamo.variables:ListVariable", "values of inlined functions", "the values are missing"),
    Internal("torch._dynamo.variables:TupleVariable", "values of inlined functions", "the values are missing"),
    Internal("torch._dynamo.variables:ConstDictVariable", "values of inlined functions", "the values are missing"),
    Internal("torch._dynamo.variables:UserFunctionVariable", "values of inlined functions", "the values are missing"),
    Internal(
        "torch._dynamo.variables.lazy:LazyVariableTracker",
        "values that Dynamo guards on late",
        "the values are missing",
    ),
    Internal(
        "torch._dynamo.convert_frame:ConvertFrameAssert.__call__",
        "frames that end uncompiled (hook frames); which frames --keep-going concerns",
        "frames come from the structured trace, without silent skips; --keep-going has no effect",
    ),
    Internal(
        "torch._dynamo.convert_frame:CatchErrorsWrapper._handle_skip",
        "frames that the compiler skips silently (hook skips)",
        "such frames may be missing",
        since=(2, 13),
    ),
    Internal(
        "torch._dynamo.guards:get_and_maybe_log_recompilation_reasons",
        "guards that fail, with the new value (hook recompiles)",
        "recompiles come from the structured trace, without the new value",
    ),
    Internal(
        "torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons",
        "the same function where it is called",
        "recompiles come from the structured trace, without the new value",
    ),
    Internal(
        "torch._dynamo.guards:CheckFunctionManager.__init__",
        "the lines that ask for guards (hook guards)",
        "guards have no lines",
    ),
    Internal(
        "torch._dynamo.output_graph:OutputGraph.call_user_compiler",
        "graphs with devices and lines, and how often they run (hook graphs)",
        "graphs come from the structured trace, and what breaks cost is missing",
    ),
    Internal(
        "torch._dynamo.eval_frame:OptimizeContext.__call__",
        "what torch.compile is called for (hook targets); where a worker captures calls",
        "the targets are missing; verify and bench cannot run",
    ),
    Internal(
        "torch._dynamo.eval_frame:_TorchDynamoContext.__init__",
        "the outermost call of compiled code, through enter_exit_hooks (hook runs)",
        "what calls cost is missing",
    ),
    Internal(
        "torch._dynamo.eval_frame:_stance.stance",
        "why a call ran eager (hook stance)",
        "calls that ran eager under another stance than the default are not told",
    ),
    Internal(
        "torch._C:_dynamo.compiled_autograd.set_verbose_logger",
        "why compiled autograd captures a backward pass again (hook autograd)",
        "the reasons are missing",
    ),
    Internal("torch._dynamo.compiled_autograd:reset", "the same after torch._dynamo.reset()", "they are missing then"),
    Internal(
        "torch._dynamo.compiled_autograd:snapshot_verbose_logging_enabled",
        "whether the program has torch log the reasons",
        "the reasons are missing",
    ),
    Internal(
        "torch.export._trace:_export",
        "what is exported, and why it fails (hook exports)",
        "exports are missing",
    ),
    Internal(
        "torch.export._draft_export:draft_export",
        "the same, with what draft_export finds (hook drafts)",
        "drafts are missing",
    ),
    Internal(
        "torch._inductor:aoti_compile_and_package",
        "what is compiled ahead of time (hook ahead)",
        "it is missing",
    ),
    Internal(
        "torch._dynamo.package:CompilePackage.install",
        "functions that are loaded compiled (hook packages)",
        "they are shown as never called",
    ),
    Internal(
        "torch._dynamo.aot_compile:aot_compile_fullgraph",
        "what aot_compile of a compiled function compiled, and why it failed (hook aot)",
        "it is missing",
    ),
    Internal("torch._inductor:aot_compile", "the same without a package (hook ahead)", "it is missing"),
    Internal(
        "torch._dynamo.eval_frame:DisableContext.__call__",
        "the name and line that a timed graph shows to profilers and in tracebacks",
        "it shows line 1 of the file",
    ),
    Internal(
        "torch._dynamo.eval_frame:innermost_fn",
        "the function that Dynamo calls for a graph",
        "the hook for graphs fails: graphs come from the structured trace",
    ),
    Internal(
        "torch._dynamo.eval_frame:_optimize",
        "setting fullgraph=True aside (--keep-going)",
        "--keep-going has no effect",
    ),
    Internal(
        "torch._dynamo.symbolic_convert:_get_error_on_graph_break",
        "setting fullgraph=True aside (--keep-going)",
        "--keep-going has no effect",
    ),
    Internal(
        "torch._dynamo.convert_frame:_get_error_on_graph_break",
        "setting fullgraph=True aside (--keep-going)",
        "--keep-going has no effect",
    ),
    Internal(
        "torch._dynamo.exc:Unsupported",
        "telling a graph break from an error",
        "the hook for frames fails: frames come from the structured trace",
    ),
    Internal("torch._dynamo.config:suppress_errors", "whether an error reaches the program", _CANNOT_START),
    Internal("torch._dynamo.trace_rules:SKIP_DIRS", "keeping breakscan uncompiled", "it may be compiled"),
    Internal("torch._dynamo.trace_rules:_recompile_re", "keeping breakscan uncompiled", "it may be compiled"),
    Internal(
        "torch.fx._lazy_graph_module:_LazyGraphModule.force_recompile",
        "the function that Dynamo calls for a graph",
        "the hook for graphs fails: graphs come from the structured trace",
    ),
    Internal("torch._guards:CompileContext.current_compile_id", "the id of the current compile", _CANNOT_START),
    Internal("torch._logging._internal:trace_structured", "the structured trace (hook trace)", _CANNOT_START),
    Internal("torch._logging.structured:INTERN_TABLE", "the names of files in the structured trace", _CANNOT_START),
    Internal(
        "torch._inductor.graph:GraphLowering.compile_to_module",
        "the bytes that kernels move (hook bytes)",
        "they are missing",
    ),
    Internal(
        "torch._inductor.cpu_vec_isa:pick_vec_isa",
        "finding out once, and not in every worker, what the C++ compiler can do",
        "every worker of verify and bench does so, and the time counts as compile time",
    ),
    Internal(
        "torch._inductor.cudagraph_utils:log_cudagraph_skip_and_bump_counter",
        "why graphs do not run as CUDA graphs (hook cudagraphs)",
        "the reasons are missing",
    ),
    Internal(
        "torch._inductor.compile_fx:log_cudagraph_skip_and_bump_counter",
        "the same function where it is called",
        "some reasons are missing",
    ),
    Internal(
        "torch._inductor.output_code:log_cudagraph_skip_and_bump_counter",
        "the same function where it is called",
        "some reasons are missing",
    ),
    Internal(
        "torch._inductor.cudagraph_trees:log_cudagraph_skip_and_bump_counter",
        "the same function where it is called",
        "some reasons are missing",
    ),
    Internal(
        "torch._dynamo.backends.cudagraphs:log_cudagraph_skip_and_bump_counter",
        "the same function where it is called",
        "some reasons are missing",
    ),
    Internal(
        "torch._inductor.cudagraph_trees:CUDAGraphTreeManager.record_function",
        "which graphs are recorded as CUDA graphs, and why again (hook recordings)",
        "it is missing",
    ),
    Internal("torch._inductor.compile_fx:compile_fx", "Inductor as a separate backend", _NOT_PUT_BACK),
    Internal("torch._dynamo.backends.registry:lookup_backend", "a backend by its name", _NOT_PUT_BACK),
    Internal("torch._dynamo.convert_frame:input_codes", "the functions that Dynamo knows", _NOT_PUT_BACK),
    Internal("torch._dynamo.pgo:_CODE_STATE", "the sizes that Dynamo remembers", _NOT_PUT_BACK),
    Internal("torch._dynamo.pgo:CodeState", "the sizes that Dynamo remembers", _NOT_PUT_BACK),
    Internal("torch._dynamo.types:FrameExecStrategy", "having a function compiled again", _NOT_PUT_BACK),
    Internal("torch._dynamo.types:FrameAction", "having a function compiled again", _NOT_PUT_BACK),
    Internal("torch._C._dynamo:eval_frame.set_code_exec_strategy", "having a function compiled again", _NOT_PUT_BACK),
    Internal("torch._C._dynamo:eval_frame.reset_code", "forgetting what was compiled", _NOT_PUT_BACK),
    Internal("torch._C._dynamo:eval_frame._debug_get_cache_entry_list", "which functions are compiled", _NOT_PUT_BACK),
    Internal("torch._dynamo.callback:callback_handler", "whether a timed round compiled something", _CANNOT_START),
    Internal("torch._inductor:list_mode_options", "the modes that bench tries", "bench cannot run"),
    Internal(
        "torch._dynamo.external_utils:wrap_inline",
        "compiling the call of a module whose forward is torch's (bench --regional)",
        "bench --regional cannot run",
    ),
    Internal(
        "torch.cuda:_is_in_bad_fork",
        "whether a forked process can use CUDA",
        "on a machine with a GPU, verify and bench import torch in each process",
    ),
    Internal("torch._inductor.config:trace", "settings of Inductor", "verify and bench cannot change settings"),
    Internal("torch.utils._pytree:tree_leaves", "the values in arguments and results", "verify and bench cannot run"),
    Internal("torch.utils._pytree:tree_map", "copies of arguments and results", "verify and bench cannot run"),
    Internal("torch._dynamo:list_backends", "the backends that bench tries", "bench cannot run"),
)
"""Names that a module of torch holds."""

ATTRIBUTES = (
    Internal("torch._dynamo.convert_frame:_torchdynamo_orig_backend", "the backend in its wrappers", "it has no name"),
    Internal(
        "torch._dynamo.eval_frame:_torchdynamo_orig_callable",
        "the function that torch.compile was given, and whether something is compiled",
        "functions that were compiled before are shown as their wrapper",
    ),
    Internal("torch.nn.modules.module:_compiled_call_impl", "whether a module is compiled", "it is compiled once more"),
    Internal("torch._dynamo.convert_frame:_inner_convert", "which frames --keep-going concerns", "it has no effect"),
    Internal("torch._dynamo.convert_frame:_one_graph", "whether fullgraph=True was given", "raised errors say eager"),
    Internal("torch._dynamo.convert_frame:_box", "whether fullgraph=True was given", "raised errors say eager"),
    Internal("torch._dynamo.output_graph:_dynamo_source", "the names of a graph's inputs", "the graph's names"),
    Internal("torch._dynamo.output_graph:compile_subgraph_reason", "the break that ends a graph", "none is named"),
    *(
        Internal(f"torch._inductor.cudagraph_trees:{name}", "why a CUDA graph is recorded again", "it is missing")
        for name in (
            "id_to_compile_id",
            "id_to_mode",
            "current_node",
            "cudagraph_managed_idxs",
            "static_input_data_ptrs",
            "static_input_idxs",
            "expected_dead_indices_before_graph",
            "path_weakrefs",
            "_check_liveness",
            "wrapped_function",
        )
    ),
    Internal("torch._functorch.aot_autograd:_boxed_call", "how a graph takes its inputs", "inputs live longer"),
    Internal("torch.nn.modules.module:_call_impl", "the module of a bound method", "the method is named"),
    Internal("torch.nn.modules.module:_wrapped_call_impl", "the module of a bound method", "the method is named"),
    Internal("torch.fx._lazy_graph_module:_lazy_forward", "graphs that are generated late", "slower first runs"),
    Internal("torch._dynamo.package:_codes", "the functions of a package", "they are shown as never called"),
    Internal("torch._dynamo.eval_frame:_dynamic", "the options of torch.compile", "verify does not repeat dynamic="),
)
"""Attributes that torch sets on its objects."""
