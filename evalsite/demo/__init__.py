"""The demo data of a fresh local installation."""
