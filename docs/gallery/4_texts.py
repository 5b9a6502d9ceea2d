"""
Texts: rows of word counts
==========================

A text as a row of word counts is long, sparse, and mostly zeros. What matters are the
proportions of words, not how long the text is. ``DPMixture`` keeps a sparse matrix
sparse, takes it for what it is, and finds how many subjects there are.
"""

# %%
# 800 short notes to a help desk, written by a small program: each is about one of four
# subjects, in words of that subject and words that everybody uses.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from kplus import DPMixture

subjects = {
    "delivery": "parcel courier late tracking address delivery missing box door driver",
    "payment": "invoice card charged refund bank payment twice amount receipt price",
    "login": "password account login email reset locked code phone screen browser",
    "returns": "size return shoes colour exchange label worn fit smaller refund",
}
common = "hello please thanks order help yesterday number still waiting question again"
rng = np.random.default_rng(0)
about = rng.choice(list(subjects), 800, p=[0.4, 0.3, 0.2, 0.1])
notes = [
    " ".join(
        rng.choice((subjects[which] if rng.random() < 0.55 else common).split())
        for _ in range(rng.integers(8, 30))
    )
    for which in about
]
print(notes[0])

# %%
# A sparse matrix of counts goes in. Which family of counts suits is chosen by the
# model.

words = CountVectorizer()
counts = words.fit_transform(notes)
model = DPMixture(random_state=0).fit(counts)
print(model.choice_)
print("notes in each cluster:", np.bincount(model.labels_))

# %%
# The words that each cluster uses more than all notes do:

names = words.get_feature_names_out()
overall = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
fig, axes = plt.subplots(1, model.n_clusters_, figsize=(8, 2.8), layout="constrained")
for k, ax in enumerate(axes):
    here = np.asarray(counts[model.labels_ == k].sum(axis=0)).ravel()
    times = here / here.sum() / overall
    top = np.argsort(times)[-8:]
    ax.barh(names[top], times[top], color=f"C{k}")
    ax.set_title(f"{(model.labels_ == k).sum()} notes")
axes[0].set_xlabel("times as often")
plt.show()

# %%
# New notes are placed, with a probability for each subject.

new = words.transform(["the courier left my parcel at the wrong door", "refund please"])
model.predict_proba(new).round(2)

# %%
# "Refund" is a word of two subjects, and the model says so. See
# :doc:`/guide/observations` for other families of counts.
