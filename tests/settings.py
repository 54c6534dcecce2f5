"""Settings of the tests: fixed keys, a data folder of their own, SQLite unless TEST_DATABASE_URL names another."""

import os
import sys
import tempfile

# The tests start hundreds of processes: what Python has compiled is kept for them, whatever the environment says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("SECRET_KEY", "tests-only-" + "x" * 50)
os.environ.setdefault("CRITERIA_KEYS", "dGVzdHMtb25seS1rZXktb2YtdGhpcnR5LXR3by1ieXQ=")
os.environ["EVALSITE_DATA"] = tempfile.mkdtemp(prefix="evalsite-tests-")
os.environ.setdefault("TESTS_SHARE", os.environ["EVALSITE_DATA"])  # of the process that starts the others
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL") or f"sqlite:///{os.environ['EVALSITE_DATA']}/tests.db"
os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("JUDGE_HOSTS", "127.0.0.1,localhost")
os.environ["SSL_REDIRECT"] = "false"
os.environ["ANONYMOUS_PER_MINUTE"] = "0"  # a test asks more in a minute than people do

from evalsite.settings import *  # noqa: E402, F403

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False  # the live server speaks HTTP
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
CACHES["boards"] = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}  # noqa: F405
STATICFILES_DIRS = [*STATICFILES_DIRS, BASE_DIR / "tests" / "vendor"]  # noqa: F405
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # In a file: an in-memory database is one connection, which threads and the live server cannot share.
    DATABASES["default"]["TEST"] = {"NAME": f"{os.environ['EVALSITE_DATA']}/tests.db"}  # noqa: F405
    DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"  # noqa: F405
elif os.environ.get("TEST_DATABASE_NAME"):
    DATABASES["default"]["TEST"] = {"NAME": os.environ["TEST_DATABASE_NAME"]}  # noqa: F405
