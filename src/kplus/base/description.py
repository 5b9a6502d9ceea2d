"""What is said of groups: what sets each one apart, as frames and in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kplus.base.portrait import Portrait, portray
from kplus.core.types import Array
from kplus.data.frames import frame_of

__all__ = [
    "N_TOLD",
    "Addend",
    "Categories",
    "Number",
    "Trait",
    "as_frame",
    "describe",
    "name_of_group",
    "say_number",
    "summary",
    "summary_columns",
    "trait_of",
    "traits_of",
]

N_TOLD = 3
"""Columns that a summary tells of a group."""

_N_LEADING = 3  # categories that are named
_N_IN_NAME = 2  # columns in the name of a group
_LEAST = 0.02  # nats per row: what says less is chance, or nothing to tell
_APART = 0.3  # standard deviations from which a mean is called high or low
_MOST_DECIMALS = 6
_LONGEST = 1e15  # from which numbers are written with an exponent
_FLOOR = 1e-6  # of the variance of a column: a group where it is constant


@dataclass(frozen=True)
class Trait:
    """One column of one group; a group without any has one without a name.

    `score` says how much the column tells the rows of the group from all rows. `words`
    is what a summary says, `short` what is in a name, and `numbers` the same for
    programs.
    """

    group: int
    size: float
    share: float
    feature: str | None
    score: float
    here: str
    overall: str
    words: str = ""
    short: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)


def describe(model: Any, X: Any) -> Any:
    """Say what the groups of a fitted model are like in the rows of X, all of them.

    The same as ``model.describe()``, which knows some thousand rows of the fit, for
    rows of your own: those of the fit, if all shall count, or new ones. They are read
    block by block.

    Parameters
    ----------
    model : fitted estimator
    X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
        Rows as the model takes them.

    Returns
    -------
    description : DataFrame
        As ``model.describe()`` returns it.

    Examples
    --------
    >>> import pandas as pd
    >>> import kplus
    >>> frame = pd.DataFrame({"age": [21, 22, 23, 61, 62, 63] * 20})
    >>> frame["pet"] = (["cat"] * 3 + ["dog"] * 3) * 20
    >>> model = kplus.DPMixture(random_state=0).fit(frame)
    >>> told = kplus.describe(model, frame[:90])
    >>> told[["cluster", "size", "feature", "here", "overall"]]
       cluster  size feature      here           overall
    0        0  45.0     age    22 ± 1           42 ± 20
    1        0  45.0     pet  cat 100%  cat 50%, dog 50%
    2        1  45.0     age    62 ± 1           42 ± 20
    3        1  45.0     pet  dog 100%  cat 50%, dog 50%
    """
    if not hasattr(model, "describe") or not hasattr(model, "_belonging"):
        raise TypeError(f"model must be a fitted estimator of kplus, not {model!r}.")
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"This {type(model).__name__} is not fitted yet; call fit.")
    return as_frame(model, model._traits(portray(model, X)))


def as_frame(model: Any, traits: Sequence[Trait]) -> Any:
    """A line for each trait, in a frame of whichever library is there."""
    names = ("size", "share", "feature", "score", "here", "overall")
    columns = {model._group_noun: [trait.group for trait in traits]}
    columns |= {name: [getattr(trait, name) for trait in traits] for name in names}
    return frame_of(columns, "describe()")


def summary(model: Any, portrait: Portrait, traits: Sequence[Trait]) -> Any:
    """A line for each group, and one for the rows in none."""
    return frame_of(summary_columns(model, portrait, traits), "summary()")


def summary_columns(
    model: Any, portrait: Portrait, traits: Sequence[Trait]
) -> dict[str, list[Any]]:
    """The same by column."""
    told: list[list[Trait]] = [[] for _ in range(portrait.K)]
    for trait in traits:
        told[trait.group].append(trait)
    sizes = list(map(float, portrait.sizes))
    groups, sureness = list(range(portrait.K)), list(map(float, portrait.sureness))
    apart = [
        "; ".join(one.words for one in some[:N_TOLD] if one.words) for some in told
    ]
    names = [name_of_group(some) for some in told]
    outside = portrait.n_rows - sum(sizes)
    if model._group_noun == "cluster" and outside > 1e-9 * portrait.n_rows:
        groups, sizes = [*groups, -1], [*sizes, outside]
        sureness, names = [*sureness, math.nan], [*names, "noise"]
        apart = [*apart, "rows that belong nowhere"]
    return {
        model._group_noun: groups,
        "size": sizes,
        "share": [size / portrait.n_rows for size in sizes],
        "sureness": sureness,
        "name": names,
        "set_apart": apart,
    }


def name_of_group(traits: Sequence[Trait]) -> str:
    """As in "high flavanoids, low hue", by the traits of a group."""
    return ", ".join(trait.short for trait in traits[:_N_IN_NAME] if trait.short)


# -------------------------------------------------------------------------- traits


def traits_of(
    portrait: Portrait,
    names: Any,
    coding: Any,
    components: Any = None,
    most: int | None = None,
) -> list[Trait]:
    """The columns of each group by what they tell of it, most first; at `most` so many.

    The score is the divergence, in nats per row, of the column in the group from that
    in the whole table: of normal distributions for numbers, of shares for categories.
    With `components`, groups are features, and it is what they add to a row, in
    standard deviations of the column.
    """
    columns = _columns(portrait, coding, components)
    out = []
    for k, size in enumerate(map(float, portrait.sizes)):
        share = size / portrait.n_rows if portrait.n_rows > 0.0 else 0.0
        scores = {j: float(column.scores[k]) for j, column in columns.items()}
        told = [
            j for j in sorted(scores, key=lambda j: -scores[j]) if scores[j] >= _LEAST
        ]
        out += [
            trait_of(k, size, share, j, names, scores[j], columns[j])
            for j in told[:most]
        ] or [Trait(k, size, share, None, 0.0, "", "")]
    return out


def trait_of(
    k: int,
    size: float,
    share: float,
    j: int,
    names: Any,
    score: float,
    column: "Number | Addend | Categories",
) -> Trait:
    """What column j says of group k; names of None: columns have numbers."""
    called = f"column {j}" if names is None else str(names[j])
    return Trait(
        group=k,
        size=size,
        share=share,
        feature=str(j) if names is None else called,
        score=score,
        here=column.say(k),
        overall=column.say(-1),
        words=f"{called} {column.words(k)}",
        short=column.short(k, called),
        numbers=column.numbers(k),
    )


def _columns(
    portrait: Portrait, coding: Any, components: Any
) -> "dict[int, Number | Addend | Categories]":
    """What is known of each column, in the order of the table."""
    out: dict[int, Number | Addend | Categories] = {}
    for p, j in enumerate(portrait.numbers.tolist()):
        mean, deviation = portrait.means[:, p], portrait.deviations[:, p]
        if components is None:
            out[j] = Number(portrait.seen[:, p], mean, deviation)
        else:
            out[j] = Addend(components[:, j], mean[-1], deviation[-1])
    for j, shares in zip(portrait.coded, portrait.shares, strict=True):
        out[j] = Categories(coding.categories[j], shares)
    return dict(sorted(out.items()))


@dataclass(frozen=True)
class Number:
    """A column of numbers: mean and deviation in each group, and in all rows."""

    seen: Array
    mean: Array
    deviation: Array

    @cached_property
    def _apart(self) -> Array:
        """Means of groups, in standard deviations of all rows."""
        scale = self.deviation[-1]
        out: Array = (self.mean[:-1] - self.mean[-1]) / (scale if scale > 0.0 else 1.0)
        return out

    @cached_property
    def scores(self) -> Array:
        if not self.deviation[-1] > 0.0:
            return np.zeros(len(self.seen) - 1)
        ratio = np.square(self.deviation[:-1] / self.deviation[-1])
        ratio = np.maximum(ratio, _FLOOR)
        scores = 0.5 * (ratio - 1.0 - np.log(ratio) + np.square(self._apart))
        # One row has no spread, which says nothing.
        scores = np.where(self.seen[:-1] > 1.0, scores, 0.5 * np.square(self._apart))
        return np.where(self.seen[:-1] > 0.0, scores, 0.0)

    def say(self, k: int) -> str:
        """As in "12.30 ± 0.45"; -1 for all rows."""
        if not self.seen[k] > 0.0:
            return "missing"
        scale = self.deviation[-1]
        mean, deviation = self.mean[k], self.deviation[k]
        return f"{say_number(mean, scale)} ± {say_number(deviation, scale)}"

    def words(self, k: int) -> str:
        kind = self._kind(k)
        if kind in ("high", "low"):
            scale = self.deviation[-1]
            here, overall = (say_number(self.mean[i], scale) for i in (k, -1))
        else:
            here, overall = self.say(k), self.say(-1)
        return f"{kind} ({here}, overall {overall})".lstrip()

    def short(self, k: int, called: str) -> str:
        return f"{self._kind(k)} {called}".lstrip()

    def numbers(self, k: int) -> dict[str, Any]:
        return {"mean": self.mean[k], "deviation": self._apart[k]}

    def _kind(self, k: int) -> str:
        if not self.seen[k] > 0.0:
            return ""
        if abs(self._apart[k]) >= _APART:
            return "high" if self._apart[k] > 0.0 else "low"
        return "narrow" if self.deviation[k] < self.deviation[-1] else "wide"


@dataclass(frozen=True)
class Addend:
    """What features add to a column of numbers."""

    added: Array
    mean: float
    deviation: float

    @cached_property
    def scores(self) -> Array:
        scale = self.deviation if self.deviation > 0.0 else 1.0
        return np.abs(self.added) / scale

    def say(self, k: int) -> str:
        if k < 0:
            scale = self.deviation
            return f"{say_number(self.mean, scale)} ± {say_number(scale, scale)}"
        return say_number(self.added[k], self.deviation, "+")

    def words(self, k: int) -> str:
        return self.say(k)

    def short(self, k: int, called: str) -> str:
        return f"{'more' if self.added[k] > 0.0 else 'less'} {called}"

    def numbers(self, k: int) -> dict[str, Any]:
        return {"value": self.added[k]}


@dataclass(frozen=True)
class Categories:
    """A column of categories: their shares in each group, and in all rows."""

    categories: Sequence[Any]
    shares: Array

    @cached_property
    def _terms(self) -> Array:
        """p log p/q of each category."""
        p, q = self.shares[:-1], self.shares[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms: Array = np.where(p > 0.0, p * np.log(p / q), 0.0)
        return terms

    @cached_property
    def scores(self) -> Array:
        return self._terms.sum(axis=1)

    def say(self, k: int) -> str:
        """As in "red 61%, blue 20%"; -1 for all rows."""
        shares = self.shares[k]
        if not np.nansum(shares) > 0.0:
            return "missing"
        first = np.argsort(-shares, kind="stable")[:_N_LEADING]
        return ", ".join(
            f"{self.categories[t]} {shares[t]:.0%}" for t in first if shares[t] > 0.0
        )

    def words(self, k: int) -> str:
        c = self._telling(k)
        here, overall = self.shares[k, c], self.shares[-1, c]
        if not np.isfinite(here):
            return self.say(k)
        return f"{self.categories[c]} {here:.0%} (overall {overall:.0%})"

    def short(self, k: int, called: str) -> str:
        c = self._telling(k)
        if not np.isfinite(self.shares[k, c]):
            return ""
        seldom = "seldom " * bool(self._terms[k, c] < 0.0)
        return f"{called} {seldom}{self.categories[c]}"

    def numbers(self, k: int) -> dict[str, Any]:
        c = self._telling(k)
        return {"category": str(self.categories[c]), "share": self.shares[k, c]}

    def _telling(self, k: int) -> int:
        """The category that says most of the group."""
        return int(np.argmax(np.abs(np.nan_to_num(self._terms[k]))))


def say_number(value: float, scale: float, sign: str = "") -> str:
    """A number as people write it: so many decimals as matter beside a `scale`.

    Examples
    --------
    >>> say_number(1115.7, 315.0), say_number(12.30433, 0.81)
    ('1,116', '12.30')
    >>> say_number(1.7e-9, 1e-9), say_number(1.7e-14, 1e-9)
    ('1.7e-09', '0')
    """
    if not math.isfinite(value):
        return "missing"
    reference = scale if scale > 0.0 else abs(value)
    decimals = 1 - math.floor(math.log10(reference)) if reference > 0.0 else 0
    rounded = round(value, max(0, decimals)) + 0.0  # no minus before a zero
    if decimals > _MOST_DECIMALS or abs(value) >= _LONGEST:
        return f"{rounded:{sign}.3g}"
    if scale == 0.0 and float(value).is_integer():
        decimals = 0
    return f"{rounded:{sign},.{max(0, decimals)}f}"
