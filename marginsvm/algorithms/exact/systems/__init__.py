"""Where Newton's systems are solved: by features, by pairs of example and class, by products."""
