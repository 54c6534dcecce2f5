"""How data come and go: formats, imports, uploads, exports."""
