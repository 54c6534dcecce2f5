"""Campaigns: made and set up, who belongs to them, and which items they take."""
