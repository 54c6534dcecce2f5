"""Files that staff drop into the browser, on their way into the bank.

receiving -> received -> checking -> checked -> importing -> done, or failed, or cancelled at any time.

An upload's files lie in a private folder (``staging``) with what the database cannot tell while it is being written:
a lock that is held by whoever works the upload, so that a killed worker's upload is free at once; the progress; and the
wish to cancel. ``actions`` writes, ``work`` is what the worker does, ``queries`` reads for the pages.
"""
