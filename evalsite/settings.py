"""Settings, all from the environment. A fresh clone runs without any; production names its secrets.

LOCAL is an installation for this machine only: none of ALLOWED_HOSTS, DATABASE_URL and DEBUG is set. It listens to
localhost, keeps an SQLite database in the data folder and makes its own keys there.
"""

import os
import tomllib
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import environ
from corsheaders.defaults import default_headers
from django.contrib.messages import constants as messages
from django.core.exceptions import ImproperlyConfigured

from evalsite import keys, logs, object_storage

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
DATA = Path(env.str("EVALSITE_DATA", "") or BASE_DIR / "var").resolve()

DEBUG = keys.truth("DEBUG", False)
LOCAL = DEBUG or not any(os.environ.get(name) for name in ("ALLOWED_HOSTS", "DATABASE_URL", "DEBUG"))
SECRET_KEY, CRITERIA_KEYS = keys.load(data=DATA, local=LOCAL)

PORT = keys.number("PORT", 8000)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
keys.refuse_unsafe(debug=DEBUG, hosts=ALLOWED_HOSTS)
CSRF_TRUSTED_ORIGINS = keys.origins("CSRF_TRUSTED_ORIGINS")
ANONYMOUS_PER_MINUTE = keys.number("ANONYMOUS_PER_MINUTE", 120)  # computed pages and rows, by address; 0: any
JUDGE_HOSTS = env.list("JUDGE_HOSTS", default=["api.openai.com"])
WEBHOOK_HOSTS = env.list("WEBHOOK_HOSTS", default=[])
IMAGE_HOSTS = env.list("IMAGE_HOSTS", default=[])
JUDGE_KEYS = env.list("JUDGE_KEYS", default=["OPENAI_API_KEY", "JUDGE_*"])

INSTALLED_APPS = [
    "accounts",
    "bank",
    "judging",
    "annotations",
    "leaderboard",
    "evalsite",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
]

MIDDLEWARE = [
    "evalsite.middleware.numbered",
    "evalsite.metrics.timed",
    "evalsite.middleware.bare_head",
    "evalsite.middleware.unannounced_proxy",
    "django.middleware.security.SecurityMiddleware",
    "evalsite.middleware.compressed",
    "django.middleware.http.ConditionalGetMiddleware",
    "evalsite.middleware.headers",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "evalsite.middleware.known_methods",
    "evalsite.middleware.probes",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "evalsite.middleware.limit_anonymous",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.middleware.speak",
    "accounts.middleware.AccessMiddleware",
    "evalsite.middleware.guarded",
]

CSRF_FAILURE_VIEW = "evalsite.views.form_out_of_date"
# Pages elsewhere may call the API with a token; never with the cookies of somebody who has signed in here.
CORS_ALLOWED_ORIGINS = keys.origins("CORS_ORIGINS")
CORS_URLS_REGEX = r"^/api/(v1|schema)/"
CORS_ALLOW_HEADERS = (*default_headers, "upload-offset", "upload-sha256")
CORS_EXPOSE_HEADERS = ("content-disposition", "retry-after")
if CORS_ALLOWED_ORIGINS:
    INSTALLED_APPS.append("corsheaders")
    MIDDLEWARE.insert(MIDDLEWARE.index("evalsite.middleware.known_methods"), "corsheaders.middleware.CorsMiddleware")

ROOT_URLCONF = "evalsite.urls"
WSGI_APPLICATION = "evalsite.wsgi.application"
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "evalsite.templates.chrome",
            ],
            "builtins": ["evalsite.templatetags.site"],
        },
    }
]

DATABASES = {
    "default": keys.address(
        "DATABASE_URL",
        lambda: env.db_url("DATABASE_URL", default=f"sqlite:///{DATA / keys.DATABASE}"),
        like="postgres://name:password@host:5432/database",
    )
}
if not DATABASES["default"].get("ENGINE", "").endswith(("postgresql", "sqlite3")):
    raise ImproperlyConfigured("DATABASE_URL names neither postgres:// nor sqlite:/// in front of its address.")
if "postgresql" in DATABASES["default"]["ENGINE"] and find_spec("psycopg") is None:
    raise ImproperlyConfigured(f"DATABASE_URL names PostgreSQL, and psycopg is not here: {keys.DRIVER}")
if "postgresql" in DATABASES["default"]["ENGINE"]:
    INSTALLED_APPS.insert(0, "procrastinate.contrib.django")
    PROCRASTINATE_AUTODISCOVER_MODULE_NAME = ""  # accounts.jobs has them
DATABASES["default"]["CONN_MAX_AGE"] = None
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # IMMEDIATE: a transaction that reads, then writes, waits for its turn instead of failing at once.
    # FULL: what was acknowledged survives a power cut. The log that a large import left is cut back to 64 MB.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"
        " PRAGMA journal_size_limit=67108864;",
    }

CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
MEDIA_ROOT = DATA / "media"
CORRUPTED_FOLDER = DATA / "corrupted"  # a cache: it may be deleted
CORRUPTED_BYTES = keys.number("CORRUPTED_BYTES", 2_000_000_000)
FILE_UPLOAD_PERMISSIONS, FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o600, 0o700
MESSAGE_TAGS = {messages.WARNING: "warn", messages.ERROR: "bad"}  # the classes of a notice
STATIC_URL = "/static/"
STATIC_ROOT = DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
if S3_BUCKET := env.str("S3_BUCKET", ""):  # else all files lie in the data folder
    STORAGES |= object_storage.storages(
        bucket=S3_BUCKET,
        endpoint=env.str("S3_ENDPOINT", ""),
        region=env.str("S3_REGION", ""),
        access_key=env.str("S3_ACCESS_KEY", ""),
        secret_key=env.str("S3_SECRET_KEY", ""),
    )
WHITENOISE_MAX_AGE = 60

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "evalsite.formats"
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.str("TIME_ZONE", "UTC")  # in which times are shown; days of quotas and budgets end by UTC
keys.refuse_unknown("TIME_ZONE", TIME_ZONE, available_timezones(), words="Europe/Rome, for example")

LOGIN_URL = "accounts:sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
LANDING_OF_ANNOTATORS = "annotations:index"  # where signing in leads those who come to label
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]

SESSION_ENGINE = "accounts.sessions"

SECOND_FACTOR_FOR_STAFF = keys.truth("SECOND_FACTOR_FOR_STAFF", False)  # two-factor authentication

# Signing in at an OpenID provider; see accounts.sso. Without SSO_ISSUER nothing of allauth is loaded.
SSO_ISSUER = env.str("SSO_ISSUER", "")
SSO_NAME = env.str("SSO_NAME", "") or urlsplit(SSO_ISSUER).hostname or ""  # on the button
SSO_CLIENT_ID = env.str("SSO_CLIENT_ID", "")
SSO_CLIENT_SECRET = env.str("SSO_CLIENT_SECRET", "")
SSO_ROLE_CLAIM = env.str("SSO_ROLE_CLAIM", "")
SSO_ROLES = env.dict("SSO_ROLES", default={})  # by value of the claim; the first that somebody has
SSO_DEFAULT_ROLE = env.str("SSO_DEFAULT_ROLE", "")
SSO_PASSWORDS = keys.truth("SSO_PASSWORDS", True)  # whether who comes so may keep a password
if SSO_ISSUER:
    keys.refuse_sign_on(SSO_ISSUER, SSO_CLIENT_ID, SSO_ROLE_CLAIM, SSO_ROLES)
    INSTALLED_APPS += ["allauth.account", "allauth.socialaccount"]
    MIDDLEWARE.append("allauth.account.middleware.AccountMiddleware")
    # Nothing is stored in its tables, so none are made: the extra comes and goes without a migration.
    MIGRATION_MODULES = {"account": None, "socialaccount": None}
    SOCIALACCOUNT_ADAPTER = "accounts.sso.Hooks"

# Cookies and transport. A local installation speaks plain HTTP on localhost.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not LOCAL
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = keys.truth("SSL_REDIRECT", not LOCAL)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
# What proxies say of the client (its address, and whether it spoke HTTPS) is believed of so many, counted from us.
BEHIND_PROXY = keys.truth("BEHIND_PROXY", False)  # its name before there was a number; evalsite.checks says so
TRUSTED_PROXIES = keys.number("TRUSTED_PROXIES", int(BEHIND_PROXY))
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES > 0 else None
SECURE_HSTS_SECONDS = 0 if LOCAL else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not LOCAL
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],  # data: for the marks inside the style sheets
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
SILENCED_SYSTEM_CHECKS: list[str] = []

DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000
DATA_UPLOAD_MAX_NUMBER_FILES = 2_000

# Files on their way into the bank lie in private folders here until they are imported, cancelled or forgotten.
STAGED = DATA / "staged"
EXPORTS = DATA / "exports"
UPLOAD_LIMIT = keys.number("UPLOAD_LIMIT_MB", 2048) * 2**20
FILE_UPLOAD_HANDLERS = ["bank.intake.uploads.staging.SignedInUploadHandler"]

