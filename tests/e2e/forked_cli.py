"""The command line without its imports, for conftest.py.

Reads commands from standard input, one JSON object a line, and runs each in a process of its own,
forked from this one: so it has everything imported already, which takes longer than most commands.
Standard input, output and error of a command are files; its exit code comes back as a JSON object.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from importlib.metadata import entry_points
from typing import Any

import ecphoria.engine
import ecphoria_graphql.server
from ecphoria.cli.main import COMMANDS, main


def _become(command: dict[str, Any]) -> None:
    """Have the environment, the directory and the files that a command was given."""
    os.environ.clear()
    os.environ.update(command["env"])
    os.chdir(command["cwd"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        file = os.open(command[name], flags)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.argv = ["ecphoria", *command["args"]]
    # a command that hangs ends by this signal
    signal.alarm(command["timeout_s"])


def serve() -> None:
    """Run commands until there are none."""
    for point in entry_points(group=COMMANDS):
        point.load()
    # so that no collection in a command touches, and thereby copies, what is shared
    gc.freeze()
    commands = os.fdopen(os.dup(0))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    while line := commands.readline():
        command = json.loads(line)
        child = os.fork()
        if child == 0:
            commands.close()
            os.close(answers.fileno())
            _become(command)
            code = main(sys.argv[1:])
            sys.stdout.flush()
            sys.stderr.flush()
            # taking apart all that was imported takes longer than most commands
            os._exit(code)
        _, status = os.waitpid(child, 0)
        answers.write(json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n")


if __name__ == "__main__":
    assert ecphoria.engine
    assert ecphoria_graphql.server
    serve()
