"""A client of the GraphQL API. It needs no engine and no store, only `httpx`.

``async with Client("http://127.0.0.1:8000", key) as client: await client.recall("…", "u-42")``
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import httpx

from ecphoria.client.answers import (
    Answer,
    Forgotten,
    FoundEntity,
    FoundMemory,
    StoredMemory,
    Written,
    answer_from,
    forgotten_from,
    memory_from,
    written_from,
)
from ecphoria.client.documents import FORGET, MEMORY, RECALL, REMEMBER
from ecphoria.client.faults import error_from, raise_fault
from ecphoria.errors import EcphoriaError, RequestRefused, ServerUnreachable

__all__ = [
    "Answer",
    "Client",
    "Forgotten",
    "FoundEntity",
    "FoundMemory",
    "StoredMemory",
    "Written",
]

PATH: Final = "/graphql"
ACCEPT: Final = "application/graphql-response+json, application/json;q=0.9"
_SERVER_FAULT: Final = 500


class Client:
    """Asks one server with one key; safe for concurrent use in one event loop."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = 125.0,
        trust_env: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Begin; nothing is sent yet.

        Args:
            url: Of the server, e.g. ``http://127.0.0.1:8000``.
            key: An API key or a token.
            timeout_s: Seconds to wait for an answer; a little longer than the server's own limit.
            trust_env: Whether proxies come from the environment.
            transport: In the place of the network, for tests.
        """
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}", "Accept": ACCEPT},
            timeout=timeout_s,
            trust_env=trust_env,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        """Open the connections."""
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self._http.__aexit__(kind, error, trace)

    async def graphql(
        self,
        document: str,
        variables: Mapping[str, Any] | None = None,
        *,
        operation_name: str | None = None,
    ) -> dict[str, Any]:
        """Run an operation; return its data.

        Args:
            document: The text of the operation.
            variables: As JSON has them.
            operation_name: Which one, where the document has several.

        Raises:
            EcphoriaError: The first error of the answer, also when part of it came: of the class
                that its code has, e.g. `NotFound` or `Forbidden`.
            RequestRefused: When its code is none of those: the request itself is no good.
            ServerUnreachable: When no answer came, or none of this API.
        """
        body: dict[str, Any] = {"query": document, "variables": dict(variables or {})}
        if operation_name is not None:
            body["operationName"] = operation_name
        try:
            # in ASCII: so lone surrogates reach the server, which says what is wrong with them
            response = await self._http.post(
                PATH, content=json.dumps(body), headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as error:
            msg = f"the server does not answer: {type(error).__name__} {error}"
            raise ServerUnreachable(msg) from error
        return _data(response)

    async def recall(
        self,
        question: str,
        user_id: str,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        session_id: str | None = None,
        limit: int = 10,
        max_tokens: int = 800,
    ) -> Answer:
        """Answer a question about one user.

        Args:
            question: In Chinese or English.
            user_id: Whose memories to recall.
            as_of: The moment the answer must be true for; now if None.
            known_at: Only what was known then; now if None.
            session_id: The conversation that the question is part of.
            limit: How many memories at most.
            max_tokens: Budget of the answer's `context`.

        Raises:
            EcphoriaError: As for `graphql`.
        """
        given = {
            "question": question,
            "userId": user_id,
            "asOf": _text(as_of),
            "knownAt": _text(known_at),
            "sessionId": session_id,
            "limit": limit,
        }
        found = await self.graphql(RECALL, {"input": given, "maxTokens": max_tokens})
        return answer_from(found["recall"])

    async def remember(
        self,
        text: str,
        user_id: str | None = None,
        *,
        shared: bool = False,
        idempotency_key: str | None = None,
        **more: Any,  # noqa: ANN401 - as JSON has it
    ) -> Written:
        """Keep a memory.

        Args:
            text: What to keep.
            user_id: Whose it is; leave it out only with `shared`.
            shared: Whether every user of the tenant sees it.
            idempotency_key: Made for this one write: sent again with it, it brings the first
                answer, and nothing is written twice.
            more: Other fields of `MemoryInput` by their GraphQL names, e.g. ``kind="SEMANTIC"``,
                ``about=[{"type": "Order", "id": "o-1"}]``; times as `datetime` or text.

        Raises:
            EcphoriaError: When it breaks a rule, e.g. `TextEmpty` or `IdConflict`; and as for
                `graphql`.
        """
        item = {"text": text, "userId": user_id, "shared": shared, **more}
        (found,) = await self.remember_all([item], idempotency_key=idempotency_key)
        if found.error is not None:
            raise found.error
        return found

    async def remember_all(
        self, items: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> tuple[Written, ...]:
        """Keep memories; a bad one does not harm the others.

        Args:
            items: `MemoryInput`s by their GraphQL names.
            idempotency_key: As for `remember`, for all of them together.

        Returns:
            What became of each; one that breaks a rule is REJECTED and has an `error`.

        Raises:
            EcphoriaError: When the batch itself is no good, e.g. `BatchTooLarge`; and as for
                `graphql`.
        """
        given = [
            {
                name: _text(value) if isinstance(value, datetime) else value
                for name, value in item.items()
            }
            for item in items
        ]
        variables = {"items": given, "key": idempotency_key}
        found = (await self.graphql(REMEMBER, variables))["rememberBatch"]
        raise_fault(found)
        return tuple(written_from(receipt) for receipt in found["receipts"])

    async def memory(self, user_id: str, memory_id: str) -> StoredMemory:
        """Return one memory of a user, or a shared one.

        Raises:
            NotFound: When there is none that the user may see.
            EcphoriaError: As for `graphql`.
        """
        found = await self.graphql(MEMORY, {"userId": user_id, "id": memory_id})
        return memory_from(found["memory"])

    async def forget(
        self,
        user_id: str,
        ids: Sequence[str],
        reason: str,
        *,
        idempotency_key: str | None = None,
    ) -> Forgotten:
        """Erase a user's own memories for good.

        Args:
            user_id: Whose.
            ids: Of the memories.
            reason: Why, in a sentence.
            idempotency_key: As for `remember`.

        Raises:
            EcphoriaError: When the call is no good, e.g. `InvalidInput` without a reason; and as
                for `graphql`.
        """
        given = {"userId": user_id, "ids": list(ids), "reason": reason, "key": idempotency_key}
        found = (await self.graphql(FORGET, given))["forget"]
        raise_fault(found)
        return forgotten_from(found)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _data(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = None
    errors = body.get("errors") if isinstance(body, dict) else None
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        raise _error(errors[0], response)
    data = body.get("data") if isinstance(body, dict) else None
    if isinstance(data, dict):
        return data
    msg = f"the server answered HTTP {response.status_code}, and nothing of GraphQL"
    if response.status_code >= _SERVER_FAULT:
        raise ServerUnreachable(msg)
    raise RequestRefused(msg)


def _error(given: Mapping[str, Any], response: httpx.Response) -> EcphoriaError:
    """Return an error of an answer as the class that its code has."""
    told = given.get("extensions")
    extensions = told if isinstance(told, dict) else {}
    code, message = str(extensions.get("code")), str(given.get("message"))
    path = tuple(part for part in extensions.get("path") or () if isinstance(part, str | int))
    wait = response.headers.get("retry-after", "")
    return error_from(code, message, path, float(wait) if wait.isdigit() else 1.0)
