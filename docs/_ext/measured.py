"""Figures that pages quote from the results of the benchmarks: ``{{ name }}`` there."""

import json
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"

# Name of the figure: file, case, the row (a column and its value) and the column.
FIGURES = {
    "battery_mixture": ("real_data", "battery", ("set", "mean"), "DPMixture"),
    "battery_kmeans": ("real_data", "battery", ("set", "mean"), "KMeans told K"),
    "battery_gmm": ("real_data", "battery", ("set", "mean"), "GaussianMixture told K"),
    "battery_hdbscan": ("real_data", "battery", ("set", "mean"), "HDBSCAN"),
    "battery_cpu": ("real_data", "battery", ("set", "mean"), "CPU s"),
    "s4_mixture": ("real_data", "battery", ("set", "sipu/s4"), "DPMixture"),
    "s4_kmeans": ("real_data", "battery", ("set", "sipu/s4"), "KMeans told K"),
    "s4_gmm": ("real_data", "battery", ("set", "sipu/s4"), "GaussianMixture told K"),
    "choice_small": ("dp_means_default", "cost", ("table", "2,000 × 5"), "ratio"),
    "choice_large": ("dp_means_default", "cost", ("table", "200,000 × 20"), "ratio"),
    "digits_mixture": ("wide_tables", "seen", ("table", "digits"), "ARI"),
    "digits_umap": ("wide_tables", "seen", ("table", "digits"), "UMAP, HDBSCAN"),
    "mnist_mixture": ("wide_tables", "unseen", ("table", "MNIST, test"), "ARI"),
    "mnist_umap": ("wide_tables", "unseen", ("table", "MNIST, test"), "UMAP, HDBSCAN"),
    "mixed_mixture": ("real_data", "mixed", ("list", "others"), "DPMixture"),
    "mixed_told": ("real_data", "mixed", ("list", "others"), "DPMixture told K"),
    "mixed_prototypes": ("real_data", "mixed", ("list", "others"), "k-prototypes"),
    "mixed_stepmix": ("real_data", "mixed", ("list", "others"), "stepmix"),
    "mixed_kmeans": ("real_data", "mixed", ("list", "others"), "KMeans, one-hot"),
    "blobs_kplus": ("dp_means", "blobs", ("method", "kplus"), "CPU s, median"),
    "blobs_pdc": ("dp_means", "blobs", ("method", "pdc-dp-means"), "CPU s, median"),
    "edge_cpu": ("dp_mixture", "edge", ("fit", "100 batches"), "CPU s, median"),
    "ten_million": ("real_data", "large", ("rows", 10_000_000), "CPU s"),
    "ten_million_mb": ("real_data", "large", ("rows", 10_000_000), "MB, process"),
}


def figures():
    """Return each figure as a page writes it."""
    found = {}
    for name, (file, case, (column, value), wanted) in FIGURES.items():
        cases = json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))
        rows = [row for row in cases[case]["rows"] if row[column] == value]
        number = rows[-1][wanted]
        found[name] = f"{number:.{2 if number < 1 else 1 if number < 10 else 0}f}"
    return found
