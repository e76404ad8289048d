"""Fetch what the real test servers run from, once.

    python tests/servers/fetch.py

Neo4j Community comes as jars from Maven (see `pom.xml`), Milvus as the `milvus` wheel, Redis as
Debian packages, or from the path where there is no apt. All land in `.cache/servers` below the
repository root, or in `ECPHORIA_TEST_CACHE`. Needs only the standard library, so that it runs
before anything is installed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POM = Path(__file__).with_name("pom.xml")
MILVUS_VERSION = "2.3.5"
# The server is in the first two; the others are libraries that a small system lacks.
REDIS_PACKAGES = ("redis-server", "redis-tools", "libjemalloc2", "liblzf1")
STAMP = "complete"


class MissingToolError(Exception):
    """A tool is not on this machine; the message says how to get it."""


def cache_dir() -> Path:
    """Return where downloads are kept."""
    own = os.environ.get("ECPHORIA_TEST_CACHE")
    return Path(own).absolute() if own else POM.parents[2] / ".cache" / "servers"


def neo4j_home() -> Path:
    """Return the directory with Neo4j's `lib`, complete or not."""
    match = re.search(r"<neo4j\.version>(.+?)</neo4j\.version>", POM.read_text())
    if match is None:
        message = f"{POM}: no <neo4j.version>"
        raise ValueError(message)
    return cache_dir() / f"neo4j-{match[1]}"


def milvus_home() -> Path:
    """Return the directory with Milvus' `bin` and `milvus` package, complete or not."""
    return cache_dir() / f"milvus-{MILVUS_VERSION}"


def redis_home() -> Path:
    """Return the directory that Redis' packages are unpacked in, complete or not."""
    return cache_dir() / "redis"


def redis_stamp() -> str:
    """Return what the stamp of a current Redis download says."""
    return " ".join(REDIS_PACKAGES)


def redis_server() -> tuple[Path, dict[str, str]]:
    """Return the Redis server of this machine and the environment variables that it needs.

    Raises:
        MissingToolError: When it is neither fetched nor on the path.
    """
    home = redis_home()
    if is_complete(home, redis_stamp()):
        libraries = sorted({str(file.parent) for file in home.rglob("*.so.*")})
        return home / "usr/bin/redis-server", {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}
    found = shutil.which("redis-server")
    if found is None:
        message = (
            "redis-server is missing: run `python tests/servers/fetch.py` where there is apt, "
            "or install Redis"
        )
        raise MissingToolError(message)
    return Path(found), {}


def neo4j_stamp() -> str:
    """Return what the stamp of a current Neo4j download says: any change of the pom counts."""
    return hashlib.sha256(POM.read_bytes()).hexdigest()


def is_complete(home: Path, stamp: str) -> bool:
    """Tell whether `home` holds a finished download of what `stamp` names."""
    file = home / STAMP
    return file.is_file() and file.read_text() == stamp


