"""One paper, one file."""
