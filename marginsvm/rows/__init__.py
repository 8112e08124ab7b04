"""Labels become rows: the signed examples whose smallest margin the game maximises."""