def java() -> str:
    """Return the `java` of JAVA_HOME or of the path.

    Raises:
        MissingToolError: When there is none, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    advice = "Java 17 or 21, e.g. `apt install openjdk-17-jre-headless`"
    if found is None:
        message = f"java is missing: install {advice}"
        raise MissingToolError(message)
    banner = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', banner.stderr)
    if version is None or int(version[1]) < 17:
        message = f"{found} is too old for Neo4j 5: install {advice}"
        raise MissingToolError(message)
    return found


def say(text: str) -> None:
    """Tell the user what is going on."""
    print(text, flush=True)  # noqa: T201 - the output of this script


@contextlib.contextmanager
def _whole_or_nothing(home: Path, stamp: str) -> Iterator[Path]:
    """Yield a temporary directory that becomes `home` only when the block succeeds."""
    home.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
    try:
        # Made private by mkdtemp; a cache may be shared by users of one machine.
        work.chmod(0o755)
        yield work
        (work / STAMP).write_text(stamp)
        if is_complete(home, stamp):
            return  # somebody else was quicker, and may be running from it already
        shutil.rmtree(home, ignore_errors=True)
        work.rename(home)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(command: list[str]) -> None:
    say("  $ " + " ".join(command))
    subprocess.run(command, check=True)


def fetch_neo4j() -> Path:
    """Fetch Neo4j's jars unless they are there.

    Returns:
        The directory that holds `lib`.

    Raises:
        MissingToolError: Without Java or Maven.
    """
    home, stamp = neo4j_home(), neo4j_stamp()
    java()
    if is_complete(home, stamp):
        say(f"{home.name}: already in {home.parent}")
        return home
    maven = shutil.which("mvn")
    if maven is None:
        message = "mvn is missing: install Maven, e.g. `apt install maven`"
        raise MissingToolError(message)
    say(f"{home.name}: fetching about 120 MB of jars")
    with _whole_or_nothing(home, stamp) as work:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        _run([maven, "-q", "-B", "-f", str(POM), *goal, f"-DoutputDirectory={work / 'lib'}"])
    return home


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "-q", "--python", sys.executable]
    message = "pip is missing: `python -m ensurepip`, or install uv"
    raise MissingToolError(message)


def fetch_milvus() -> Path:
    """Fetch the Milvus wheel unless it is there, and unpack its binaries.

    Returns:
        The directory that holds `bin` and the `milvus` package.

    Raises:
        MissingToolError: Without pip and uv.
    """
    home = milvus_home()
    if is_complete(home, MILVUS_VERSION):
        say(f"{home.name}: already in {home.parent}")
        return home
    say(f"{home.name}: fetching about 55 MB, unpacking 250 MB")
    with _whole_or_nothing(home, MILVUS_VERSION) as work:
        # Without dependencies: its Python part is never imported, only the server is used.
        _run([*_pip(), "--no-deps", "--target", str(work), f"milvus=={MILVUS_VERSION}"])
        (work / "bin").mkdir(exist_ok=True)
        for packed in sorted((work / "milvus" / "data" / "bin").glob("*.lzma")):
            unpacked = work / "bin" / packed.stem
            with lzma.open(packed) as source, unpacked.open("wb") as target:
                shutil.copyfileobj(source, target)
            unpacked.chmod(0o755)
            packed.unlink()
    return home


def fetch_redis() -> Path:
    """Fetch Redis' Debian packages unless they are there, and unpack them; needs no root.

    Where there is no apt, a `redis-server` on the path does.

    Returns:
        The directory with the packages, or the server on the path.

    Raises:
        MissingToolError: With neither apt nor Redis.
    """
    home, stamp = redis_home(), redis_stamp()
    if is_complete(home, stamp):
        say(f"{home.name}: already in {home.parent}")
        return home
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        server, _ = redis_server()
        say(f"{home.name}: {server} is used")
        return server
    say(f"{home.name}: fetching about 1.4 MB")
    with _whole_or_nothing(home, stamp) as work:
        with tempfile.TemporaryDirectory() as packages:
            _download(Path(packages))
            for package in sorted(Path(packages).glob("*.deb")):
                _run(["dpkg", "-x", str(package), str(work)])
        # dpkg gives it the mode of the root directory in a package
        work.chmod(0o755)
    return home


def _download(folder: Path) -> None:
    """Put the packages into a folder, with package lists of our own where there are none."""
    # by default apt hands over to a user who may not write here, and says so
    command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root"]
    download = ["download", *REDIS_PACKAGES]
    if subprocess.run([*command, *download], cwd=folder, check=False).returncode == 0:
        return
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True)
    own = ["-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}"]
    _run([*command, *own, "update"])
    say("  $ " + " ".join([*command, *own, *download]))
    subprocess.run([*command, *own, *download], cwd=folder, check=True)


def main() -> int:
    """Fetch all; return 1 when something is missing or a download failed."""
    code = 0
    steps: list[Callable[[], Path]] = [fetch_neo4j, fetch_milvus, fetch_redis]
    for step in steps:
        began = time.monotonic()
        try:
            step()
        except MissingToolError as error:
            if step is fetch_redis and os.environ.get("CI") != "true":
                say(f"note: {error}; the tests that need it are skipped")
                continue
            say(f"error: {error}")
            code = 1
        except subprocess.CalledProcessError as error:
            say(f"error: {error.cmd[0]} ended with {error.returncode}, see above")
            code = 1
        else:
            say(f"  done in {time.monotonic() - began:.1f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
