"""Interior points: the method that always ends, where one side of a problem is small."""
