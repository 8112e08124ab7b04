"""Loops that are compiled when they are first used."""
