"""Judges and the calls to the OpenAI-compatible endpoints behind them.

``judges`` registers them and checks hosts and keys · ``messages`` builds the request body · ``client`` sends it and is
the only code that talks to endpoints · ``answers`` classifies how a call ended · ``probing`` tests what an endpoint can
do.

Import ``client`` only where a call is made: with ``openai`` and ``aiohttp`` it takes 20 MB, which processes that only
serve pages should not load.
"""
