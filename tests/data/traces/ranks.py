"""What the logs in ``ranks`` are traces of: the second rank breaks the graph, and sees another size."""

import torch
import torch.distributed


def step(x, rank):
    y = x.sin()
    if rank:
        print("only here")
    return y.cos()


def main():
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    compiled = torch.compile(step, backend="eager")
    compiled(torch.ones(4), rank)
    if rank:
        compiled(torch.ones(6), rank)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


main()
