"""How dates are written, by language; see FORMAT_MODULE_PATH."""
