"""Training shared by several processes.

Sample i belongs to process i modulo their number, which alone reads it and holds its dual. All processes draw the same
batches; each takes its own samples out of every batch, and gradients are added up so that a step is that of one process
on the whole batch. The network and the duals are those of one process, up to rounding, unless layers draw at random.
Batch norm, which looks at the whole batch, is refused.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import nn

from ally.errors import AllyError, EngineError, InputError, ModelError
from ally.execution.processes import end_with_parent, sendable
from ally.safe_path import use_safe_path

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """The processes that share a fit, of which this one is number `rank`."""

    rank: int = 0
    size: int = 1

    def own(self, n: int) -> torch.Tensor:
        """Which of n samples belong to this process, ascending."""
        return torch.arange(self.rank, n, self.size)

    def share(self, batch: torch.Tensor) -> tuple[torch.Tensor, float]:
        """The samples of a batch (B,) that belong to this process, by place among its own, and their share of B."""
        if self.size == 1:
            return batch, 1.0
        mine = batch[batch % self.size == self.rank] // self.size
        return mine, len(mine) / len(batch)

    def add_up(self, *tensors: torch.Tensor) -> None:
        """Replaces tensors of one type by their sums over all processes, in one message."""
        if self.size > 1:
            flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
            dist.all_reduce(flat)
            start = 0
            for tensor in tensors:
                tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
                start += tensor.numel()

    def add_up_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        if self.size > 1:
            for parameter in parameters:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            self.add_up(*(parameter.grad for parameter in parameters if parameter.grad is not None))

    def all(self, value: T) -> list[T]:
        """The values of all processes."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    def mean(self, values: torch.Tensor) -> float:
        """The mean over the samples of all processes, of which these are its own (n,)."""
        if self.size == 1:
            return float(values.mean())
        parts = self.all((float(values.double().sum()), len(values)))
        return sum(total for total, _ in parts) / sum(count for _, count in parts)

    def whole(self, values: torch.Tensor) -> torch.Tensor:
        """(n,) values of all samples from those of each process's own."""
        if self.size == 1:
            return values
        parts = self.all(values.cpu())
        found = torch.empty(sum(map(len, parts)), dtype=values.dtype)
        for rank, part in enumerate(parts):
            found[rank :: self.size] = part
        return found


ALONE = Group()


def joined(processes: int) -> Group | None:
    """The group this process trains in; None if its processes have yet to be started."""
    if processes == 1:
        return ALONE
    if not dist.is_initialized():
        return None
    if dist.get_world_size() != processes:
        raise InputError.about(
            "processes", processes, f"differs from the {dist.get_world_size()} of this group; use their number"
        )
    return Group(dist.get_rank(), processes)


def shared_by(processes: int, work: Callable[[], T]) -> T:
    """Calls `work` in that many new processes of this machine, which form a group, and gives the result of the first.
    When one fails, the others are ended."""
    try:
        sent = pickle.dumps(work)
    except Exception as error:
        raise ModelError(
            f"this training cannot be sent to other processes ({error}); use functions and classes of modules, or "
            "Training(processes=1)"
        ) from error
    context = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // processes)
    members: list[Any] = []
    ends: list[Connection] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for rank in range(processes):
                ours, theirs = context.Pipe(duplex=False)
                ends.append(ours)
                arguments = sent, theirs, f"file://{folder}/meeting", Group(rank, processes), threads
                member = context.Process(target=_member, args=arguments, daemon=True)
                with use_safe_path():
                    member.start()
                members.append(member)
                theirs.close()
            return cast(T, _result(ends))
        finally:
            for member in members:
                member.kill()
                member.join()


def _result(ends: list[Connection]) -> Any:
    """That of process 0. When one fails, so do those that wait for it, later or with errors that say less."""
    result, errors, waiting = None, [], list(ends)
    while waiting:
        for end in wait(waiting):
            assert isinstance(end, Connection)
            waiting.remove(end)
            try:
                found, error = pickle.loads(end.recv_bytes())
            except EOFError:
                words = "memory may have run out, or the program lacks `if __name__ == '__main__':` around what it runs"
                raise EngineError(f"training process {ends.index(end)} ended early; {words}") from None
            if isinstance(error, AllyError):
                raise error
            result = found if end is ends[0] else result
            errors += [] if error is None else [error]
    if errors:
        raise errors[0]
    return result


def _member(work: bytes, end: Connection, meeting: str, group: Group, threads: int) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        dist.init_process_group("gloo", init_method=meeting, rank=group.rank, world_size=group.size)
        found = pickle.loads(work)()
        outcome: tuple[Any, Exception | None] = found if group.rank == 0 else None, None
    except Exception as error:
        outcome = None, sendable(error)
    # Not `send`, by which torch shares the memory of tensors with a process that has to live on.
    end.send_bytes(pickle.dumps(outcome))
    end.close()
    if dist.is_initialized():
        dist.destroy_process_group()
