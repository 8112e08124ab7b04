"""Where the examples are, and the passes over them."""
