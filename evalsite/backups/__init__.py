"""Backups: a folder each, and what makes, checks and restores them.

DIR/2026-11-26T15-37-02Z/manifest.json   what the others are, written last: a folder without it is no backup
                         database        a whole SQLite database, or what pg_dump made
                         media/...       the pictures
                         local-keys.env  only where the installation keeps its keys in that file
"""
