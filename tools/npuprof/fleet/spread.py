# SPDX-License-Identifier: MIT
"""Does rank_of for many paths: here, in processes, or on the workers of a Dask scheduler.

Each yields the results in the order of the paths and keeps few of them waiting."""

import gc
import os
import sys
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ..base.messages import Refused
from .rank import rank_of

AHEAD = 8          # traces of each worker that may be under way


def spread(paths, jobs, dask=None):
    """Yields rank_of(path) for each path, in their order."""
    if dask:
        return on_dask(paths, dask)
    return map(rank_of, paths) if jobs == 1 or len(paths) == 1 else in_processes(paths, jobs)


def in_order(paths, submit, ahead):
    """Yields what submit(path) promises, with at most `ahead` promises at a time."""
    waiting = deque()
    for path in paths:
        waiting.append(submit(path))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def in_processes(paths, jobs):
    # Why freeze: rank_of() looks for garbage after each trace, and there is none in the modules.
    with ProcessPoolExecutor(jobs, initializer=gc.freeze) as pool:
        try:
            yield from in_order(paths, lambda path: pool.submit(rank_of, path), AHEAD * jobs)
        except BrokenProcessPool:
            raise Refused("--jobs: a process ended before it was done, perhaps for want of memory: use fewer "
                          "jobs") from None


def task_in(folder):
    """rank_of as a function that a worker can run without an installed npuprof: it finds it in the folder."""
    def task(path):
        import sys
        if folder not in sys.path:
            sys.path.insert(0, folder)
        from npuprof.fleet.rank import rank_of
        return rank_of(path)
    return task


def on_dask(paths, address):
    """On Dask. Its workers see the traces and this folder of tools under the same paths."""
    try:
        from distributed import Client
    except ImportError:
        raise Refused("--dask needs Dask (Debian: python3-distributed), which is not installed for "
                      f"{sys.executable}: install it, or use --jobs N") from None
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise Refused(f"--dask {address}: no scheduler answers there: {str(error)[:200]}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise Refused(f"--dask {address}: the scheduler has no workers: start dask-worker {address}")
        task = task_in(folder)
        real = list(map(os.path.abspath, paths))
        try:
            found = in_order(real, lambda path: client.submit(task, path, pure=False), AHEAD * threads)
            for path, absolute, rank in zip(paths, real, found):
                yield named(rank, path, absolute)
        except (OSError, RuntimeError) as error:
            raise Refused(f"--dask {address}: {str(error)[:200]}") from None


def named(rank, path, absolute):
    """The result with the path as it was given."""
    rank["file"] = path
    if "left_out" in rank:
        rank["left_out"] = rank["left_out"].replace(absolute, path)
    return rank
