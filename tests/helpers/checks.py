"""scikit-learn's checks: all of them of some instances, of others those that see what is theirs."""

from importlib.util import find_spec

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

# Most checks are of the wrapper, which is one class. These see what an estimator has of its own:
# its parameters, its tags, its rounds on given, weighted and few examples, its state.
OF_ITS_OWN = {
    "check_array_api_input",
    "check_array_api_mixed_inputs",
    "check_array_api_same_namespace",
    "check_class_weight_classifiers",
    "check_classifiers_train",
    "check_estimator_sparse_tag",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_no_attributes_set_in_init",
    "check_non_transformer_estimators_n_iter",
    "check_parameters_default_constructible",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def checks(complete, own=(), expected_failures=None):
    """A mark: all checks of the first instances, those of ``OF_ITS_OWN`` of the others."""
    mark = parametrize_with_checks([*complete, *own], expected_failed_checks=expected_failures).mark
    whole = {id(estimator) for estimator in complete}
    cases = []
    for case in mark.args[1]:
        estimator, check = getattr(case, "values", case)
        wanted = id(estimator) in whole or check.func.__name__ in OF_ITS_OWN
        # libraries whose arrays it makes
        named = [v for name, v in check.keywords.items() if "namespace" in name or "_ns_" in name]
        if wanted and all(find_spec(getattr(v, "xp", v)) for v in named):
            cases.append(case)
    return pytest.mark.parametrize(mark.args[0], cases, **mark.kwargs)
