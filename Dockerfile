FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/ecphoria
ENV PATH=/opt/ecphoria/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY graph_schema graph_schema
COPY engine engine
COPY graphql graphql
# torch comes with CUDA; PIP_EXTRA_INDEX_URL may name an index with smaller builds of it
ARG PIP_EXTRA_INDEX_URL
RUN pip install -c constraints.txt '.[sentence-transformers,redis]'

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --create-home --home-dir /home/ecphoria ecphoria \
 && install -d -o ecphoria -g ecphoria -m 0700 /data
COPY --from=build /opt/ecphoria /opt/ecphoria
ENV PATH=/opt/ecphoria/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HF_HOME=/data/models \
    ECPHORIA_DATA_DIR=/data \
    ECPHORIA_HOST=0.0.0.0 \
    ECPHORIA_LOG_JSON=true \
    ECPHORIA_EMBEDDING_PROVIDER=sentence-transformers \
    ECPHORIA_EMBEDDING_MODEL=BAAI/bge-m3
USER ecphoria
WORKDIR /home/ecphoria
VOLUME /data
EXPOSE 8000
# the first start fetches the model (2 GB) before it answers
HEALTHCHECK --interval=15s --timeout=5s --start-period=15m --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["ecphoria"]
CMD ["serve"]
