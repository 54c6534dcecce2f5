"""Judgments that are stored: who may read what of them, and how they are listed, imported and exported.

``analyses`` redacts what judges wrote · ``releases`` opens it to researchers, by two people · ``filters`` and
``browse`` make the list of judgments · ``imports`` and ``exports`` are for files.
"""
