"""The check of a certificate: it imports nothing from the rest of the package."""