# Mail, for invitations: printed by the server unless EMAIL_URL names a mail server (smtp+tls://name:password@host:587).
vars().update(
    keys.address(
        "EMAIL_URL",
        lambda: env.email_url("EMAIL_URL", default="consolemail://"),
        like="smtp+tls://name:password@host:587",
    )
)
EMAIL_TIMEOUT = 10  # seconds: meanwhile the worker takes no new run
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", "evalsite@localhost")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.rules.Declared"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["bank.api.base.PlainJSON"],
    "DEFAULT_PAGINATION_CLASS": "bank.api.base.Pages",
    "DEFAULT_FILTER_BACKENDS": ["bank.api.base.AllowedFilters"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "bank.api.base.explain",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
TOKEN_MAX_DAYS = keys.number("TOKEN_MAX_DAYS", 365)  # after which a token for the API ends at the latest
KNOX_TOKEN_MODEL = "accounts.Token"  # noqa: S105 (the name of a model)
REST_KNOX = {
    "TOKEN_TTL": timedelta(days=TOKEN_MAX_DAYS),
    "TOKEN_PREFIX": "evalsite_",
    "AUTH_HEADER_PREFIX": "Token",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "evalsite",
    "DESCRIPTION": "Benchmarks, judgments, labels and leaderboards. Token: `Authorization: Token ...`.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "OAS_VERSION": "3.1.1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "evalsite.api_document.complete",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ChoiceEnum": "bank.models.verdict.Choice",
        "SideEnum": "annotations.ballots.pairs.LEFT_RIGHT",
        "RunKindEnum": "judging.models.runs.Run.Kind",
        "ItemKindEnum": "bank.models.items.Item.Kind",
        "SampleStatusEnum": "bank.models.catalogue.Sample.Status",
        "ResponseStatusEnum": "bank.models.responses.Response.Status",
        "VisibilityEnum": "bank.models.catalogue.Benchmark.Visibility",
    },
}


# For how many days `manage.py tidy` keeps notices that were read, and calls without a verdict of runs that have ended;
# 0: for ever.
KEEP_NOTICES_DAYS = keys.number("KEEP_NOTICES_DAYS", 180)
KEEP_CALLS_DAYS = keys.number("KEEP_CALLS_DAYS", 90)
BACKUP_FOLDER = env.str("BACKUP_FOLDER", "")  # a worker backs up to it each day; a folder, or s3://BUCKET/FOLDER
BACKUP_KEEP = keys.number("BACKUP_KEEP", 14)  # of those that stay
PICTURE_FONTS = env.list("PICTURE_FONTS", default=[])  # files of fonts, for letters that the shipped one lacks
METRICS_TOKEN = env.str("METRICS_TOKEN", "")  # opens /metrics
LOG_FORMAT = env.str("LOG_FORMAT", "text")  # or json
LOG_LEVEL = env.str("LOG_LEVEL", "INFO").upper()  # of our own lines; those of libraries begin at WARNING
keys.refuse_unknown("LOG_FORMAT", LOG_FORMAT, ("text", "json"))
keys.refuse_unknown("LOG_LEVEL", LOG_LEVEL, ("DEBUG", "INFO", "WARNING", "ERROR"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "briefly": {"()": "django.utils.log.CallbackFilter", "callback": logs.briefly},
        "complete": {"()": "django.utils.log.CallbackFilter", "callback": logs.complete},
    },
    "formatters": {
        "text": {"format": "%(at)s [%(level)-9s] %(message)-30s [%(name)s]%(ids)s"},
        "json": {"()": "evalsite.logs.JSONFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["complete"]}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "django.security.DisallowedHost": {"filters": ["briefly"]},
        "django.request": {"filters": ["briefly"]},
        "psycopg.pool": {"level": "ERROR"},  # that the database is away, the worker says itself
        **{
            name: {"level": LOG_LEVEL}
            for name in ("accounts", "bank", "judging", "annotations", "leaderboard", "evalsite")
        },
    },
}

if SENTRY_DSN := env.str("SENTRY_DSN", ""):
    if find_spec("sentry_sdk") is None:
        raise ImproperlyConfigured(
            "SENTRY_DSN is set, and sentry-sdk is not here: `make setup EXTRAS=sentry` in a clone, or the wheel "
            "with [sentry]."
        )
    import sentry_sdk
    from sentry_sdk.integrations.argv import ArgvIntegration
    from sentry_sdk.utils import BadDsn

    # Faults alone, without what may be hidden: no variables, no bodies, nobody's address, no arguments of commands.
    # Calls of judges carry nothing of Sentry's.
    try:
        sentry_sdk.init(
            SENTRY_DSN,
            include_local_variables=False,
            max_request_body_size="never",
            send_default_pii=False,
            max_breadcrumbs=0,
            disabled_integrations=[ArgvIntegration],
            trace_propagation_targets=[],
        )
    except BadDsn as error:
        raise ImproperlyConfigured(f"SENTRY_DSN is no address of Sentry's ({error}).") from None
