"""Settings: both stores or neither, and every fault names its variable."""

from __future__ import annotations

import pytest

from ecphoria.errors import ConfigurationInvalid
from ecphoria.settings import RankWeights, Settings, load_settings

NEO4J, MILVUS = "bolt://localhost:7687", "http://localhost:19530"


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    """Keep the developer's environment and .env out."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"ECPHORIA_{name.upper()}", raising=False)


def test_defaults_are_the_embedded_stores():
    settings = load_settings()
    assert settings.embedded
    assert (settings.domain, settings.relevance_gate) == ("after_sales", 0.16)


def test_both_stores_are_servers():
    assert not load_settings(neo4j_uri=NEO4J, milvus_uri=MILVUS).embedded


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"neo4j_uri": NEO4J}, "ECPHORIA_MILVUS_URI"),
        ({"milvus_uri": MILVUS}, "ECPHORIA_NEO4J_URI"),
    ],
)
def test_one_store_alone_names_the_other(given, missing):
    with pytest.raises(ConfigurationInvalid, match=f"{missing} is not set"):
        load_settings(**given)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ECPHORIA_PORT", "eighty"),
        ("ECPHORIA_PORT", "65536"),
        ("ECPHORIA_STORE_TIMEOUT_S", "0"),
        ("ECPHORIA_RELEVANCE_GATE", "1.1"),
        ("ECPHORIA_RELEVANCE_GATE", "nan"),
        ("ECPHORIA_EMBEDDING_UNRELATED", "nan"),
        ("ECPHORIA_EMBEDDING_PROVIDER", "magic"),
        ("ECPHORIA_EMBEDDED_HEAP", "512"),
        ("ECPHORIA_COLLECTION_PREFIX", "Bad-Prefix"),
        ("ECPHORIA_MAX_BATCH", "0"),
        ("ECPHORIA_LOG_LEVEL", "loud"),
        ("ECPHORIA_LOG_JSON", "perhaps"),
        ("ECPHORIA_TIME_ZONE", "Beijing"),
        ("ECPHORIA_TIME_ZONE", "../UTC"),
        ("ECPHORIA_RANK__WORDS", "many"),
        ("ECPHORIA_RANK__WORDS", "inf"),
        ("ECPHORIA_RANK__HEAT", "nan"),
    ],
)
def test_a_bad_value_names_its_variable(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationInvalid) as caught:
        load_settings()
    assert variable in caught.value.message


def test_every_fault_is_named(monkeypatch):
    monkeypatch.setenv("ECPHORIA_PORT", "x")
    monkeypatch.setenv("ECPHORIA_MAX_BATCH", "x")
    with pytest.raises(ConfigurationInvalid, match=r"(?s)ECPHORIA_MAX_BATCH.*ECPHORIA_PORT"):
        load_settings()


def test_what_cannot_be_read_at_all_is_a_typed_error(monkeypatch, tmp_path):
    monkeypatch.setenv("ECPHORIA_RANK", "{not json")
    with pytest.raises(ConfigurationInvalid, match="rank"):
        load_settings()
    monkeypatch.delenv("ECPHORIA_RANK")
    (tmp_path / ".env").write_bytes(b"ECPHORIA_DOMAIN=\xff\xfe")
    with pytest.raises(ConfigurationInvalid, match=r"\.env"):
        load_settings()


def test_a_model_must_be_named_for_sentence_transformers():
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_EMBEDDING_MODEL"):
        load_settings(embedding_provider="sentence-transformers")


def test_arguments_win_over_the_environment_and_it_over_the_file(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("ECPHORIA_PORT=1\nECPHORIA_MAX_BATCH=1\nECPHORIA_HOST=h\n")
    monkeypatch.setenv("ECPHORIA_PORT", "2")
    monkeypatch.setenv("ECPHORIA_MAX_BATCH", "2")
    settings = load_settings(port=3, max_batch=None)
    assert (settings.port, settings.max_batch, settings.host) == (3, 2, "h")


def test_an_empty_variable_is_an_unset_one(monkeypatch):
    monkeypatch.setenv("ECPHORIA_NEO4J_URI", "")
    monkeypatch.setenv("ECPHORIA_MILVUS_URI", "")
    assert load_settings().embedded


def test_secrets_are_not_shown():
    settings = load_settings(neo4j_password="hunter2", milvus_token="root:hunter2")
    assert "hunter2" not in repr(settings)
    with pytest.raises(ConfigurationInvalid) as caught:
        load_settings(neo4j_password="hunter2", port="x")
    assert "hunter2" not in caught.value.message


def test_rank_weights_from_the_environment(monkeypatch):
    monkeypatch.setenv("ECPHORIA_RANK__HEAT", "0.7")
    assert load_settings().rank == RankWeights(heat=0.7)


def test_every_setting_says_what_it_is():
    undescribed = [name for name, item in Settings.model_fields.items() if not item.description]
    assert undescribed == []
