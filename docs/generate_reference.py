"""Write the reference pages that the code already knows: settings, error codes, access.

python docs/generate_reference.py            write the pages
python docs/generate_reference.py --check    only compare; 1 when a page is stale
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from ecphoria.errors import EcphoriaError, error_classes
from ecphoria.governance.access import ALLOWED, READABLE, Operation
from ecphoria.model import Role
from ecphoria.settings import Settings
from ecphoria_graphql.error_codes import REMEDIES
from ecphoria_graphql.field_access import FIELD_OPERATIONS
from ecphoria_graphql.write_faults import FAULTS
from ecphoria_schema.domain import Privacy

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Made by docs/generate_reference.py from the code; do not edit. -->"

SETTINGS = f"""{NOTE}

# Settings

Every setting is an environment variable. A file `.env` in the working directory is read, too;
the environment wins over it, and an option of the command line wins over both.

- Set both store URIs, or neither. Without them the stores are embedded ones in the data directory.
- A setting that is wrong stops the program with the code `CONFIGURATION_INVALID`; the message
  names the variable.
- `ECPHORIA_TENANT` is no setting of the engine: it stands in for the option `--tenant`.
"""

ERRORS = f"""{NOTE}

# Error codes

A code is stable; the sentence beside it may change. GraphQL has it in `errors[].extensions.code`,
the `error` of a mutation in `code`, the command line prints it after `error`, and in Python it is
`error.code` of an `ecphoria.errors.EcphoriaError`.

"Try again" says whether the same call may succeed later; it is `retryable` in GraphQL. "In a
payload" is the type that it has as the `error` of a mutation; without one it is an error of the
answer, or of one item of a batch, as a `RefusedFault`.
"""

REQUEST_ERRORS = """
## Faults of a GraphQL request

They say that the request itself is no good. The engine has not seen it.
"""


ACCESS = f"""{NOTE}

# Who may do what

One table holds for the API, for Python and for the command line (which acts as `admin`). A key or
token has one or several roles; what several of them allow adds up. Keys, tokens and limits:
[Let agents and people in](../how-to/access.md).

## Operations by role
"""

LEVELS = """
## What a role reads

Of memories and of entities' properties, by privacy level. Of a property that a role may not read
it gets `•••` when it is a text, else null.
"""

FIELDS = """
## GraphQL fields

Every top-level field is one operation. A test fails for a field that is not in the table, and such
a field is open to nobody. Whatever the role, a key reaches its own tenant and the users it names
only; an id of others is answered like one that there is not.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def _type(annotation: Any) -> str:  # noqa: ANN401 - an annotation may be anything
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(annotation))
    arms = [arm for arm in get_args(annotation) if arm is not type(None)]
    if arms:
        return " or ".join(_type(arm) for arm in arms)
    names = {str: "text", Path: "path", int: "whole number", float: "number", bool: "true or false"}
    return "secret text" if annotation is SecretStr else names[annotation]


def _range(field: FieldInfo) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = [
        f"{sign} {value:g}"
        for limit in field.metadata
        for name, sign in signs.items()
        if (value := getattr(limit, name, None)) is not None
    ]
    return f", {', '.join(found)}" if found else ""


def _default(name: str, field: FieldInfo) -> str:
    if name == "data_dir":
        return "the platform's data directory"
    value = field.default
    if value is None:
        return "unset"
    if value == "":
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _settings(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for name, field in model.model_fields.items():
        variable = f"{prefix}{name.upper()}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _settings(field.annotation, f"{variable}__")
            continue
        told = field.description or f"Weight of {name} in the order of memories."
        kind = f"{_type(field.annotation)}{_range(field)}"
        yield f"`{variable}`", kind, _default(name, field), told


def settings_page() -> str:
    """Return the page of all settings."""
    rows = _settings(Settings, "ECPHORIA_")
    return f"{SETTINGS}\n{table(['variable', 'type', 'default', 'what it does'], rows)}\n"


def _sentence(kind: type[EcphoriaError]) -> str:
    return " ".join((kind.__doc__ or "").split())


def errors_page() -> str:
    """Return the page of all error codes."""
    kinds = sorted(error_classes(), key=lambda kind: kind.code)
    head = ["code", "what happened", "what to do", "try again", "kind of", "in a payload"]
    rows = [
        (
            f"`{kind.code}`",
            _sentence(kind),
            kind.remedy,
            "yes" if kind.retryable else "no",
            "" if kind is EcphoriaError else f"`{kind.__base__.code}`",  # type: ignore[union-attr]  # all have it
            f"`{FAULTS[kind].__name__.removesuffix('Node')}`" if kind in FAULTS else "",
        )
        for kind in kinds
    ]
    faults = ((f"`{code.value}`", remedy) for code, remedy in sorted(REMEDIES.items()))
    codes, requests = table(head, rows), table(["code", "what to do"], faults)
    return f"{ERRORS}\n{codes}\n{REQUEST_ERRORS}\n{requests}\n"


def _marks(roles: Iterable[Role]) -> list[str]:
    found = set(roles)
    return ["yes" if role in found else "no" for role in Role]


def access_page() -> str:
    """Return the page of who may do what."""
    roles = [f"`{role}`" for role in Role]
    operations = table(
        ["operation", *roles], ([str(item), *_marks(ALLOWED[item])] for item in Operation)
    )
    privacy = table(
        ["level", *roles],
        (
            [level, *_marks(role for role in Role if level in READABLE[role])]
            for level in get_args(Privacy)
        ),
    )
    fields = table(
        ["field", "operation", *roles],
        (
            [f"`{field}`", str(operation), *_marks(ALLOWED[operation])]
            for field, operation in FIELD_OPERATIONS.items()
        ),
    )
    return f"{ACCESS}\n{operations}\n{LEVELS}\n{privacy}\n{FIELDS}\n{fields}\n"


PAGES = {"access.md": access_page, "settings.md": settings_page, "error-codes.md": errors_page}


def main(arguments: Sequence[str]) -> int:
    """Write or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only compare with the files")
    check = parser.parse_args(arguments).check
    stale = []
    for name, make in PAGES.items():
        file = REFERENCE / name
        text = make()
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        if check:
            stale.append(name)
        else:
            file.write_text(text, encoding="utf-8")
    for name in stale:
        sys.stderr.write(
            f"docs/reference/{name} is stale: run `python docs/generate_reference.py`\n"
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
