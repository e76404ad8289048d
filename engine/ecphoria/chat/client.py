"""A client for chat models behind an OpenAI-compatible API."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus

import httpx
import stamina
import structlog
from pydantic import SecretStr

from ecphoria.chat.budget import Spending, TokenBudget
from ecphoria.chat.protocol import (
    Answer,
    Dialect,
    Form,
    Message,
    Reply,
    prompt_tokens,
    read_content,
    read_reply,
    request_body,
    retry_after,
    server_words,
)
from ecphoria.clock import Clock
from ecphoria.errors import ChatFailed, ConfigurationInvalid
from ecphoria.language.tokens import estimated_tokens

# Requests at a time; the others wait, and their time-out with them.
CONCURRENCY = 8
CONNECT_S = 5.0
MAX_BODY_BYTES = 1024 * 1024
_ATTEMPTS = 3
# After so many failures in a row nobody asks for a while: a write must not wait for a dead
# server once a text.
_REST_AFTER = 3
REST = timedelta(seconds=30)
_PATH = "/chat/completions"
# What a server says about one request. Everything else is about the server.
_ABOUT_THE_REQUEST = frozenset({400, 413, 415, 422})
_MAY_PASS = frozenset({408, 409, 429})

log = structlog.get_logger(__name__)


class _Failed(Exception):
    """A request failed.

    Attributes:
        sentence: What happened, without the key and without anybody's text.
        outage: Whether the server is to blame, not this one request.
        again: Whether another attempt may go better.
        wait_s: How long the server asks to wait before that; None when it doesn't say.
        refusal: All that the server says about it, in lower case; never to be shown.
    """

    def __init__(
        self,
        sentence: str,
        *,
        outage: bool = False,
        again: bool = False,
        wait_s: float | None = None,
        refusal: str = "",
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.outage = outage
        self.again = again
        self.wait_s = wait_s
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class _Call:
    """A request with its price in tokens, and what of it must not be told."""

    body: bytes
    prompt_tokens: int
    max_tokens: int
    private: tuple[str, ...]


class ChatClient:
    """Asks one model for answers of a given form.

    Safe for concurrent use in one event loop. Neither the key nor a text that is sent stands in
    any error or log line.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key: SecretStr | None,
        timeout_s: float,
        budget: TokenBudget,
        clock: Clock,
    ) -> None:
        """Prepare the client; nothing is sent.

        Args:
            url: Base URL of the API, e.g. ``http://127.0.0.1:11434/v1``.
            model: Name of the model.
            api_key: Key of the API, if it wants one.
            timeout_s: Seconds that one answer may take, all attempts included.
            budget: Where tokens are counted.
            clock: Where time comes from.

        Raises:
            ConfigurationInvalid: When the URL is none, or the key cannot be sent.
        """
        self._url = _checked_url(url)
        self._key = _checked_key(api_key)
        self._model = model
        self._timeout_s = timeout_s
        self._budget = budget
        self._clock = clock
        self._dialect = Dialect()
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._failures = 0
        self._resting_until: datetime | None = None
        self._last_failure = ""
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        self._http = httpx.AsyncClient(
            headers=headers,
            # the time-out of the whole answer covers the rest
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            # no limit of its own: who waits for a connection there spends its time-out on it
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=CONCURRENCY),
            # a redirect would carry the key elsewhere
            follow_redirects=False,
            # proxies of the environment lead to other machines, not to this one
            trust_env=not _is_this_machine(self._url.host),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def complete(
        self, messages: Sequence[Message], form: Form[Answer], *, max_tokens: int
    ) -> Answer:
        """Return the model's answer to some messages, the first of them the system's.

        Args:
            messages: What the model is told.
            form: The form of the answer.
            max_tokens: Tokens that the answer may have.

        Raises:
            ChatFailed: When there is no answer of that form in time, or the budget is used up.
        """
        async with self._slots:
            self._check_rest()
            try:
                async with asyncio.timeout(self._timeout_s):
                    reply = await self._asked(messages, form, max_tokens)
            except TimeoutError:
                failed = _Failed(
                    f"the chat model did not answer within {self._timeout_s:g} s", outage=True
                )
            except _Failed as error:
                failed = error
            else:
                self._failures = 0
                answer = read_content(reply.content, form)
                fault = _fault(reply)
                if fault is None and not isinstance(answer, str):
                    return answer
                failed = _Failed(fault or f"the chat model's answer {answer}")
        if failed.outage:
            self._note_outage(failed.sentence)
        # outside of any `except`: what caused it may hold the key or a text
        raise ChatFailed(failed.sentence)

    # --- one request -------------------------------------------------------------------------

    async def _asked(
        self, messages: Sequence[Message], form: Form[Answer], max_tokens: int
    ) -> Reply:
        prompt = prompt_tokens(messages, form)
        # the first message is ours; the others may hold anybody's words
        private = (self._key, *(message.content for message in messages[1:]))
        dialect = self._dialect
        while True:
            body = request_body(self._model, messages, form, max_tokens, dialect)
            try:
                reply = await self._sent(_Call(body, prompt, max_tokens, private))
            except _Failed as failed:
                other = dialect.without(failed.refusal)
                if other is None:
                    raise
                dialect = other
            else:
                # kept only now: a refusal may name what is not its cause
                self._dialect = dialect
                return reply

    async def _sent(self, call: _Call) -> Reply:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s

        def again(error: Exception) -> bool | float:
            if not isinstance(error, _Failed) or not error.again:
                return False
            if error.wait_s is None:
                return True
            return error.wait_s if loop.time() + error.wait_s < deadline else False

        async for attempt in stamina.retry_context(
            on=again,
            attempts=_ATTEMPTS,
            timeout=None,
            wait_initial=0.1,
            wait_max=2.0,
            wait_jitter=0.1,
        ):
            with (
                attempt,
                self._budget.spending(call.prompt_tokens + call.max_tokens) as spending,
            ):
                return await self._attempt(call, spending)
        raise AssertionError  # pragma: no cover - the loop returns or raises

    async def _attempt(self, call: _Call, spending: Spending) -> Reply:
        if self._http.is_closed:
            spending.used = 0
            msg = "the chat client is closed"
            raise _Failed(msg)
        try:
            async with self._http.stream("POST", self._url, content=call.body) as response:
                answer = await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            spending.used = 0
            msg = f"the chat API cannot be reached: {_reason(error)}"
            raise _Failed(msg, outage=True, again=True) from None
        except httpx.TransportError as error:
            msg = f"the chat API went away before its answer was complete: {_reason(error)}"
            raise _Failed(msg, outage=True, again=True) from None
        except httpx.HTTPError as error:
            msg = f"the chat API's answer cannot be read: {_reason(error)}"
            raise _Failed(msg, outage=True) from None
        if response.status_code != HTTPStatus.OK:
            spending.used = 0
            raise self._refused(response, answer, call)
        reply = read_reply(answer)
        if reply is None:
            words = server_words(answer, call.private)
            msg = f"the chat API's answer is not of the chat protocol{_told(words)}"
            raise _Failed(msg)
        spending.used = reply.tokens or call.prompt_tokens + estimated_tokens(reply.content)
        return reply

    def _refused(self, response: httpx.Response, answer: bytes, call: _Call) -> _Failed:
        status = response.status_code
        words = server_words(answer, call.private)
        wait_s = retry_after(response.headers.get("retry-after"), self._clock.now())
        if response.is_redirect:
            what = (
                "redirects to another address, which is not followed: set ECPHORIA_CHAT_URL to it"
            )
        elif status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            what = "refuses ECPHORIA_CHAT_API_KEY"
        elif status == HTTPStatus.NOT_FOUND:
            what = "knows no such model or address"
        elif status == HTTPStatus.TOO_MANY_REQUESTS:
            what = "has had too many requests"
        else:
            what = "refuses the request" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "failed"
        patience = "" if wait_s is None else f", to be asked again in {wait_s:g} s"
        return _Failed(
            f"the chat API {what} (status {status}{patience}){_told(words)}",
            outage=status not in _ABOUT_THE_REQUEST,
            again=status in _MAY_PASS or status >= HTTPStatus.INTERNAL_SERVER_ERROR,
            wait_s=wait_s,
            refusal=answer.decode("utf-8", errors="replace").lower()
            if status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
            else "",
        )

    # --- rest after failures -------------------------------------------------------------------

    def _check_rest(self) -> None:
        if self._resting_until is not None and self._clock.now() < self._resting_until:
            msg = (
                f"the chat model is not asked until {self._resting_until:%H:%M:%S} UTC, after "
                f"{self._failures} failures in a row; the last: {self._last_failure}"
            )
            raise ChatFailed(msg)

    def _note_outage(self, sentence: str) -> None:
        self._failures += 1
        self._last_failure = sentence
        if self._failures >= _REST_AFTER:
            self._resting_until = self._clock.now() + REST
            log.warning(
                "chat model is left alone",
                failures=self._failures,
                until=self._resting_until.isoformat(),
                reason=sentence,
            )


