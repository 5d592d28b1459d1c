"""`augury lsp`."""

from __future__ import annotations

import click

from augury.core.errors import RunError


@click.command()
@click.option("--tcp", metavar="PORT", type=int, help="Listen on a port of this machine; by default standard streams.")
def lsp(tcp: int | None) -> None:
    """Run the language server, which editors start: for rules and for SPAseQ."""
    try:
        from augury.editor.language_server import make_server
    except ImportError as error:
        raise RunError(f"the language server needs `{error.name}`", hint="pip install 'augury[lsp]'") from None
    server = make_server()
    if tcp is not None:
        server.start_tcp("127.0.0.1", tcp)
    else:
        server.start_io()
