"""Files that staff drop into the browser, on their way into the bank.

receiving -> received -> checking -> checked -> importing -> done, or failed, or cancelled at any time.

An upload's files are in a private folder (``staging``), next to what the database cannot say while it is being written:
a lock held by the process that works on the upload, so that a killed worker's upload is free at once; the progress; and
the request to cancel. ``actions`` writes, ``worker`` is the worker's part, ``preview`` prepares what the pages show.
"""