async def _read(response: httpx.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BODY_BYTES:
            msg = f"the chat API's answer is larger than {MAX_BODY_BYTES} bytes"
            raise _Failed(msg)
        parts.append(part)
    return b"".join(parts)


def _fault(reply: Reply) -> str | None:
    if reply.refused:
        return "the chat model declined to answer"
    if reply.finish == "length":
        return "the chat model's answer was cut off, for it had no more tokens"
    if reply.finish == "content_filter":
        return "the chat API's content filter withheld the answer"
    if not reply.content.strip():
        return "the chat model's answer is empty"
    return None


def _told(words: str) -> str:
    return f": {words}" if words else ""


def _reason(error: httpx.HTTPError) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _checked_url(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url.strip().rstrip("/").removesuffix(_PATH))
    except httpx.InvalidURL as error:
        msg = f"ECPHORIA_CHAT_URL is no URL: {error}"
        raise ConfigurationInvalid(msg) from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        msg = "ECPHORIA_CHAT_URL must start with http:// or https:// and name a host"
        raise ConfigurationInvalid(msg)
    if parsed.userinfo or parsed.query or parsed.fragment:
        msg = (
            "ECPHORIA_CHAT_URL may have no user, password, query or fragment; a key belongs into "
            "ECPHORIA_CHAT_API_KEY"
        )
        raise ConfigurationInvalid(msg)
    return parsed.copy_with(path=parsed.path.rstrip("/") + _PATH)


def _checked_key(api_key: SecretStr | None) -> str:
    key = "" if api_key is None else api_key.get_secret_value().strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        msg = "ECPHORIA_CHAT_API_KEY holds blanks or signs that a key cannot have"
        raise ConfigurationInvalid(msg)
    return key


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
