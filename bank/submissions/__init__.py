"""Submissions: a model's responses that a researcher sends in as one file, checked, counted and scored at once.

``check`` reads the file against the benchmark, ``quota`` counts, ``scoring`` holds the responses against the keys,
``told`` says which of the numbers may be told, ``halves`` which half of a hidden split a sample is in, and ``actions``
are the writes.
"""
