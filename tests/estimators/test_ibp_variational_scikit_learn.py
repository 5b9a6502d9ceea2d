"""IBPVariational as scikit-learn expects transformers to be."""

import re

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from kplus import IBPVariational
from kplus.datasets import make_binary_features

MODELS = [
    IBPVariational(tol=1e-5),
    IBPVariational(5, process="infinite", tol=1e-5),
    IBPVariational(3, init="random", n_init=2, max_iter=30, random_state=0),
    IBPVariational(2, alpha=1.0, noise_scale=1.0, factor_scale=1.0),
]
pytestmark = pytest.mark.filterwarnings("ignore:IBPVariational found no feature")
processes = pytest.mark.parametrize("process", ["finite", "infinite"])


@parametrize_with_checks(MODELS)
@pytest.mark.filterwarnings("ignore:IBPVariational did not come to rest")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.filterwarnings("ignore:IBPVariational did not come to rest")
@pytest.mark.parametrize(
    "check",
    [
        checks.check_dataframe_column_names_consistency,
        checks.check_set_output_transform,
        checks.check_set_output_transform_pandas,
        checks.check_transformer_get_feature_names_out,
        checks.check_param_validation,
        checks.check_n_features_in_after_fitting,
    ],
    ids=lambda check: check.__name__,
)
def test_checks_outside_the_list(model, check):
    check(type(model).__name__, clone(model))


def test_tags_and_constraints():
    tags = get_tags(IBPVariational())
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse
    assert not tags.input_tags.positive_only
    params = IBPVariational().get_params()
    assert set(IBPVariational._parameter_constraints) == set(params)


# ------------------------------------------------------------- watching a fit


@pytest.fixture(scope="module")
def table():
    X, Z, A = make_binary_features(400, 30, 5, random_state=0)
    X.flags.writeable = False
    return X, Z, A


class Recorder:
    """A scikit-learn callback that notes passes and may stop the fit."""

    def __init__(self, stop_after=None):
        self.stop_after, self.passes, self.scores = stop_after, 0, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name != "pass":
            return False
        self.passes += 1
        self.scores.append(fitted_estimator.score(X))
        return self.passes == self.stop_after


@processes
def test_callbacks_see_every_pass(process, table):
    recorder = Recorder()
    model = IBPVariational(6, process=process, random_state=0)
    fitted = clone(model).set_callbacks(recorder).fit(table[0])
    assert recorder.passes == fitted.n_iter_
    assert recorder.scores[-1] == pytest.approx(fitted.score(table[0]), rel=1e-3)
    assert clone(model).fit(table[0]).lower_bound_ == fitted.lower_bound_
    stopper = Recorder(stop_after=1)
    assert clone(model).set_callbacks(stopper).fit(table[0]).n_iter_ == 1


def test_verbose_prints_a_line_a_pass(table, capsys):
    model = IBPVariational(6, random_state=0, verbose=1).fit(table[0])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    for i, line in enumerate(lines, start=1):
        assert re.match(rf"\[IBPVariational\] pass {i}: .* lower bound \S+", line)
    assert float(lines[-1].rsplit(" ", 1)[1]) == pytest.approx(
        model.lower_bound_, rel=1e-4
    )
