"""Judges, and the calls to the OpenAI-compatible endpoints behind them.

``judges`` who may be called, and whether they can be · ``messages`` what is sent · ``client`` the sending, the only
code that speaks to an endpoint · ``answers`` every way in which a call ends · ``probing`` what an endpoint can do.

``client`` is imported where a call is made: with ``openai`` and ``aiohttp`` it weighs 20 MB, which processes that only
show pages do without.
"""
