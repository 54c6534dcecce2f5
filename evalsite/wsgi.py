"""Entry point of the web server."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
application = get_wsgi_application()

# What start-up made lives as long as the process: without this the collector looks through all of it again and again,
# an eighth of the CPU of a request.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
