"""Findings about the use of compiled code, and code that has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.model.findings import CheckResult
from breakscan.report.findings import conditions_in_words
from breakscan.rulebook.config import Settings

Marked = Callable[..., None]
Check = Callable[..., CheckResult]


def test_ordinary_training_and_evaluation_is_left_alone(marked: Marked) -> None:
    marked(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return self.layer(x)

        def main(loader, epochs):
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            compiled = torch.compile(model)
            losses = []
            for epoch in range(epochs):
                model.train()
                for step, (x, y) in enumerate(loader):
                    loss = F.mse_loss(compiled(x), y)
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    losses.append(loss.item())
                model.eval()
                with torch.no_grad():
                    for x, y in loader:
                        losses.append(F.mse_loss(compiled(x), y))
            torch.save(model.state_dict(), "model.pt")
        """
    )


def test_a_number_that_changes_in_a_loop(marked: Marked) -> None:
    marked(
        """
        def scale(x, factor, unused=None):
            return x * factor

        compiled = torch.compile(scale)
        any_size = torch.compile(scale, dynamic=True)

        def run(x, loader, args):
            for step in range(100):
                compiled(x, step)  # ! BRK712
                compiled(x, factor=step / args.steps)  # ! BRK712
                compiled(x, 3, step)
                compiled(x, torch.tensor(step))
                compiled(x, x * step)
                compiled(x, step % 2 == 0)
                any_size(x, step)
            for batch in loader:
                compiled(batch, 2)
            count = 0
            for batch in loader:
                compiled(batch, count)  # ! BRK712
                count += 1
            for _ in range(1):
                compiled(x, _)
        """
    )


def test_a_number_that_shapes_the_graph(marked: Marked) -> None:
    marked(
        """
        rows = [torch.randn(4) for _ in range(8)]
        table = torch.randn(8, 4)

        class Stack(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(8))

            def forward(self, x, n):
                return self.layers[n](x)

        def pick(x, n):
            return x + rows[n]

        def select(x, n):
            return x + table[n]

        picked, selected, stack = torch.compile(pick), torch.compile(select), torch.compile(Stack())
        picked = torch.compile(pick)
        selected = torch.compile(select)
        stack = torch.compile(Stack())
        fixed = torch.compile(select, dynamic=False)

        def run(x):
            for n in range(8):
                picked(x, n)  # ! BRK725
                stack(x, n)  # ! BRK725
                fixed(x, n)  # ! BRK725
                selected(x, n)  # ! BRK712
        """
    )


def test_a_container_that_grows(marked: Marked) -> None:
    marked(
        """
        @torch.compile
        def total(x, rows):
            return x + sum(rows)

        def run(x, batches):
            rows, kept = [], {}
            rows = []
            for batch in batches:
                rows.append(batch)
                total(x, rows)  # ! BRK720
            for batch in batches:
                rows = []
                rows.append(batch)
                total(x, rows)
            for several in batches:
                rows = []
                for batch in several:
                    rows.append(batch)
                    total(x, rows)  # ! BRK720
            total(x, rows)
        """
    )


def test_a_list_of_a_module_that_nothing_empties(marked: Marked) -> None:
    marked(
        """
        class Kept(nn.Module):
            def __init__(self):
                super().__init__()
                self.kept, self.fresh = [], []
                self.kept = []
                self.fresh = []

            def forward(self, x):
                self.kept.append(x)  # ! BRK720
                self.fresh.append(x)
                return x

        def reset(module):
            module.fresh.clear()
        """
    )


def test_an_input_that_grows(marked: Marked) -> None:
    marked(
        """
        model = torch.compile(nn.Linear(4, 4))

        def generate(ids, x, chunk):
            for i in range(10):
                logits = model(ids)  # ! BRK711
                ids = torch.cat([ids, logits[-1:]])
            for i in range(10):
                model(x[:i])  # ! BRK711
                model(x[i : i + chunk])
                model(x[i])
        """
    )
    marked(
        """
        model = torch.compile(nn.Linear(4, 4), dynamic=True)

        def generate(ids):
            for i in range(10):
                ids = torch.cat([ids, model(ids)])
        """
    )


