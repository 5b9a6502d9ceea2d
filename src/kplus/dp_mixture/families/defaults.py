"""The defaults of the priors, in one place."""

__all__ = [
    "CATEGORY_STRENGTH",
    "CONSTANT_SHARE",
    "DISPERSION_LEAST",
    "DISPERSION_MOST",
    "DOF",
    "EXCESS_LEAST",
    "MEAN_STRENGTH",
    "N_DISPERSIONS",
    "POISSON_STRENGTH",
    "PSEUDO_COUNT",
    "VARIANCE_SHARE",
]

# Expected variance inside a component, as a share of the column's variance.
VARIANCE_SHARE = 0.5

# Rows that the prior mean of a component is worth. Small, so that a component ten
# times narrower than expected may still lie anywhere among the data.
MEAN_STRENGTH = 0.01

# Degrees of freedom of the prior of one column's variance: the smallest whole number
# with which the variance has an expectation. D columns that share one have D - 1 more.
DOF = 3.0

# Standard deviation that stands in for that of a constant column, as a share of the
# size of its value; 1 where the value is 0.
CONSTANT_SHARE = 1e-3

# Rows that the prior of a column of categories is worth.
CATEGORY_STRENGTH = 2.0

# Rows, and counts, that the prior of a Poisson rate is worth at most.
POISSON_STRENGTH = 1.0

# Dispersions that a column of a negative binomial may have: how many, and the largest,
# with which the standard deviation is twice the mean. Fewer, and rows are cut into
# more components than there are, since none of the few fits.
N_DISPERSIONS = 16
DISPERSION_MOST = 4.0

# What the smallest of them adds to a Poisson's variance, as a share of it, where the
# mean is that of the column and at least 1; yet no dispersion is below the other.
EXCESS_LEAST = 0.05
DISPERSION_LEAST = 1e-6

# Counts per column that the prior of multinomial proportions is worth.
PSEUDO_COUNT = 0.5
