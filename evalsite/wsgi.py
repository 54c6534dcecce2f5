"""Entry point of the web server."""

import gc
import os

from django.core.wsgi import get_wsgi_application

from evalsite.turns import InTurns

AT_ONCE = 4  # requests that a process computes at once; gunicorn's threads only receive and send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
os.umask(0o077)
application = InTurns(get_wsgi_application(), at_once=AT_ONCE)

# What start-up made lives as long as the process: without this the collector looks through all of it again and again,
# an eighth of the CPU of a request.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
