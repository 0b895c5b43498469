"""Functions whose compiled code was made by an earlier process (``torch._dynamo.config.caching_precompile``).

Wraps ``torch._dynamo.package.CompilePackage.install``.  Nothing is compiled then, and nothing in the trace tells of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breakscan.record.hooks.object_facts import calling_stack, code_of
from breakscan.record.hooks.patching import leave_no_trace, wrapped
from breakscan.record.records import PackageInstalled


@contextmanager
def installed_packages(sink: Callable[[Any], None]) -> Iterator[bool]:
    """Hands each package that is installed to the sink.  Yields False where this torch has no such hook: nothing is
    recorded then."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def install(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(self, *args, **kwargs)
            except Exception as error:
                leave_no_trace(error)
                raise
            sink(self)
            return result

        return install

    with wrapped(["torch._dynamo.package:CompilePackage"], "install", wrap) as available:
        yield available


def package_record(package: Any) -> PackageInstalled:
    """The package as the recording keeps it."""
    return PackageInstalled(tuple(code_of(code) for code in package._codes), calling_stack(sys._getframe(1)))
