"""A model compiled as vLLM compiles its own: a class decorator marks sizes as dynamic and compiles ``forward`` once,
with a backend that splits the graph at attention.  From then on, calls go straight to the compiled bytecode, past all
guards."""

import contextlib
import inspect

import torch
from torch import nn
from torch.fx.passes.split_module import split_module


@torch.library.custom_op("served::attention", mutates_args=("out",))
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(nn.functional.scaled_dot_product_attention(q, k, v))


@attention.register_fake
def _(q, k, v, out):
    return None


class PiecewiseBackend:
    """Compiles the pieces between the calls of attention with Inductor; attention itself runs eager."""

    def __call__(self, graph, example_inputs):
        piece, pieces = 0, {}
        for node in graph.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            if "served.attention" in str(node.target):
                piece += 1
                pieces[node] = piece
                piece += 1
            else:
                pieces[node] = piece
        return split_module(graph, graph, lambda node: pieces[node], keep_original_order=True)


class Dispatcher:
    """Compiles ``forward`` at the first call, and keeps the bytecode that Dynamo made of it."""

    def __init__(self, model):
        self.model = model
        self.compiled = torch.compile(model.forward, fullgraph=True, backend=PiecewiseBackend())
        self.original_code = type(model).forward.__code__
        self.compiled_codes = []
        torch._dynamo.convert_frame.register_bytecode_hook(self.bytecode_hook)

    def bytecode_hook(self, old_code, new_code):
        if old_code is self.original_code:
            self.compiled_codes.append(new_code)

    @contextlib.contextmanager
    def dispatch_to_code(self, index):
        type(self.model).forward.__code__ = self.compiled_codes[index]
        yield
        type(self.model).forward.__code__ = self.original_code


def support_torch_compile(dynamic_arg_dims):
    def decorate(cls):
        old_init = cls.__init__

        def __init__(self, *args, **kwargs):
            old_init(self, *args, **kwargs)
            self.dispatcher = Dispatcher(self)

        def __call__(self, *args, **kwargs):
            if self.dispatcher.compiled_codes:
                with self.dispatcher.dispatch_to_code(0):
                    return self.forward(*args, **kwargs)
            bound = inspect.signature(self.forward).bind(*args, **kwargs)
            for name, dims in dynamic_arg_dims.items():
                for dim in dims:
                    torch._dynamo.mark_dynamic(bound.arguments[name], dim)
            return self.dispatcher.compiled(*args, **kwargs)

        cls.__init__ = __init__
        cls.__call__ = __call__
        return cls

    return decorate


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm = nn.RMSNorm(width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (t.view(x.shape[0], self.heads, -1).transpose(0, 1) for t in (q, k, v))
        mixed = torch.empty_like(q)
        torch.ops.served.attention(q, k, v, mixed)
        return x + self.out(mixed.transpose(0, 1).reshape(x.shape))


@support_torch_compile({"input_ids": [0], "positions": [0]})
class Model(nn.Module):
    def __init__(self, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(128, width)
        self.place = nn.Embedding(256, width)
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(layers))

    def forward(self, input_ids, positions):
        x = self.embed(input_ids) + self.place(positions)
        for layer in self.layers:
            x = layer(x)
        return x


torch.manual_seed(0)
model = Model().eval()
with torch.inference_mode():
    for tokens in (17, 1, 2, 8, 1, 33):
        out = model(torch.randint(0, 128, (tokens,)), torch.arange(tokens))
print(out.shape)
