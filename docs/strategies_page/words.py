"""What the page says beside the cards."""

INTRODUCTION = """\
# Strategies

Made by `make docs` from the catalogue and its cards (`src/ally/cards`); change those, not this page. `ally strategies` shows the same in
a terminal, `ally strategies NAME` one strategy in full.

A strategy answers four questions, one part each, and any part goes with any other that is defined for the task:

| axis | question | parts |
| --- | --- | --- |
| objective | how is the network trained? | [below](#training-objectives) |
| score | how much would the label of this candidate tell? | `ally.scoring` |
| representation | in which space are candidates compared? | `ally.features`: the embedding, or the gradient of the last layer |
| selection | which batch follows from scores and distances? | [below](#batches-of-any-score) |

```python
import ally
from ally.scoring import Margin
from ally.selection import Herding

mine = ally.Strategy(score=Margin(), select=Herding(weighted=True), objective="pdcl")
```

The catalogue holds the combinations that have a name. [A tutorial](own-strategy.md) makes a score of your own.

## How to choose

Run `random` beside whatever you choose: on some data nothing beats it, and then labels are better spent at random. Beyond that, by what
is at hand, as far as the [measurements](#measured) and the papers go:

- **No labels at all.** Every strategy that looks at a network covers the input space first; there is nothing to choose.
- **A handful of labels per class, and good features** (a pretrained network's): `typiclust`, `maxherding` or `probcover`. The network
  knows too little yet for its doubts to be worth asking about. Pass such features as `embeddings=`: distances are then measured in them.
- **You do not want to choose:** `ally`, for any model and either task ([label efficiency](label-efficiency.md)).
- **More labels, classification:** `margin` first. In batches of a hundred and more `badge` asks for fewer near-copies. Not sure
  whether your labels are few or many: `ally` or `uherding`.
- **Regression:** `lcmd`, `ally` or `coreset`. Uncertainty needs classes.
- **Ten labels a round or fewer, each dear:** `batchbald`. **Thousands a round:** `cluster-margin`.
- **Noisy labels:** `bald` or `powerbald` for doubt that a label can settle. **Outliers in the pool:** not `coreset`; see
  [hygiene](#pool-hygiene).
- **A large pool, and time to train:** any strategy with `objective="smooth-unlabelled"` learns from the unlabelled samples as well.
  On MNIST that gained more than any choice of samples did ([measurements](measurements.md)); trainings take many times as long.
- **No time:** `margin`, or `Perturbed` for a batch that is not all alike; both cost next to nothing.

What constraints add to an uncertainty is small where it was measured, so `ally` does without them; `ally-paper` is the paper's method, and
`ally-clusters` ranks by dual variables, which say of every labelled sample how hard it is to fit.
"""

GLANCE = """\
Cost is the time to choose a batch, given what the network says of every sample: training and the first pass over the pool come before it.
Memory, under each strategy, is in numbers beside embeddings, probabilities and what else the network says. Settings with a fixed default
(iterations, widths, steps) count as constants; *a pass* is the pool through a network once more. The letters:
"""

FIGURE = """\
![Twelve panels, one per strategy, on the same two crescents and a small cluster. Entropy and margin crowd where classes meet; badge and
bait spread there; coreset reaches for the edges; typiclust and maxherding follow density; uherding and ally do both.](figures/picks.png)

Ten picks of each from one pool, given the same twelve labels and the same small network: `python docs/build_strategies.py --figure` runs
them. Distances are those of the network's embedding, not of the plane. One pool and one seed: a picture of habits, not a measurement.
"""

NOTATION = """\
In the equations h is the embedding, p the predicted class probabilities (p₁ ≥ p₂ the two largest), ℓ the loss, λ a dual variable; L are the
labelled samples, U the candidates, S the batch, picked one by one where a line reads "next x"; "top b of" a score takes the b largest.

With `embeddings=` the vectors given take the place of h in distances and clusters. The gradients of `badge` and `lcmd` (for
classification), the information of `bait` and the dual head keep the network's h.
"""

OBJECTIVES = """\
The objective is a free choice beside the strategy: `ally.query(..., strategy="margin", objective="pdcl")`. A strategy that needs what an
objective trains (a critic, duals) says so when it is missing. All are trained by one trainer.
"""

SELECTIONS = """\
A batch of the highest scores is often one sample many times over. These make a batch diverse, whatever the score s; every one picks exactly
b. `KCenter` and `KMeansPP` do not look at the score; within `Shortlist` they spread over the highest ones.
"""

HYGIENE = """\
Copies and oddities are kept out before a strategy sees them. `ally.query` sets aside exact copies, of each other and of what is labelled,
unless told otherwise; near duplicates and outliers are set aside on request, and the notes of a query say how many. Exactly n ids come back
all the same: where too few others are free, some are recalled and come last.

```python
careful = ally.Hygiene(duplicates="near", outliers=0.02)  # ally.query(X, y, n=20, hygiene=careful)
```

Collective outliers are another matter: groups of samples that models fail to learn, because their labels are wrong or they belong to no
class. A score that looks for what is hard to fit prefers them. An upper bound on the dual of a query keeps them out, with any selection
([measured](measurements.md#collective-outliers)); how to choose it is said under [parameters](#parameters).

```python
from ally.learning.dual_head import PaperHead
from ally.learning.objectives import PDCL
from ally.scoring import PredictedDual
from ally.selection import ClusterTop

bounded = ally.Strategy(PredictedDual(PaperHead(), cap=0.8), ClusterTop(shortlist=20), PDCL(eps=0.01))
```
"""

PARAMETERS = """\
Defaults of the parts; where an entry of the catalogue differs, its line under [the families](#all-at-a-glance) says so.
"""
