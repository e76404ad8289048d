"""A real Neo4j Community server for tests: one process, one Bolt port on 127.0.0.1."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import TYPE_CHECKING

import neo4j
from neo4j.exceptions import AuthError, DriverError, Neo4jError

from . import fetch
from .process import GuardedProcess, Server, StartError, Unavailable, free_port, tail, wait_until

if TYPE_CHECKING:
    from pathlib import Path

DATABASE = "neo4j"
USER = "neo4j"
HASH_ROUNDS = 1024
_OPENED = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch")


def auth_line(user: str, password: str, salt: bytes) -> str:
    """Return the line of Neo4j's `auth.ini` that sets a first password.

    `neo4j-admin dbms set-initial-password` writes the same, but takes a JVM and four seconds to.
    """
    digest = hashlib.sha256(salt + password.encode()).digest()
    for _ in range(HASH_ROUNDS - 1):
        digest = hashlib.sha256(digest).digest()
    return f"{user}:SHA-256,{digest.hex()},{salt.hex()},{HASH_ROUNDS}:"


def ping(uri: str, user: str, password: str) -> bool:
    """Run `RETURN 1` as a client would.

    Raises:
        DriverError: When nobody answers, which may mean "not yet".
        Neo4jError: When the server answers with an error, which may mean the same.
    """
    with (
        neo4j.GraphDatabase.driver(uri, auth=(user, password), connection_timeout=5) as driver,
        driver.session(database=DATABASE) as session,
    ):
        record = session.run("RETURN 1 AS one").single(strict=True)
        return bool(record["one"] == 1)


class Neo4jServer(Server):
    """A Neo4j server that lives as long as its `with` block, and never longer than the tests.

    Opened again on the same directory it has the same data and password. It listens on 127.0.0.1
    only: on the Bolt port, and with `browser=True` on an HTTP port for Neo4j Browser.
    """

    NAME = "Neo4j"

    def __init__(
        self,
        data_dir: Path,
        *,
        heap: str = "1g",
        page_cache: str = "128m",
        browser: bool = False,
        grace: float = 60,
    ) -> None:
        """Prepare a server; nothing runs yet.

        Args:
            data_dir: Its home: configuration, data and logs. Made when missing.
            heap: Largest Java heap.
            page_cache: Size of the page cache, outside the heap.
            browser: Whether to serve Neo4j Browser.
            grace: Seconds to stop in good order before it is killed.

        Raises:
            Unavailable: When Java or Neo4j is not on this machine.
        """
        home = fetch.neo4j_home()
        if not fetch.is_complete(home, fetch.neo4j_stamp()):
            message = f"{home} is missing or out of date: run `python tests/servers/fetch.py`"
            raise Unavailable(message)
        try:
            self._java = fetch.java()
        except fetch.MissingToolError as error:
            raise Unavailable(str(error)) from error
        super().__init__(data_dir, grace)
        self.user = USER
        self.database = DATABASE
        self.password = ""
        self.bolt_port = 0
        self.http_port = 0
        self._classpath = str(home / "lib" / "*")
        self._heap = heap
        self._page_cache = page_cache
        self._browser = browser

    @property
    def bolt_uri(self) -> str:
        """URI for drivers, known once started."""
        return f"bolt://127.0.0.1:{self.bolt_port}"

    @property
    def browser_uri(self) -> str:
        """Where Neo4j Browser is, if it was asked for."""
        return f"http://127.0.0.1:{self.http_port}/browser/"

    @property
    def _has_port(self) -> bool:
        return bool(self.bolt_port)

    def _choose_port(self) -> None:
        self.bolt_port = free_port()
        self.http_port = free_port() if self._browser else 0

    def _prepare_home(self) -> None:
        for name in ("conf", "data/dbms", "logs"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        # Only the first password counts, later ones are ignored: it has to stay with the data.
        kept = self.home / "conf" / "password.json"
        if kept.exists():
            self.password = json.loads(kept.read_text())
            return
        self.password = secrets.token_urlsafe(24)
        kept.touch(mode=0o600)
        kept.write_text(json.dumps(self.password))
        line = auth_line(self.user, self.password, secrets.token_bytes(32))
        (self.home / "data" / "dbms" / "auth.ini").write_text(line + "\n")

    def _settings(self) -> dict[str, str]:
        settings = {
            "server.default_listen_address": "127.0.0.1",
            "server.bolt.listen_address": f"127.0.0.1:{self.bolt_port}",
            # Neo4j Browser and routing drivers connect to where the server says it is.
            "server.bolt.advertised_address": f"127.0.0.1:{self.bolt_port}",
            "server.http.enabled": str(self._browser).lower(),
            "server.https.enabled": "false",
            "server.memory.pagecache.size": self._page_cache,
            "dbms.security.auth_enabled": "true",
            "dbms.usage_report.enabled": "false",
            # Saves 256 MB of zeros a database.
            "db.tx_log.preallocate": "false",
            # Otherwise stopping waits 5 s for each of two connectors, even without a client.
            "internal.server.bolt.connection_shutdown_wait_time": "100ms",
            "internal.server.bolt.thread_pool_shutdown_wait_time": "100ms",
            "internal.dbms.bolt.local_enabled": "false",
        }
        if self._browser:
            settings["server.http.listen_address"] = f"127.0.0.1:{self.http_port}"
            settings["server.http.advertised_address"] = f"127.0.0.1:{self.http_port}"
        return settings

    def _start_once(self) -> None:
        conf = "".join(f"{key}={value}\n" for key, value in self._settings().items())
        (self.home / "conf" / "neo4j.conf").write_text(conf)
        log = self.home / "logs" / "console.log"
        # Each start has its own log: an old "Address already in use" must not be read again.
        log.unlink(missing_ok=True)
        process = self._process = GuardedProcess(
            [
                self._java,
                "-Xms128m",
                f"-Xmx{self._heap}",
                *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
                "-cp",
                self._classpath,
                "org.neo4j.server.CommunityEntryPoint",
                f"--home-dir={self.home}",
                f"--config-dir={self.home / 'conf'}",
            ],
            log=log,
            cwd=self.home,
            grace=self._grace,
        )
        try:
            wait_until(
                self._answers,
                name="Neo4j",
                alive=lambda: process.alive,
                log=lambda: tail(log),
                retry_on=(DriverError, Neo4jError),
            )
        except StartError:
            process.kill9()
            raise

    def _answers(self) -> bool:
        try:
            return ping(self.bolt_uri, self.user, self.password)
        except AuthError as error:
            # Not ours, or not our data: asking again would only lock the account.
            message = f"{self.bolt_uri} refuses our password: {error}"
            raise StartError(message) from error
