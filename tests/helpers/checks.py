"""scikit-learn's checks: all of them of some instances, of others those that see what is theirs."""

import re
from importlib.util import find_spec

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

# Most checks are of the wrapper, which is one class. These see what an estimator has of its own:
# its parameters, its tags, its rounds on given, weighted and few examples, its state.
OF_ITS_OWN = re.compile(
    "check_(array_api|class_weight_class|(classifiers|regressors)_train$|estimator_sparse_tag|"
    "estimators_pickle|fit2d_1|fit_idempotent|no_attributes_set|non_transformer_estimators_n_iter|"
    "parameters_default_constructible|sample_weight_equivalence)"
)


def checks(complete, own=(), expected_failures=None):
    """A mark: all checks of the first instances, those of ``OF_ITS_OWN`` of the others."""
    mark = parametrize_with_checks(
        [*complete, *own], expected_failed_checks=expected_failures
    ).mark
    whole = {id(estimator) for estimator in complete}
    cases = []
    for case in mark.args[1]:
        estimator, check = getattr(case, "values", case)
        wanted = id(estimator) in whole or OF_ITS_OWN.match(check.func.__name__)
        # libraries whose arrays it makes
        named = [
            v
            for name, v in check.keywords.items()
            if "namespace" in name or "_ns_" in name
        ]
        if wanted and all(find_spec(getattr(v, "xp", v)) for v in named):
            cases.append(case)
    return pytest.mark.parametrize(mark.args[0], cases, **mark.kwargs)