def test_an_attribute_that_forward_updates(marked: Marked) -> None:
    """Each int is compiled in.  A float is left open after the second value."""
    marked(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.steps = self.seen = 0
                self.half = 8
                self.scale = self.rate = 1.0

            def forward(self, x):
                self.steps += 1  # ! BRK701
                self.seen = self.seen + 1  # ! BRK701
                self.seen = self.steps + 1
                self.half /= 2
                self.scale *= 0.99
                self.rate = 0.5 * self.rate
                self.last = x + 1
                return x * self.steps
        """
    )


def test_an_attribute_set_from_outside(marked: Marked) -> None:
    marked(
        """
        class Net(nn.Module):
            def forward(self, x):
                return x * self.step

        def train(loader):
            net = Net()
            compiled = torch.compile(net)
            for step, x in enumerate(loader):
                net.step = step  # ! BRK701
                net.other = step
                compiled(x)
        """
    )


def test_global_counters(marked: Marked) -> None:
    marked(
        """
        calls = 0
        seen = 0

        @torch.compile
        def step(x):
            global calls
            calls += 1  # ! BRK726
            return x.sin()

        def train(loader):
            global seen
            for x in loader:
                step(x)
                seen += 1
        """
    )


def test_floats_that_compiled_code_updates(marked: Marked) -> None:
    marked(
        """
        class Annealed(nn.Module):
            decay = 0.9

            def __init__(self, limit=2.0, start=None):
                super().__init__()
                self.weight = 1.0
                self.rate = limit
                self.count = 0
                self.half = 8
                self.total = 1.0
                self.start = start
                self.mean = torch.zeros(())

            def forward(self, x):
                if self.training:
                    self.weight = max(self.weight * self.decay, 0.1)  # ! BRK727
                self.rate -= 0.5  # ! BRK727
                self.half /= 2  # ! BRK727
                self.total += 0.5
                self.total = self.total * 2.0
                self.start *= 2.0
                self.mean = self.mean * 0.9
                return self.scaled(x) * self.half * self.start * self.mean

            def scaled(self, x):
                return x * self.weight + x / self.rate
        """
    )
    marked(
        """
        scale = 1.0
        shift = 1.0

        @torch.compile
        def scaled(x):
            global scale
            scale = scale * 0.5  # ! BRK727
            local = 1.0
            local *= 0.5
            return x * scale * local * shift
        """
    )


def test_returned_numbers_of_a_changing_float(marked: Marked) -> None:
    marked(
        """
        @torch.compile
        def stepped(x, rate):
            return x * rate, rate + 1

        @torch.compile
        def same(x, rate):
            return x * rate, rate

        @torch.compile
        def number(x, rate):
            return x.sin(), rate + 1

        def main(x):
            for step in range(9):
                stepped(x, step / 10)  # ! BRK712 BRK727
                stepped(x, step)  # ! BRK712
                same(x, step / 10)  # ! BRK712
                number(x, step / 10)  # ! BRK712
        """
    )


def test_states_of_torch_around_one_compiled_function(marked: Marked) -> None:
    marked(
        """
        compiled = torch.compile(nn.Linear(4, 4))

        def serve(requests):
            compiled(torch.randn(4))
            for x in requests:
                with torch.no_grad():
                    compiled(x)  # ! BRK714

        def both(x):
            with torch.autocast("cuda"):
                compiled(x)
            compiled(x)  # ! BRK714
            with torch.autocast("cuda"):
                compiled(x)

        def alike(x):
            with torch.no_grad():
                compiled(x)
            with torch.no_grad():
                compiled(x)

        def threads(x):
            for n in (1, 2, 4):
                torch.set_num_threads(n)  # ! BRK714
                compiled(x)
        """
    )


def test_keys_of_a_compiled_module(marked: Marked, check: Check) -> None:
    marked(
        """
        def train(path):
            model = torch.compile(nn.Linear(4, 4))
            state = {"model": model.state_dict()}  # ! BRK805
            torch.save(state, path)

        def keep(path):
            model = nn.Linear(4, 4)
            compiled = torch.compile(model)
            compiled(torch.randn(4))
            torch.save(model.state_dict(), path)

        def average(model):
            model = torch.compile(model)
            mean = nn.Linear(4, 4)
            mean.load_state_dict(model.state_dict())  # ! BRK806
            return mean
        """
    )
    flagged = check(
        """
        def train(path, fast):
            model = nn.Linear(4, 4)
            if fast:
                model = torch.compile(model)
            torch.save(model.state_dict(), path)
        """
    )
    assert [(f.rule, conditions_in_words(f.conditions)) for f in flagged.findings] == [("BRK805", "`fast`")]


def test_keys_that_are_read_back_or_stripped(marked: Marked) -> None:
    marked(
        """
        def train(path):
            model = torch.compile(nn.Linear(4, 4))
            model.load_state_dict(torch.load(path))
            torch.save(model.state_dict(), path)
        """
    )
    marked(
        """
        def train(path):
            model = torch.compile(nn.Linear(4, 4))
            torch.save({k.removeprefix("_orig_mod."): v for k, v in model.state_dict().items()}, path)
        """
    )


def test_methods_of_the_module_under_the_wrapper(marked: Marked) -> None:
    marked(
        """
        from transformers import AutoModelForCausalLM

        class Net(nn.Module):
            def forward(self, x):
                return x

            def loss(self, x):
                return self(x).sum()

            def size(self):
                return 4

        class Tree(nn.Module):
            def forward(self, x, n):
                return self(x, n - 1) if n else x

        def run(x):
            torch.compile(Tree()).forward(x, 3)
            tree = torch.compile(Tree())
            tree.forward(x, 3)
            net = torch.compile(Net())
            net.loss(x)  # ! BRK807
            net.size()
            net.eval()
            isinstance(net, Net)  # ! BRK808
            isinstance(net, nn.Module)
            in_place = Net()
            in_place.compile()
            in_place.loss(x)
            isinstance(in_place, Net)
            large = AutoModelForCausalLM.from_pretrained("gpt2").to("cuda")
            large = torch.compile(large)
            large.generate(x)  # ! BRK807
        """
    )


def test_memory_of_cuda_graphs(marked: Marked) -> None:
    marked(
        """
        model = torch.compile(nn.Linear(4, 4), mode="reduce-overhead")
        plain = torch.compile(nn.Linear(4, 4))

        @torch.no_grad()
        def collect(batches, state):
            kept = []
            for x in batches:
                kept.append(model(x))  # ! BRK821
                kept.append(plain(x))
                kept.append(model(x).cpu())
                y = model(x)
                kept.append(y.argmax(-1))
                kept.append(y.detach())  # ! BRK821
                z = model(x)
                z = z.clone()
                kept.append(z)
            for _ in range(4):
                state = model(state)  # ! BRK821
            for _ in range(4):
                state = model(state)
                state = state.clone()
            return kept

        def train(batches, optimizer):
            for i, x in enumerate(batches):
                model(x).sum().backward()
                if (i + 1) % 4 == 0:  # ! BRK822
                    optimizer.step()
                    optimizer.zero_grad()
            for x in batches:
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            for several in batches:
                optimizer.zero_grad()
                for x in several:
                    model(x).sum().backward()  # ! BRK822
                optimizer.step()
            for i, x in enumerate(batches):
                plain(x).sum().backward()
                if (i + 1) % 4 == 0:
                    optimizer.zero_grad()
        """
    )


def test_timings(marked: Marked) -> None:
    marked(
        """
        import time

        def cold(x):
            compiled = torch.compile(nn.Linear(4, 4))
            start = time.perf_counter()
            for _ in range(100):
                compiled(x)  # ! BRK831
            print("took", time.perf_counter() - start)

        def warm(x):
            compiled = torch.compile(nn.Linear(4, 4))
            compiled(x)
            start = time.perf_counter()
            compiled(x)
            print(time.perf_counter() - start)

        def on_purpose(x):
            compiled = torch.compile(nn.Linear(4, 4))
            start = time.perf_counter()
            compiled(x)
            print("compile time", time.perf_counter() - start)
        """
    )
    marked(
        """
        import time

        def on_gpu(x):
            compiled = torch.compile(nn.Linear(4, 4).cuda())
            compiled(x)
            start = time.perf_counter()
            y = compiled(x)  # ! BRK832
            end = time.perf_counter()
            launch = end - start
            start = time.perf_counter()
            compiled(x)  # ! BRK832
            print(time.perf_counter() - start)
            start = time.perf_counter()
            y = compiled(x).sum().item()
            return y, launch, time.perf_counter() - start
        """
    )


def test_a_compiled_module_that_nothing_calls(marked: Marked) -> None:
    marked(
        """
        def lost(model):
            model = torch.compile(model)  # ! BRK801

        def kept(model):
            model = torch.compile(model)
            return model

        def in_a_loop(batches, step):
            run = None
            for x in batches:
                if run is not None:
                    run(x)
                run = torch.compile(step)  # ! BRK704

        def before_a_loop(batches, step):
            for x in map(torch.compile(step), batches):
                x.sum()

        def enclosed(step):
            run = torch.compile(step)
            return lambda x: run(x)
        """
    )


def test_options_and_functions_that_cannot_be_compiled(marked: Marked) -> None:
    marked(
        """
        @torch.compile(mode="max_autotune")  # ! BRK810
        def step(x):
            return x

        def rows(x):
            yield x

        compiled = torch.compile(rows)  # ! BRK506
        tuned = torch.compile(step, mode="max-autotune")
        """
    )


def test_a_class_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n"
        "    @classmethod\n    def small(cls):\n        return cls()\n\n"
        "    def forward(self, x):\n        return x\n\n"
        "    def generate(self, x):\n        return self(x)\n",
        encoding="utf-8",
    )
    main = tmp_path / "main.py"
    main.write_text(
        "import torch\nfrom net import Net\n\n"
        "model = torch.compile(Net())\nmodel.generate(torch.ones(4))\n"
        "small = torch.compile(Net.small())\nsmall.generate(torch.ones(4))\n",
        encoding="utf-8",
    )
    found = check_paths([main], Settings(root=tmp_path, target_torch="2.13")).findings
    assert [(f.site.line, f.rule) for f in found] == [(5, "BRK807"), (7, "BRK807")]


def test_methods_of_inner_classes_are_read_too(marked: Marked) -> None:
    marked(
        """
        def scale(x, factor):
            return x * factor

        compiled = torch.compile(scale)

        class Outer:
            class Inner:
                def run(self, x):
                    for step in range(10):
                        compiled(x, step)  # ! BRK712
        """
    )
