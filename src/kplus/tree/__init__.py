"""From components or cells to clusters: a tree, and where to cut it.

In reading order:

borders
    What the rows say of pairs of components, as sums over blocks: how much they
    overlap, and histograms of their rows along an axis between them.
valley
    Whether such a histogram has a valley.
cluster_tree
    `ClusterTree`, and how it is made of overlaps and valleys.

A ring, a banana or a heavy tail takes many components; two of them belong to one
cluster if rows lead from one to the other without a valley between. Nothing here knows
what a component is: whoever has them says which axis is between two of them.
"""
