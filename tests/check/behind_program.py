"""Functions with breaks, and what of them the compiler gets to: ``head`` gives its function up, ``behind`` is hidden by
the head of its function, ``seen`` is not.  Read by ``check`` and run by Dynamo, which must agree."""

import torch

CALLED = []


def called(*flags):
    def note(function):
        CALLED.append((torch.compile(function, backend="eager"), flags))
        return function

    return note


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


@called(True)
def loop(x: torch.Tensor, flag: bool):
    x = x + x.min().item()  #: seen
    for _ in range(2):
        x = x + x.sum().item()  #: head
        x = x * 2
        x = x + x.tolist()[0]  #: behind
    x = x * 2
    x = x + x.tolist()[0]  #: behind
    for _ in range(2):
        x = x + x.min().item()  #: behind
    return [row.item() for row in x]  #: behind


@called(True)
def attempt(x: torch.Tensor, flag: bool):
    x = x * 2
    try:
        x = x + x.sum().item()  #: head
        raise ValueError
    except ValueError:
        x = x + x.tolist()[0]  #: behind
    finally:
        x = x + x.min().item()  #: behind
    return x + x.max().item()  #: behind


@called(True)
def manager(x: torch.Tensor, flag: bool):
    x = x * 2
    with Manager():
        x = x + x.sum().item()  #: head
    return x + x.max().item()  #: behind


@called(True)
def handler(x: torch.Tensor, flag: bool):
    try:
        x = x * 2
    except ValueError:
        x = x + x.sum().item()
    return x + x.max().item()  #: seen


@called(False, True)
def arms(x: torch.Tensor, flag: bool):
    if flag:
        for _ in range(2):
            x = x + x.sum().item()  #: head
        x = x + x.max().item()  #: behind
    else:
        x = x + x.tolist()[0]  #: seen
    return x + x.min().item()  #: seen


@called(False, True)
def cases(x: torch.Tensor, flag: bool):
    match flag:
        case True:
            for _ in range(2):
                x = x + x.sum().item()  #: head
            x = x + x.max().item()  #: behind
        case _:
            x = x + x.tolist()[0]  #: seen
    return x + x.min().item()  #: seen


@called(True, False)
def arms_by_tensor(x: torch.Tensor, flag: bool):
    if x.sum() > 0:  #: seen
        for _ in range(2):
            x = x + x.sum().item()  #: head
    else:
        x = x + x.tolist()[0]  #: seen
    return x + x.min().item()  #: seen


@called(False, True)
def early(x: torch.Tensor, flag: bool):
    if flag:
        for _ in range(2):
            x = x + x.sum().item()  #: head
        return x
    return x + x.min().item()  #: seen


@called(True, False)
def jump(x: torch.Tensor, flag: bool):
    for _ in range(2):
        if flag:
            continue
        x = x + x.sum().item()  #: head
        x = x + x.max().item()  #: behind
    return x + x.min().item()  #: seen


@called(True)
def frames_of_their_own(x: torch.Tensor, flag: bool):
    for _ in range(2):
        x = x + x.sum().item()  #: head

    def inner(y: torch.Tensor):
        return y * 2 + (y * 2).sum().item()  #: seen

    x = inner(x) + x.min().item()  #: behind
    return (lambda y: y * 2 + (y * 2).max().item())(x)  #: seen


@called(True)
def arguments_first(x: torch.Tensor, flag: bool):
    for _ in range(2):
        x = (
            x
            + torch.full(  #: behind
                (3,),
                x.sum().item(),  #: head
            )
            .max()
            .item()
        )
    return x


@called(True)
def element_last(x: torch.Tensor, flag: bool):
    for _ in range(2):
        rows = {
            i: row.item()
            for i, row in enumerate(
                x[x > 0]  #: seen
            )
        }
    return x + len(rows)


@called(True)
def element_of_dict(x: torch.Tensor, flag: bool):
    rows = {i: row.item() for i, row in enumerate(x)}  #: head
    return x + x.min().item() + len(rows)  #: behind


if __name__ == "__main__":
    for function, flags in CALLED:
        for flag in flags:
            function(torch.ones(3) if flag else -torch.ones(3), flag)
