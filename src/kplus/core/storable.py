"""The classes that a file may hold, by their names in files, and where each one lives.

A file names a class by a key of these tables, and nothing else is ever imported. So a
class may move to another module: only its line changes. The last part of a key is the
name of the class; the part before it tells namesakes apart.
"""

from collections import ChainMap
from collections.abc import Mapping
from importlib import import_module

__all__ = [
    "ESTIMATORS",
    "RECORDS",
    "RECORDS_AND_STATES",
    "STATES",
    "find_class",
    "name_of",
]

ESTIMATORS = {
    "BPMeans": "kplus.features.bp_means",
    "CRAFT": "kplus.craft.estimator",
    "DPMeans": "kplus.dp_means.estimator",
    "DPMixture": "kplus.dp_mixture.estimator",
    "IBPGibbs": "kplus.ibp.gibbs.estimator",
    "IBPVariational": "kplus.ibp.variational",
    "KFeatures": "kplus.features.k_features",
    "MEIBP": "kplus.ibp.meibp",
}

# Dataclasses of plain values that fitted attributes may hold. A file of a stranger may
# give them one array any number of times: constructors that copy do not belong here.
RECORDS = {
    "PenaltyPath": "kplus.dp_means.penalty_path",
    "FitReport": "kplus.base.progress",
    "Portrait": "kplus.base.portrait",
    "ClusterTree": "kplus.tree.cluster_tree",
    "Coding": "kplus.data.categories",
    "DateFormat": "kplus.data.dates",
    "DateNumbers": "kplus.data.dates",
    "NumberFormat": "kplus.data.text_numbers",
    "Odd": "kplus.data.reading",
    "Reading": "kplus.data.reading",
    "YesNo": "kplus.data.reading",
    "Clusters": "kplus.craft.model",
    "CraftModel": "kplus.craft.model",
    "Layout": "kplus.craft.layout",
    # What users choose as observations, and the same with a resolved prior.
    "Bernoulli": "kplus.dp_mixture.families.bernoulli",
    "BernoulliFamily": "kplus.dp_mixture.families.bernoulli",
    "Categorical": "kplus.dp_mixture.families.categorical",
    "CategoricalFamily": "kplus.dp_mixture.families.categorical",
    "DiagGaussian": "kplus.dp_mixture.families.diag_gaussian",
    "DiagGaussianFamily": "kplus.dp_mixture.families.diag_gaussian",
    "FactorGaussian": "kplus.dp_mixture.families.factor_gaussian",
    "FactorGaussianFamily": "kplus.dp_mixture.families.factor_gaussian",
    "Gaussian": "kplus.dp_mixture.families.gaussian",
    "GaussianFamily": "kplus.dp_mixture.families.gaussian",
    "Mixed": "kplus.dp_mixture.families.mixed",
    "MixedFamily": "kplus.dp_mixture.families.mixed",
    "Multinomial": "kplus.dp_mixture.families.multinomial",
    "MultinomialFamily": "kplus.dp_mixture.families.multinomial",
    "Noise": "kplus.dp_mixture.noise",
    "NegativeBinomial": "kplus.dp_mixture.families.negative_binomial",
    "NegativeBinomialFamily": "kplus.dp_mixture.families.negative_binomial",
    "Poisson": "kplus.dp_mixture.families.poisson",
    "PoissonFamily": "kplus.dp_mixture.families.poisson",
    "SphericalGaussian": "kplus.dp_mixture.families.spherical_gaussian",
    "SphericalGaussianFamily": "kplus.dp_mixture.families.spherical_gaussian",
    "Spiked": "kplus.dp_mixture.families.spiked",
    "SpikedFamily": "kplus.dp_mixture.families.spiked",
    "Transformed": "kplus.dp_mixture.families.transformed",
    "TransformedFamily": "kplus.dp_mixture.families.transformed",
    "StudentT": "kplus.dp_mixture.families.student_t",
    "StudentTFamily": "kplus.dp_mixture.families.student_t",
    "ZeroMeanGaussian": "kplus.dp_mixture.families.zero_mean_gaussian",
    "ZeroMeanGaussianFamily": "kplus.dp_mixture.families.zero_mean_gaussian",
}

# Dataclasses that only files of an unfinished fit hold: where its loops stand, and the
# state of rows.
STATES = {
    "State": "kplus.engine.engine",
    "FitResult": "kplus.core.types",
    "LoopState": "kplus.core.loop",
    "Pending": "kplus.core.loop",
    "EndedLoop": "kplus.core.journal",
    "RunningLoop": "kplus.core.journal",
    "MoveRecord": "kplus.dp_mixture.moves",
    "Scaling": "kplus.dp_means.params",
    "Centers": "kplus.dp_means.params",
    "dp_means.RowState": "kplus.dp_means.model",
    "dp_means.Candidates": "kplus.dp_means.model",
    "dp_means.ClusterSums": "kplus.dp_means.model",
    "Ellipsoids": "kplus.dp_means.full_covariance",
    "Scatters": "kplus.dp_means.full_covariance",
    "Labels": "kplus.dp_means.sequential",
    "Means": "kplus.dp_means.sequential",
    "Tally": "kplus.dp_means.sequential",
    "Components": "kplus.dp_mixture.params",
    "Plan": "kplus.dp_mixture.params",
    "Support": "kplus.dp_mixture.model",
    "Collected": "kplus.dp_mixture.params",
    "MixtureStats": "kplus.dp_mixture.params",
    "Expected": "kplus.dp_mixture.families.family",
    "MixedExpected": "kplus.dp_mixture.families.mixed",
    "Quadratic": "kplus.dp_mixture.families.quadratic",
    "StudentTExpected": "kplus.dp_mixture.families.student_t",
    "craft.ClusterSums": "kplus.craft.model",
    "Allocation": "kplus.linear.bits",
    "Gaps": "kplus.linear.gaps",
    "LinearSums": "kplus.linear.sums",
    "Features": "kplus.features.model",
    "features.Candidates": "kplus.features.model",
    "FeatureSums": "kplus.features.model",
    "IBPParams": "kplus.ibp.meibp_model",
    "ibp.RowState": "kplus.ibp.meibp_model",
    "IBPSums": "kplus.ibp.factors",
    "WeightedSums": "kplus.ibp.meibp_weights",
    "WeightState": "kplus.ibp.meibp_weights",
    "GaussianFactors": "kplus.ibp.factors",
    "TruncatedFactors": "kplus.ibp.factors",
    "FiniteIBP": "kplus.ibp.prior",
    "InfiniteIBP": "kplus.ibp.prior",
    "MeanField": "kplus.ibp.variational_model",
    "BernoulliSums": "kplus.ibp.variational_model",
    "Scales": "kplus.ibp.gibbs.scales",
}
RECORDS_AND_STATES = ChainMap(RECORDS, STATES)


def find_class(name: str, table: Mapping[str, str]) -> type:
    """Import the class that `table` lists under `name`."""
    cls: type = getattr(import_module(table[name]), name.rpartition(".")[2])
    return cls


def name_of(cls: type, table: Mapping[str, str]) -> str | None:
    """The name under which `table` lists this very class, no namesake or subclass."""
    for name in table:
        if name.rpartition(".")[2] == cls.__name__ and find_class(name, table) is cls:
            return name
    return None
