"""Statistics of boards: pure functions on arrays and data frames.

Nothing here knows Django. Random generators are passed in, results are frozen dataclasses that
carry n, interval and method, and what cannot be computed is None with a reason.
"""
