# evalsite for others, behind a proxy: compose.yaml starts it with all that it needs (docs/container.md).
FROM python:3.11-slim-trixie AS build
COPY requirements/base.txt requirements/postgres.txt requirements/s3.txt requirements/sso.txt requirements/sentry.txt \
    requirements/parquet.txt /tmp/requirements/
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --no-compile --disable-pip-version-check --require-hashes \
        --only-binary :all: -r /tmp/requirements/base.txt -r /tmp/requirements/postgres.txt \
        -r /tmp/requirements/s3.txt -r /tmp/requirements/sso.txt -r /tmp/requirements/sentry.txt \
        -r /tmp/requirements/parquet.txt

FROM python:3.11-slim-trixie
LABEL org.opencontainers.image.title="evalsite" org.opencontainers.image.licenses="MIT"
# pg_dump and pg_restore, for backups: as new as the database in compose.yaml.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends postgresql-client-17 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin evalsite \
    && install --directory --owner evalsite --group evalsite --mode 700 /data \
    && printf '#!/bin/sh\nexec python /app/manage.py "$@"\n' > /usr/local/bin/evalsite \
    && chmod 755 /usr/local/bin/evalsite
COPY --from=build /opt/venv /opt/venv
COPY . /app
ENV PATH=/opt/venv/bin:$PATH \
    EVALSITE_DATA=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /app
USER 10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
ENTRYPOINT ["evalsite"]
CMD ["serve", "--bind", "0.0.0.0:8000"]
