"""Where Newton's systems are solved: by features, by what is free, by products."""
