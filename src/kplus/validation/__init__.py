"""How sure an answer is: whether it comes back on other rows, and how good it is.

- `matching`: groups of two fits side by side, by Jaccard's index.
- `resampling`: fits to resamples, side by side.
- `stability`: `kplus.stability` and what it returns.
- `space`: tables as distances need them; numbers, categories and gaps.
- `indices`: silhouette, Davies-Bouldin, Calinski-Harabasz, block by block.
- `density`: density-based validity (DBCV) of a sample.
- `mixtures`: how sure a model is of its own rows; log scores held out.
- `validate`: `kplus.validate` and what it returns.
- `compare`, `comparison`: `kplus.compare`, several models side by side.

Everything here uses estimators by their public methods.
"""
