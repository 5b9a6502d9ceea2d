"""What every fitted estimator tells of its groups: `summary` and `describe`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from kplus.base.description import N_TOLD, Trait, as_frame, summary, traits_of
from kplus.base.notebook import html_of
from kplus.base.portrait import Belonging, Portrait, portray_fit
from kplus.core.types import Array

if TYPE_CHECKING:
    from kplus.base.estimator import Table

__all__ = ["Described", "DescribedFeatures"]


class Described:
    """Estimators whose groups have a portrait; subclasses say what belongs to each."""

    _group_noun: ClassVar[str] = "cluster"
    n_features_in_: int

    def _belonging(self, rows: Any, labels: Any = None) -> Belonging:
        """Which groups rows belong to, and how surely; `labels` if these are known."""
        raise NotImplementedError

    def _group_sizes(self, weights: Any) -> tuple[Any, float]:
        """Rows of each group, and all that there are; or their weights."""
        raise NotImplementedError

    @property
    def _n_groups(self) -> int:
        """How many groups were found."""
        raise NotImplementedError

    def _traits(self, portrait: Portrait, most: int | None = None) -> list[Trait]:
        """What sets each group apart, by their portrait; at `most` so many columns."""
        names = getattr(self, "feature_names_in_", None)
        coding = getattr(self, "_coding", None)
        return traits_of(portrait, names, coding, self._addends, most)

    def _told(self, most: int | None = None) -> list[Trait]:
        """The same of the fit."""
        return self._traits(self.portrait_, most)

    @property
    def _addends(self) -> Any:
        """What features add to the columns of a row; None: groups are clusters."""
        return None

    def _portray(self, table: "Table", weights: Any) -> None:
        self.portrait_ = portray_fit(self, table, weights)

    def _html_repr(self) -> str:  # which scikit-learn shows in notebooks
        return html_of(self)

    def describe(self) -> Any:
        """Return a frame that says what each group is like, column by column.

        A line for each group and each column that tells it from the whole table, the
        most telling ones first; a group without any has a line all the same. Columns
        are looked at in up to 10,000 rows of the fit, of a stream in those of its last
        batch: `kplus.describe` looks at as many rows as you give it.

        Returns
        -------
        description : DataFrame
            Columns "cluster" (or "component", for features), "size", "share",
            "feature", "score", "here" and "overall". The score is the divergence, in
            nats per row, of the column in the cluster from that in all rows; of
            features, what they add in standard deviations. pandas, or polars or Arrow
            where there is no pandas.
        """
        check_is_fitted(self)
        return as_frame(self, self._told())

    def summary(self) -> Any:
        """Return a frame with a line for each group: how large, how sure, what it is.

        Returns
        -------
        summary : DataFrame
            Columns "cluster" (or "component", for features); "size" in rows, or their
            weights; "share"; "sureness", from 0 to 1; "name", a short one such as
            "high income, low age", which need not be the only one of its kind;
            "set_apart", the columns that tell it most from all rows, in words. Rows in
            no cluster have a line with the number -1. pandas, or polars or Arrow where
            there is no pandas.

        Notes
        -----
        Sureness is the mean over the rows of a cluster of the probability that they
        belong there, in `DPMixture` and `CRAFT`; of 1 - a/b in `DPMeans`, with the
        distances a to their own centre and b to the next, which is the simplified
        silhouette; and for features by how much the squared error of the rows that
        have it would rise without it: 1 - with/without. It is measured in up to 10,000
        rows of the fit.
        """
        check_is_fitted(self)
        return summary(self, self.portrait_, self._told(N_TOLD))

    def report(
        self,
        path: Any,
        X: Any = None,
        *,
        stability: Any = None,
        row_names: Any = None,
        image_shape: tuple[int, int] | None = None,
        title: str | None = None,
    ) -> Any:
        """Write a report of the fit: one HTML page that needs nothing else.

        Parameters
        ----------
        path : str or path-like
            Name of the file; one that is there is replaced.
        X : array-like, sparse matrix, data frame or path, optional
            Rows to show, as `predict` or `transform` takes them: those of the fit, or
            new ones. Without them the page has what the model keeps.
        stability : Stability or int, optional
            What `kplus.stability` returned; or a number of fits to resamples of X,
            which are made now.
        row_names : sequence of str, optional
            What rows are called; by default the index of a pandas frame, or numbers.
        image_shape : (int, int), optional
            Rows and columns of pixels, where a row of X is a picture.
        title : str, optional

        Returns
        -------
        path : pathlib.Path
            The file written.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import kplus
        >>> X = kplus.datasets.load_wine().data
        >>> model = kplus.DPMixture(random_state=0).fit(X)
        >>> page = pathlib.Path(tempfile.mkdtemp()) / "wine.html"
        >>> model.report(page, X).name
        'wine.html'
        """
        check_is_fitted(self)
        # The page is made by a layer above this one.
        write = import_module("kplus.report").report
        return write(
            self,
            path,
            X,
            stability=stability,
            row_names=row_names,
            image_shape=image_shape,
            title=title,
        )


class DescribedFeatures(Described):
    """The same for features, which add to the columns of the rows that have them."""

    _group_noun = "component"
    n_components_: int
    components_: Array
    feature_counts_: Array

    @property
    def n_samples_seen_(self) -> float:
        """Rows, or their summed weights."""
        raise NotImplementedError

    @property
    def _n_groups(self) -> int:
        return self.n_components_

    @property
    def _addends(self) -> Array:
        return self.components_

    def _group_sizes(self, weights: Any) -> tuple[Array, float]:
        return self.feature_counts_, self.n_samples_seen_
