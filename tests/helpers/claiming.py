"""False claims of certificates, and of the attributes that the check reads beside them.

What reads the certificate is listed here once more, by the manual (``docs/certificate.rst``).
"""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from marginsvm import check_certificate

OF_MARGINS = ("margin_", "margin_bound_", "gap_", "separable_", "status_")
OF_NORMS = ("norm_", "norm_bound_", "gap_", "violation_", "feasible_", "status_")

# What the bounds of a certificate are called in its readings.
_BOUNDS = {
    "margin": {"margin": "lower", "margin_bound": "upper"},
    "norm": {"norm": "upper", "norm_bound": "lower"},
}
_ABSENT = object()
_WORDS = [
    None,
    True,
    False,
    np.True_,
    1,
    "certified",
    "no_margin",
    "infeasible",
    "unknown",
]
_NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 100.0, 1e-300]


def attributes(estimator):
    """Names of the attributes that the check reads beside the certificate."""
    return [name for name in ("nu_", "C_") if hasattr(estimator, name)]


def changed(certificate, **changes):
    """The certificate with other bounds, by their names in its reading, or other fields."""
    names = {**_BOUNDS[certificate.reading], "separable": "feasible"}
    return replace(
        certificate, **{names.get(name, name): x for name, x in changes.items()}
    )


def claim(estimator, certificate=None, **changes):
    """Publish a certificate, or the own one with changes."""
    estimator.certificate_ = changed(certificate or estimator.certificate_, **changes)


def refused(estimator, words, *data, exact=False, **changes):
    """Assert that the check refuses a copy with other claims, and says why in these words."""
    false = copy(estimator)
    claim(false, **changes)
    check = check_certificate(false, *data, exact=exact)
    assert not check
    assert words in check.reason


def other_values(value):
    """What else may stand in an attribute; of numbers, also numbers near to it."""
    others = [
        _ABSENT,
        [value],
        np.array(value),
        np.array([value]),
        str(value),
        *_WORDS,
        *_NUMBERS,
    ]
    if isinstance(value, float):
        others += [
            value * (1 + 1e-9),
            value * (1 - 1e-9),
            value + 1e-300,
            np.float32(value),
        ]
    same = (type(other) is type(value) and other == value for other in others)
    return [other for other, is_same in zip(others, same, strict=True) if not is_same]


def is_found(estimator, *data, holder=None, rng=None, **options):
    """Whether each other value, or one that is drawn, is refused and named.

    The estimator may be held by another one; afterwards its attributes are as they were.
    """
    holder = holder or estimator
    check = check_certificate(holder, *data, **options)
    assert check, check.reason
    for name in OF_NORMS if hasattr(estimator, "norm_") else OF_MARGINS:
        with pytest.raises(AttributeError):  # they read the certificate
            setattr(estimator, name, getattr(estimator, name))
    for name in attributes(estimator):
        honest = getattr(estimator, name)
        others = other_values(honest)
        for other in others if rng is None else [others[rng.integers(len(others))]]:
            if other is _ABSENT:
                delattr(estimator, name)
            else:
                setattr(estimator, name, other)
            check = check_certificate(holder, *data, **options)
            assert not check, f"{name} = {other!r} is confirmed"
            assert name in check.reason, f"{name} = {other!r}: {check.reason}"
            setattr(estimator, name, honest)
    return bool(check_certificate(holder, *data, **options))
