"""What is kept until something changes: the numbers that change (``counters``), what was computed at such a number
(``values``), and pages over many verdicts as jobs drew them (``pages``).
"""
