"""The Python that Dynamo makes around the graphs of a function: who calls what, and where the rest goes on.

expect: [m["text"] for m in compiles[0]["made"]] == ["def f(x):", "    graph_out = graph(x)", "    if graph_out[0]:", f"        return resume_at_{line('test')}(graph_out[1])", f"    return resume_at_{line('test')}(graph_out[1])"] and [m["site"] and m["site"]["line"] for m in compiles[0]["made"]] == [None, None, line("test"), line("then"), line("else")] and compiles[1]["made"][-1]["text"] == "    return graph_out[0]" and [compiles[1]["compile_id"] in m["note"] for m in compiles[0]["made"][-2:]] == [True, False]
"""

import torch


@torch.compile(backend="eager")
def f(x):
    y = x * 2
    if y.sum() > 0:  # test
        return y.sin()  # then
    return y.cos()  # else


f(torch.ones(4))
