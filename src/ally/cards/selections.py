"""A card for every selection that makes a batch of any score."""

from __future__ import annotations

from ally.cards import references as ref
from ally.cards.card import Cost, SelectionCard

SELECTION_CARDS: dict[str, SelectionCard] = {
    "Top": SelectionCard(
        "Batches are small compared with the pool, or there are no near copies.",
        "decides alone",
        Cost("O(n + b log b)", "O(n)"),
        "S = top b of s",
    ),
    "ClusterTop": SelectionCard(
        "The usual choice: hard samples, one per cluster.",
        "makes the shortlist, then decides within each cluster",
        Cost("O(n + mbd)", "O(n + md)"),
        "S = argmax s in each of b k-means clusters of h over the m = shortlist·b largest s (or all)",
        (ref.ALLY,),
    ),
    "Perturbed": SelectionCard(
        "Speed matters, or you do not trust the embeddings: randomness alone spreads the batch.",
        "decides, with noise: samples are drawn by it without replacement",
        Cost("O(n + b log b); softrank O(n log n)", "O(n)"),
        "S = top b of log w + Gumbel noise\npower: w = s^β,  softmax: w = exp(β s),  softrank: w = rank(s)^−β",
        (ref.STOCHASTIC,),
    ),
    "Herding": SelectionCard(
        "The batch should be hard and also represent the pool.",
        "weights the samples to cover (`weighted=True`)",
        Cost("O((n + L)md); at worst O(bnmd)", "O(n + md)"),
        "next x = argmax_x Σ_{i ∈ U} s_i max_{j ∈ L ∪ S ∪ x} exp(−‖h_i − h_j‖²/σ²)",
        (ref.MAXHERDING, ref.UHERDING),
    ),
    "Influence": SelectionCard(
        "Numbers are predicted, and labels may be noisy.",
        "weights both the uncertain samples and the candidates",
        Cost("O(n(m + L)(d + L) + bm(m + L + b))", "O(n + m(m + L + b))"),
        "next x = argmax_x s_x Σ_{u ≠ x} s_u k_S(u, x)² / (k_S(x, x) + σ²)\n"
        "k_S: a Gaussian kernel given L ∪ S, a width for each column;  u: a sample of U;  x: the shortlist",
    ),
    "ByTask": SelectionCard(
        "One strategy is to serve classification and regression.",
        "weights the uncertain samples",
        Cost("O(n(m + L)(d + L) + bm(m + L + b)); at worst O(bnmd)", "O(n + md + m(m + L + b))"),
        "S = the batch of `classes` for classification, of `numbers` for regression",
    ),
    "BestMatch": SelectionCard(
        "Each answer would change the next question, but labels come in (small) batches.",
        "makes the shortlist; the `policy`, a score too, walks the paths",
        Cost(
            "O(n + Kb(mCd + Ld + b²C) + K²b²(b + d) + (L + m)d² + d³); at worst O(Kb⁴)",
            "O(n + (L + m)d + KmC + K²b² + d²)",
        ),
        "S = argmax of mean_P max_π Σ_{x ∈ S} exp(−‖h(x) − h(π(x))‖²/σ²),  π: S → P one to one\n"
        "K paths P: b picks of the policy, one by one, each label drawn from p and learnt by the last layer",
        (ref.MATCHING,),
    ),
    "Shortlist": SelectionCard(
        "You want a selection that ignores scores to spread over the highest ones only.",
        "decides which samples take part",
        Cost("O(n + mbd)", "O(n + md)"),
        "S = the batch that `select` makes of the m = times·b largest s",
    ),
    "KCenter": SelectionCard(
        "The batch must reach every corner of the pool, or of a `Shortlist`.",
        "is ignored",
        Cost("at worst O((L + b)nd)", "O(n + bd)"),
        "next x = argmax_{x ∈ U} min_{s ∈ L ∪ S} ‖g(x) − g(s)‖,  g = h or BADGE's gradient",
        (ref.CORESET,),
    ),
    "KMeansPP": SelectionCard(
        "A random spread over the pool or a `Shortlist`; on gradients, whose length is doubt, it is BADGE.",
        "is ignored",
        Cost("at worst O(bnd)", "O(n + bd)"),
        "next x ∈ U with probability ∝ min_{s ∈ S} ‖g(x) − g(s)‖²,  g = h or BADGE's gradient",
        (ref.KMEANSPP, ref.BADGE),
    ),
}
