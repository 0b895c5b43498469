"""The code of the examples in docstrings."""

from __future__ import annotations

import pytest

from breakscan.survey.example_code import statements

PROMPTS = """A layer.

    >>> layer = Layer(
    ...     4)
    >>> with torch.no_grad():
    >>>     layer(x)
    tensor([1.])
    >>> this is no code
    nothing
    >>>
    >>> layer(y)
"""
BLOCK = """A layer.

Example::

    # comment
    layer = Layer(4)

    layer(x)

Note: this is no code::
"""
FENCES = """A layer.

```python
layer = Layer(4)
```

``code`` and

```sh
pip install layer
```
"""


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("Says nothing.", []),
        (PROMPTS, ["layer = Layer(4)", "with torch.no_grad():\n    layer(x)", "layer(y)"]),
        (BLOCK, ["layer = Layer(4)", "layer(x)"]),
        (BLOCK.replace("Example::", ".. code-block:: python"), ["layer = Layer(4)", "layer(x)"]),
        (FENCES, ["layer = Layer(4)"]),
        (">>> a = b.cuda()\n>>> c = d.to('cuda:0')", ["a = b.cpu()", "c = d.to('cpu')"]),
    ],
)
def test_statements(docstring: str, found: list[str]) -> None:
    assert list(statements(docstring)) == found
