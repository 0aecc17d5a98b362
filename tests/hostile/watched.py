"""Runs commands of `ally`, each in a process of its own that is forked from this one, and watches them from outside.

A line of standard input is a command as JSON, a line of standard output what came of it. Forking saves the three
seconds that imports take.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
PAUSE = 0.01
MOST_ADDRESSES = 12 * 2**30
"""Bytes of address space of a command, so that a test that fails leaves the machine alive."""
LISTENING = "0A"


def main() -> None:
    # A command's own processes come to this one when it ends: none gets away.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    import_everything()
    for line in sys.stdin:
        print(json.dumps(watch(json.loads(line))), flush=True)


def import_everything() -> None:
    """What commands import, so that it is there after a fork."""
    import matplotlib.pyplot  # noqa: F401

    import ally.campaign.training.run
    import ally.cli.app
    import ally.data.images.pixels
    import ally.learning.fitted_estimator
    import ally.learning.trained
    import ally.report.write
    import ally.web.app  # noqa: F401


def watch(asked: dict[str, Any]) -> dict[str, Any]:
    """Runs one command to its end, and that of all it started."""
    begun, before = time.monotonic(), own_sockets()
    child = os.fork()
    if child == 0:
        run(asked)
    sockets, code, peak, seconds, timely = set(), None, 0, 0.0, True
    while code is None or any(descendants()):
        sockets |= own_sockets() - before
        done, status, used = os.wait4(-1, os.WNOHANG)
        if done:
            peak, seconds = max(peak, used.ru_maxrss * 1024), seconds + used.ru_utime + used.ru_stime
            code = os.waitstatus_to_exitcode(status) if done == child else code
            continue
        if time.monotonic() - begun > asked["patience"]:
            timely = False
            for process in descendants():
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE)
    return {"code": code, "peak": peak, "seconds": seconds, "in_time": timely, "sockets": sorted(sockets)}


def run(asked: dict[str, Any]) -> None:
    """In the forked process: the command, as its user runs it. Never returns."""
    code = 70
    try:
        os.chdir(asked["folder"])
        os.environ.update(asked["environment"])
        for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, asked["out"], 577), (2, asked["err"], 577)):
            os.dup2(os.open(name, flags, 0o600), number)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tempfile.tempdir = asked["environment"]["TMPDIR"]
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
        from report_acts import report_acts

        report_acts()
        if asked["words"][0] == "!":
            exec(asked["words"][1], {})
            code = 0
        else:
            from ally.cli import main as run_command

            sys.argv = ["ally", *asked["words"]]
            run_command()
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def descendants() -> Iterator[int]:
    """All processes below this one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            parents[int(folder.name)] = int(text.rpartition(")")[2].split()[1])
    below = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return iter(below - {os.getpid()})


def own_sockets() -> set[str]:
    """Network sockets of this process and all below it that listen or are connected, as the system lists them."""
    inodes = set()
    for process in (os.getpid(), *descendants()):
        try:
            names = os.listdir(f"/proc/{process}/fd")
        except OSError:
            continue
        for name in names:
            try:
                inodes.add(os.readlink(f"/proc/{process}/fd/{name}"))
            except OSError:
                continue
    seen = set()
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if f"socket:[{fields[9]}]" in inodes:
                how = "listens at" if fields[3] == LISTENING else f"from {fields[1]} to"
                seen.add(f"{kind} {how} {fields[1] if fields[3] == LISTENING else fields[2]}")
    return seen


if __name__ == "__main__":
    main()
