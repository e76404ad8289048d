"""Documents by their hash: trusted ones, which come with the server, and those clients register.

A trusted document's id is the SHA-256 of its text, as ``sha256sum file.graphql`` prints it. A
client sends the id in the place of the text: ``documentId``, or ``extensions.persistedQuery`` as
Apollo's clients do. What they register there is kept in this process, the latest only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

from cachetools import LRUCache
from graphql import DocumentNode, GraphQLError, OperationDefinitionNode, OperationType, parse

from ecphoria.errors import ConfigurationInvalid, InvalidInput
from ecphoria.settings import Settings
from ecphoria_graphql.error_codes import DocumentFault, GraphQLCode
from ecphoria_graphql.limits import MAX_TOKENS

MANIFEST: Final = "operations.json"
FORMAT: Final = "apollo-persisted-query-manifest"
VERSION: Final = 1
MAX_REGISTERED_CHARS: Final = 4_000_000
MAX_DOCUMENT_CHARS: Final = 64_000
_PARSED_CHARS: Final = 256_000
_PARSED_DOCUMENT_CHARS: Final = 16_000

_ID = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def document_id(text: str) -> str:
    """Return the id of a document: the SHA-256 of its text."""
    # a lone surrogate, which JSON can bring, is no reason to fail
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


class Documents:
    """Finds the text of an operation by what a request brings."""

    def __init__(self, trusted: Mapping[str, str], *, only: bool) -> None:
        """Begin with the trusted documents.

        Args:
            trusted: Id -> text.
            only: Whether nothing else may be run.
        """
        self._trusted = trusted
        self._only = only
        self._registered: LRUCache[str, str] = LRUCache(MAX_REGISTERED_CHARS, getsizeof=len)

    def text(
        self, query: str | None, id_: str | None, extensions: Mapping[str, Any] | None
    ) -> str | None:
        """Return the text to run; None when the request names none.

        Raises:
            DocumentFault: When it is not to be found, not what its hash says, or not trusted.
        """
        persisted = (extensions or {}).get("persistedQuery")
        if id_ is not None:
            return self._by_id(query, persisted, id_)
        if persisted is not None:
            return self._persisted(query, persisted)
        if query is not None and self._only and document_id(query) not in self._trusted:
            raise _untrusted()
        return query

    def _by_id(self, query: str | None, persisted: object, id_: str) -> str:
        if query is not None or persisted is not None:
            msg = "the request names a document and brings another: send one of them"
            raise DocumentFault(GraphQLCode.BAD_REQUEST, msg)
        found = _ID.fullmatch(id_)
        text = self._trusted.get(found[1]) if found else None
        if text is None:
            msg = "there is no trusted document with this id"
            raise DocumentFault(GraphQLCode.UNTRUSTED_DOCUMENT, msg)
        return text

    def _persisted(self, query: str | None, persisted: object) -> str:
        given = persisted if isinstance(persisted, dict) else {}
        hash_ = given.get("sha256Hash")
        if given.get("version") != VERSION or not isinstance(hash_, str):
            msg = "extensions.persistedQuery needs `version`: 1 and `sha256Hash`, a text"
            raise DocumentFault(GraphQLCode.BAD_REQUEST, msg)
        if query is not None and document_id(query) != hash_:
            msg = "provided sha does not match query"
            raise DocumentFault(GraphQLCode.BAD_REQUEST, msg)
        if (trusted := self._trusted.get(hash_)) is not None:
            return trusted
        if self._only:
            raise _untrusted()
        if query is None:
            known: str | None = self._registered.get(hash_)
            if known is None:
                # Apollo's clients look for these very words
                msg = "PersistedQueryNotFound"
                raise DocumentFault(GraphQLCode.PERSISTED_QUERY_NOT_FOUND, msg)
            return known
        if len(query) <= MAX_DOCUMENT_CHARS:
            self._registered[hash_] = query
        return query


def _untrusted() -> DocumentFault:
    msg = "only trusted documents are run here, and this is none of them"
    return DocumentFault(GraphQLCode.UNTRUSTED_DOCUMENT, msg)


# --- the manifest --------------------------------------------------------------------------


def manifest(folder: Path) -> str:
    """Return the manifest of the operations in a folder, one a file.

    Raises:
        InvalidInput: When a file does not hold exactly one operation, or cannot be read.
    """
    entries = []
    for file in sorted(folder.glob("*.graphql")):
        try:
            text = file.read_text(encoding="utf-8")
            document = parse(text)
        except (OSError, UnicodeDecodeError, GraphQLError) as error:
            msg = f"{file}: {error}"
            raise InvalidInput(msg) from error
        found = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
        if len(found) != 1 or found[0].name is None:
            msg = f"{file} must hold one operation with a name"
            raise InvalidInput(msg)
        entries.append(
            {
                "id": document_id(text),
                "name": found[0].name.value,
                "type": found[0].operation.value,
                "body": text,
            }
        )
    if not entries:
        msg = f"{folder} has no file *.graphql"
        raise InvalidInput(msg)
    body = {"format": FORMAT, "version": VERSION, "operations": entries}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def read_manifest(text: str, where: str) -> Mapping[str, str]:
    """Return the documents of a manifest by their ids.

    Args:
        text: The manifest.
        where: Its name, for the message.

    Raises:
        ConfigurationInvalid: When it is none, or an id is not the hash of its document.
    """
    try:
        found = json.loads(text)
        if (found["format"], found["version"]) != (FORMAT, VERSION):
            msg = f"{where}: the format must be {FORMAT!r}, version {VERSION}"
            raise ConfigurationInvalid(msg)
        documents = {str(item["id"]): item["body"] for item in found["operations"]}
        wrong = [id_ for id_, body in documents.items() if document_id(body) != id_]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"{where} is no manifest of operations"
        raise ConfigurationInvalid(msg) from error
    if wrong:
        msg = f"{where}: the id {wrong[0]:.70} is not the SHA-256 of its document"
        raise ConfigurationInvalid(msg)
    return documents


def open_documents(settings: Settings) -> Documents:
    """Return the documents that the settings name.

    Raises:
        ConfigurationInvalid: When the manifest cannot be read.
    """
    file = settings.trusted_documents_file
    try:
        text = (
            (resources.files(__package__) / MANIFEST).read_text(encoding="utf-8")
            if file is None
            else file.read_text(encoding="utf-8")
        )
    except (OSError, UnicodeDecodeError) as error:
        msg = f"ECPHORIA_TRUSTED_DOCUMENTS_FILE ({file}): {error}"
        raise ConfigurationInvalid(msg) from error
    trusted = read_manifest(text, "the shipped manifest" if file is None else str(file))
    return Documents(trusted, only=settings.trusted_documents == "only")


# --- parsed once ---------------------------------------------------------------------------


class ParsedDocuments:
    """Documents as they were parsed, the latest only: many clients send the same few."""

    def __init__(self) -> None:
        """Begin with none."""
        self._parsed: LRUCache[str, tuple[int, DocumentNode]] = LRUCache(
            _PARSED_CHARS, getsizeof=lambda item: item[0]
        )

    def get(self, query: str) -> DocumentNode | None:
        """Return a parsed document; None when it cannot be parsed, which is said elsewhere."""
        found = self._parsed.get(query)
        if found is not None:
            return found[1]
        try:
            made = parse(query, max_tokens=MAX_TOKENS)
        except (GraphQLError, RecursionError):
            return None
        if len(query) <= _PARSED_DOCUMENT_CHARS:
            self._parsed[query] = (len(query) + 1, made)
        return made

    def kind(self, query: str | None, name: str | None) -> OperationType | None:
        """Return what kind of operation is asked for; None when that cannot be told."""
        operations = self._operations(query)
        if name is not None:
            operations = [each for each in operations if each.name and each.name.value == name]
        return operations[0].operation if len(operations) == 1 else None

    def is_ambiguous(self, query: str | None, name: str | None) -> bool:
        """Whether a document has several operations and none is named."""
        return name is None and len(self._operations(query)) > 1

    def _operations(self, query: str | None) -> list[OperationDefinitionNode]:
        document = self.get(query) if query else None
        return [
            node
            for node in (document.definitions if document is not None else ())
            if isinstance(node, OperationDefinitionNode)
        ]
