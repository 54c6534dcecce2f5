"""Pages of judging: runs, judges, judgments."""

PAGE = 30
HERE = {"section": "judging"}
