"""The picture of agreement, with few models and many."""

import numpy as np
import pytest

from kplus.plots import ComparisonDisplay
from kplus.validation.comparison import Candidate, Comparison


def made(*numbers, name="m"):
    rows = np.arange(120)
    candidates = [
        Candidate(f"{name} {i}", model=object(), groups=rows % K)
        for i, K in enumerate(numbers)
    ]
    return Comparison(tuple(candidates), len(rows), rows)


@pytest.mark.parametrize("numbers", [(2, 3), (2, 3, 4, 60), range(2, 22)])
def test_agreement_is_drawn(numbers):
    result = made(*numbers)
    display = ComparisonDisplay.from_comparison(result)
    display.figure_.canvas.draw()
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), result.agreement)
    written = len(numbers) <= 12
    assert len(display.ax_.texts) == written * len(numbers) ** 2
    assert display.ax_.get_yticklabels()[0].get_text() == "m 0 (2)"


def test_names_are_no_formulas():
    display = ComparisonDisplay.from_comparison(made(2, 3, name="$x_1"))
    display.figure_.canvas.draw()


def test_one_model_has_no_agreement():
    with pytest.raises(ValueError, match="needs two models or more"):
        ComparisonDisplay.from_comparison(made(2))
