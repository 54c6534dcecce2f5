"""What the pages show: boards and votes as figures, marks and links, ready for a template."""
