"""Read YAML into plain values, with the line of each and every fault at once."""

from __future__ import annotations

import contextlib
from typing import Any, TypeAlias

import yaml

# A file with more values than this is a mistake, or an alias that multiplies itself.
MAX_VALUES = 100_000
_TAGS = {
    kind: f"tag:yaml.org,2002:{kind}"
    for kind in ("str", "int", "float", "bool", "null", "map", "seq")
}
_SCALAR_TAGS = frozenset(_TAGS[kind] for kind in ("str", "int", "float", "bool", "null"))

Place: TypeAlias = tuple[str | int, ...]
Lines: TypeAlias = dict[Place, int]


class YamlFault(ValueError):
    """A text is no YAML of the kind wanted.

    Attributes:
        faults: Line and sentence of each fault.

    """

    def __init__(self, faults: list[tuple[int, str]]) -> None:
        """Keep the faults; the message is all of them, one a line."""
        super().__init__("\n".join(message for _, message in faults))
        self.faults = tuple(faults)


class _Reader:
    """Turns YAML nodes into plain values, and notes the line of each."""

    def __init__(self) -> None:
        self.lines: Lines = {}
        self.faults: list[tuple[int, str]] = []
        self._loader = yaml.SafeLoader("")
        self._values = 0

    def read(self, node: yaml.Node, place: Place = ()) -> Any:  # noqa: ANN401 - YAML is any
        line = node.start_mark.line + 1
        self.lines.setdefault(place, line)
        self._values += 1
        if self._values > MAX_VALUES:
            if self._values == MAX_VALUES + 1:
                self.faults.append((line, f"more than {MAX_VALUES} values: check the aliases"))
            return None
        if isinstance(node, yaml.MappingNode) and node.tag == _TAGS["map"]:
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAGS["seq"]:
            return [self.read(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.faults.append((line, "a key must be a word"))
                continue
            key = key_node.value
            if key_node.tag != _TAGS["str"]:
                self.faults.append((line, f"a key must be a word, not {key!r} (put it in quotes)"))
                continue
            if key in result:
                self.faults.append((line, f"{key!r} stands twice"))
                continue
            self.lines[*place, key] = line
            result[key] = self.read(value_node, (*place, key))
        return result

    def _scalar(self, node: yaml.Node, line: int) -> Any:  # noqa: ANN401 - YAML is any
        if not isinstance(node, yaml.ScalarNode) or node.tag not in _SCALAR_TAGS:
            kind = node.tag.rpartition(":")[2]
            self.faults.append((line, f"a {kind} is of no use here (put texts in quotes)"))
            return None
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, AttributeError, OverflowError):
            self.faults.append((line, f"{node.value[:50]!r} cannot be read as its type"))
            return None


def line_of(lines: Lines, path: Place) -> int:
    """Return the line of a place, or of what holds it."""
    # pydantic's places may go deeper than the file's (e.g. a union's branch): walk up
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _error_line(error: yaml.YAMLError, text: str) -> int:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return error.problem_mark.line + 1
    if isinstance(error, yaml.reader.ReaderError):
        return text.count("\n", 0, error.position) + 1
    return 1


def _said(error: yaml.YAMLError) -> str:
    problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else None
    return problem or str(error).partition("\n")[0]


def _composed(text: str) -> yaml.Node | None:
    # libyaml reads fourteen times as fast; what it faults is told in the words, and at the line, of
    # the other one
    quick = getattr(yaml, "CSafeLoader", None)
    if quick is not None:
        with contextlib.suppress(yaml.YAMLError, ValueError):
            return yaml.compose(text, Loader=quick)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def read_yaml(text: str) -> tuple[dict[str, Any], Lines]:
    """Return the mapping that a YAML text is, and the line of everything in it.

    Raises:
        YamlFault: With every fault found.

    """
    reader = _Reader()
    try:
        node = _composed(text)
        if not isinstance(node, yaml.MappingNode):
            raise YamlFault([(1, "the file must be a mapping with `version`, `name`, …")])
        data = reader.read(node)
    except yaml.YAMLError as error:
        raise YamlFault([(_error_line(error, text), f"not YAML: {_said(error)}")]) from error
    except RecursionError as error:
        raise YamlFault([(1, "nested too deeply, or an alias holds itself")]) from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, YamlFault):
            raise
        # PyYAML lets some of its own through, e.g. for "\\UFFFFFFFF"
        raise YamlFault([(1, f"not YAML: {error}")]) from error
    if reader.faults:
        raise YamlFault(reader.faults)
    return data, reader.lines
