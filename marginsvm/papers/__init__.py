"""The papers' algorithms: one paper, one file."""
