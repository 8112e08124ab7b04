"""What the tests share, and the programs that some of them run."""
