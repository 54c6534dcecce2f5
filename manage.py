#!/usr/bin/env python
"""Command line of evalsite."""

import gc
import os
import sys

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 (whoever runs it may have another)
        sys.exit("evalsite needs Python 3.11 or newer; this is {}.{}.".format(*sys.version_info[:2]))
    gc.set_threshold(50_000, 20, 20)  # what a start makes stays: looking through it took a fifth of each command
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    os.umask(0o077)  # what evalsite writes is for nobody else on this machine
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Django is not installed here. Run `make setup`, then `.venv/bin/python manage.py ...`.")
    # Django takes every --settings for the name of its settings module; in these it means the run's settings.
    if sys.argv[1:2] in (["judge"], ["collect"], ["attack_judge"]):
        own, theirs = "--settings", "--protocol-settings"
        options = [(word, word == own or word.startswith(f"{own}=")) for word in sys.argv[2:]]
        sys.argv[2:] = [theirs + word.removeprefix(own) if meant else word for word, meant in options]
    try:
        try:
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has seen enough, as `head -1` has: the end of any other program
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        from django.apps import apps
        from django.core.exceptions import ImproperlyConfigured

        if isinstance(error, ImproperlyConfigured):
            sys.exit(str(error))
        if not apps.ready:
            raise
        from bank.errors import outage
        from evalsite import doctor

        if words := outage(error):
            sys.exit(f"Error: {words} Try again when that is over.")
        by_database = "DatabaseError" in {
            kind.__name__ for kind in type(error).__mro__
        }  # Django's, or the driver's own
        if by_database and sys.argv[1:2] != ["migrate"] and (found := doctor.safely(doctor.migrations)).is_fault:
            sys.exit(f"Error: {doctor.of_another_version(found.words)}")
        raise
