"""The check of a certificate. It imports nothing from the rest of the package.

``check.py`` asks whether the claims hold, ``problem.py`` evaluates the bounds, and ``overlap.py``
decides whether weights prove that nothing separates.
"""
