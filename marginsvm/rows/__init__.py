"""Labels as rows: the signed examples whose smallest margin is maximised."""
