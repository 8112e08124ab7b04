"""The check of a certificate. It imports nothing from the rest of the package but what is shared.

``check.py`` asks whether the claims hold, ``problem.py`` poses the problem, and ``proof.py``
evaluates what a predictor and weights prove. Shared with fits are exact proofs
(``certify/exactly``), and what the words of certificates mean (``claims.py``, and ``host.py`` and
``unwrapping.py`` of estimators).
"""
