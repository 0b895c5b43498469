"""``with torch.device(d): x = torch.zeros(n)`` → ``x = torch.zeros(n, device=d)``."""

import libcst as cst

from breakscan.fix.result import assumes
from breakscan.fix.support import build
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.operators import called, makes_new, only_argument
from breakscan.fix.support.purity import decline_for, why_not_pure
from breakscan.fix.support.walking import nodes_of

_NO_OTHERS = assumes("no other call below it makes a tensor")


def rewrite(context: RewriteContext) -> Edit:
    """The statements below, whose tensors are made on the device."""
    block = context.enclosing(cst.With)
    made = block.items[0].item if block is not None else None
    if block is None or not isinstance(made, cst.Call) or called(context, made)[0] != "torch.device":
        raise OtherForm("this enters no device")
    device = only_argument(made)
    if device is None or len(block.items) > 1 or block.items[0].asname is not None:
        raise Declined("more than a device is entered")
    decline_for(why_not_pure(context, device))
    made_below = [call for call in nodes_of(block.body, cst.Call) if _makes_tensor(context, call)]
    body = block.body.visit(_WithDevice(made_below, build.argument(device, "device")))
    lines = [one for one in cst.ensure_type(body, cst.IndentedBlock).body if isinstance(one, cst.BaseStatement)]
    lines[0] = lines[0].with_changes(leading_lines=[*block.leading_lines, *getattr(lines[0], "leading_lines", ())])
    return Edit({block: lines}, [_NO_OTHERS])


def _makes_tensor(context: RewriteContext, call: cst.Call) -> bool:
    """True if a call of torch makes a tensor from no other, where its arguments name no device."""
    if any(arg.star or (arg.keyword is not None and arg.keyword.value == "device") for arg in call.args):
        return False
    is_new = (called(context, call)[0] or "").startswith("torch.") and makes_new(context, call)
    return is_new and context.fact(call).is_tensor and not any(context.fact(arg.value).is_tensor for arg in call.args)


class _WithDevice(cst.CSTTransformer):
    def __init__(self, calls: list[cst.Call], device: cst.Arg) -> None:
        super().__init__()
        self.calls, self.device = calls, device

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        added = [self.device] if original_node in self.calls else []
        return updated_node.with_changes(args=[*updated_node.args, *added])
