"""`ally label`: the labelling page."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ally.cli.campaign.opening import Moved, Name, opened
from ally.cli.console import make_printable
from ally.errors import InputError, MissingPart

PORT = 8642


def label(
    name: Name,
    port: Annotated[int | None, typer.Option(help=f"The port (default: {PORT}, or the next one that is free).")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    share: Annotated[bool, typer.Option("--share", help="Let others label too, each with their own link.")] = False,
    annotator: Annotated[
        list[str] | None,
        typer.Option(
            help="Who labels: you (default: the name of your account), or with --share each person to invite."
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="With --share: a host name of this machine for others, or a proxy's address."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            help="With --share: the address to listen on (default: all, or 127.0.0.1 if --host names a proxy or this "
            "machine itself).",
            metavar="ADDRESS",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="With --share and PostgreSQL: a file with the key that all machines serving the campaign share (or "
            "put the key in ALLY_PAGE_KEY).",
            metavar="FILE",
        ),
    ] = None,
    moved: Moved = None,
) -> None:
    """Label in the browser.

    Only this machine can open the page; Ctrl-C ends it. With --share, others can label too: each gets a link that works
    once.

    Example: ally label pets
    """
    gc.disable()  # nothing imported here will be freed, and garbage collection would take a tenth of the time
    try:
        from ally.web.server import Plan, prepare
    except ImportError as error:
        raise MissingPart("the labelling page needs FastAPI and uvicorn: pip install 'ally-learn[page]'") from error
    finally:
        gc.enable()
    for option, value in (("--host", host), ("--listen", listen), ("--key-file", key_file)):
        if value and not share:
            raise InputError(f"{option} is for --share; leave it out, or share the page")
    if not share and annotator and len(annotator) > 1:
        raise InputError("several annotators need --share; name one, or share the page")
    if port is not None and not 0 <= port <= 65535:
        raise InputError.about("port", port, "must be between 0 and 65535")
    with opened(name, moved) as campaign, tempfile.TemporaryDirectory(prefix="ally-label-") as private:
        if key_file is not None and not campaign.is_on_server:
            raise InputError("--key-file is for a campaign on PostgreSQL; this one is a file, so leave it out")
        plan = Plan(share, tuple(annotator or ()), tuple(host or ()), listen, port, PORT, key_file=key_file)
        running = prepare(campaign, plan)

        def ready() -> None:
            gc.freeze()  # and it is not scanned again while people label
            for line in running.lines:
                print(make_printable(line), flush=True)
            if browser:
                from ally.web.browser import open_browser

                open_browser(running.address, Path(private))

        running.serve(ready)
    print("the page is closed; every answer that it showed as saved is on record")
