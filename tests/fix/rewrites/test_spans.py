"""The spans of nodes, which are those that libcst gives."""

from __future__ import annotations

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from breakscan.fix.support.places import spans_in

TEXTS = {
    "decorators, defaults and comments": """# above
@first
@second(a=1)  # beside
class A(B, metaclass=C):
    '''Documentation
    of two lines.'''

    # between
    async def f(self, /, a: int = 1, *b, c=(2), **d) -> None:
        async with open(a) as x, open(b):
            return await g(*a, **d)  # end
""",
    "continued lines": "x = (\n    1,\n\n    # inside\n    2,\n)\ny = a + \\\n    b; z = [i for i in y if i]\n",
    "strings": "x = f'{a!r:>{b}} {c}' 'd' '''e\nf'''\ny = '\\t\\u2028' + '\t\u2028é'\n",
    "compound statements": """if a: pass
elif (b := c):
\twhile d: break
\telse:
\t\tdel e, f
try:
    raise X from Y
except* (P, Q) as r:
    assert s, t
finally:
    global u
match v:
    case {"k": [1, *_], **rest} if w:
        lambda *, k=1: (yield)
""",
    "other line ends": "def f(x):\r\n    return -x if not x else x[1:2, ...]\r\n",
    "no line end": "x = 1  # end",
    "nothing": "",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_spans_are_those_of_libcst(text: str) -> None:
    module = cst.parse_module(text)
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    assert spans_in(module) == {
        node: (at.start.line, at.start.column + 1, at.end.line, at.end.column + 1) for node, at in positions.items()
    }
