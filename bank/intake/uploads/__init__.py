"""Files that staff drop into the browser, on their way into the bank.

receiving -> received -> checking -> checked -> importing -> done, or failed, or cancelled at any time.

An upload's files are in a private folder (``staging``); all else is in its row, also while it is being worked on: how
far that is, and that somebody asked to end it. ``actions`` writes, ``worker`` is the job, ``preview`` prepares what the
pages show.
"""
