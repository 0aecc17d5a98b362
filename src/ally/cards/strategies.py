"""A card for every entry of the catalogue.

In the equations h is the embedding, p the predicted class probabilities (p₁ ≥ p₂ the two largest), ℓ the loss, L the
labelled samples, U the candidates, S the batch, picked one by one where a line reads "next x".
"""

from __future__ import annotations

from ally.cards import references as ref
from ally.cards.card import Card, Cost
from ally.registry import Registry

_TOP = Cost("O(n + b log b)", "O(n)")
_UNCERTAIN = Cost("O(nC + b log b)", "O(n)")
_SAMPLED = Cost("O(n + b log b) + K passes", "O(n)")
_SIDE = Cost("O(n + b log b) + 1 pass", "O(n)")
_DUAL = Cost("O(nC + b²d); regression O(nLd + b²d)", "O(n + bd); regression O(n + bd + Ld)")

_DUALS = "λ_i ← [λ_i + η (ℓ_i − ε)]₊ while training;  λ̂(x) is predicted from the λ of L"
_CLUSTERS = "S = argmax λ̂ in each of b k-means clusters of h over the shortlist·b largest λ̂"

_DEFAULT = (
    "To the paper, a sample is as informative as the optimum is sensitive to its constraint ℓ'(f(x), y) ≤ ε: that is "
    "its dual λ. Let a constraint be exceeded by a slack u at the price ρu²/2, or κ per unit beyond u = κ/ρ. Then "
    "λ = min(ρ[ℓ' − ε]₊, κ), and κ → 0 is plain training: λ/κ is read from a plain fit, and no head predicts λ. A "
    "candidate has no label. For classes its constraint is that of the predicted label y, ℓ' = 1 − p_y + "
    "max_{k≠y} p_k; with ε = 0 and κ/ρ = 1, λ/κ = 1 − (p₁ − p₂). For numbers ℓ' = |y − f|, the mean over "
    "y ~ N(f, spread²), with ε = 0 and κ/ρ = c, three median spreads. The batch covers the pool, each sample weighted "
    "by its λ. This gives the weights a meaning; it is no more: not evidence that duals choose better."
)

CARDS: Registry[Card] = Registry(
    "card",
    {
        "random": Card(
            "baseline",
            "You need an unbiased sample, a test set, or the baseline: always run it as well.",
            _TOP,
            "S = b samples of U, all sets equally likely",
        ),
        "margin": Card(
            "uncertainty",
            "Classification, and you want the simplest thing that works: fast, and hard to beat by much.",
            _UNCERTAIN,
            "S = top b of 1 − (p₁ − p₂)",
            (ref.ACTIVE_HMM, ref.SURVEY),
        ),
        "entropy": Card(
            "uncertainty",
            "Every confused class should count, not only the closest two; margin is the safer choice.",
            _UNCERTAIN,
            "S = top b of −Σ_c p_c log p_c",
            (ref.SURVEY,),
        ),
        "badge": Card(
            "information",
            "Classification in batches of tens to hundreds: uncertain and diverse, nothing to tune.",
            Cost("at worst O(bn(d + C))", "O(n + bd + bC)"),
            "next x ∈ U with probability ∝ min_{s ∈ S} ‖g(x) − g(s)‖²,  g = (p − onehot(argmax p)) ⊗ h\nfirst x = "
            "argmax ‖g(x)‖",
            (ref.BADGE,),
        ),
        "bait": Card(
            "information",
            "Few classes, small embeddings, at most about 10 000 candidates, and a minute per query.",
            Cost("O((n + L)C²d² + C³d³ + bnC²(d + C) + bC³d²)", "O(nC² + nd + C²d²)"),
            "min over S of tr(M⁻¹ F),  M = ρI + (Σ_{i ∈ L} J_i + b Σ_{i ∈ S} J_i) / (L + b),  F = mean J\n"
            "J = (diag p − ppᵀ) ⊗ hhᵀ, regression hhᵀ;  greedy additions, then removals down to b",
            (ref.BAIT,),
        ),
        "bald": Card(
            "information",
            "Labels are noisy and the network has dropout, or five trainings are cheap: it ignores pure noise.",
            _SAMPLED,
            "S = top b of H[E_θ p(y|x,θ)] − E_θ H[p(y|x,θ)];  regression: Var_θ f(x,θ)",
            (ref.BALD, ref.DEEP_BALD),
        ),
        "powerbald": Card(
            "information",
            "Like bald, for batches: randomness keeps near copies apart at no cost.",
            _SAMPLED,
            "S = top b of log I(x) + Gumbel noise,  I = bald's score",
            (ref.STOCHASTIC,),
        ),
        "batchbald": Card(
            "information",
            "Labels are expensive: ten or fewer a round, few classes, and dropout or an ensemble.",
            Cost("O(nKC + mKC^b) + K passes", "O(nKC + KC^(b−1))"),
            "next x = argmax I(y_{S ∪ x}; θ),  I(y_S; θ) = H[E_θ Π_{i∈S} p(y_i|θ)] − Σ_{i∈S} E_θ H[p(y_i|θ)]",
            (ref.BATCHBALD,),
        ),
        "coreset": Card(
            "coverage",
            "No region may be missed, outliers included; in noisy pools it chases outliers.",
            Cost("at worst O((L + b)nd)", "O(n + bd)"),
            "next x = argmax_{x ∈ U} min_{s ∈ L ∪ S} ‖h(x) − h(s)‖",
            (ref.CORESET,),
        ),
        "kmeanspp": Card(
            "coverage",
            "A quick spread for either task, less drawn to outliers than coreset; ignores what is labelled.",
            Cost("at worst O(bnd)", "O(n + bd)"),
            "next x ∈ U with probability ∝ min_{s ∈ S} ‖h(x) − h(s)‖²;  first x = argmax ‖h(x)‖",
            (ref.KMEANSPP,),
        ),
        "lcmd": Card(
            "coverage",
            "Regression: the batch follows the density of the pool and still reaches its edges.",
            Cost("at worst O((L + b)n(d + C)); regression O((L + b)nd)", "O(n + bd + bC); regression O(n + bd)"),
            "next x = argmax_{c(x) = s*} D(x),  s* = argmax_s Σ_{c(x) = s} D(x)\n"
            "c(x) = nearest of L ∪ S,  D(x) = ‖g(x) − g(c(x))‖²\n"
            "g = (p − onehot(argmax p)) ⊗ h;  regression g = (h, 1), at the distances of h",
            (ref.LCMD,),
        ),
        "typiclust": Card(
            "coverage",
            "A handful of labels per class and features that cluster well, such as a pretrained network's.",
            Cost("O((n + L)kd + nmd)", "O(n + md + Ld)"),
            "x = argmin of the mean distance to the K nearest neighbours in its cluster,  ‖h‖ = 1\n"
            "K = min(20, half of the cluster)\n"
            "one x for each of the largest of k = L + b k-means clusters of h, those without labels first",
            (ref.TYPICLUST,),
        ),
        "probcover": Card(
            "coverage",
            "Few labels and well-clustered features; sensitive to the radius, which is chosen for you.",
            Cost("O((n + L)md); at worst O(bnmd + nLd)", "O(n + md)"),
            "next x = argmax |{x' ∈ U : ‖h(x) − h(x')‖ ≤ δ, x' in no ball of L ∪ S}|,  ‖h‖ = 1",
            (ref.PROBCOVER,),
        ),
        "maxherding": Card(
            "coverage",
            "Few labels, and you do not want to tune a radius: a smooth probcover.",
            Cost("O((n + L)md); at worst O(bnmd)", "O(n + md)"),
            "next x = argmax_x Σ_{i ∈ U} max_{j ∈ L ∪ S ∪ x} exp(−‖h_i − h_j‖²/σ²),  ‖h‖ = 1",
            (ref.MAXHERDING,),
        ),
        "uherding": Card(
            "hybrid",
            "Classification, and you cannot tell whether your labels are few or many.",
            Cost("O(nC + (n + L)md); at worst O(bnmd)", "O(n + md)"),
            "next x = argmax_x Σ_{i ∈ U} w_i max_{j ∈ L ∪ S ∪ x} exp(−‖h_i − h_j‖²/σ²),  w = 1 − (p₁ − p₂)\n"
            "p = softmax(log p / T),  T = argmin of −log p(y) over held-out labels\nσ = min_{i ≠ j ∈ L} ‖h_i − h_j‖",
            (ref.UHERDING, ref.CALIBRATION),
        ),
        "cluster-margin": Card(
            "hybrid",
            "Batches of thousands: k-means once, then the cost of the batch is negligible.",
            Cost("O(nC + nkd + b log b)", "O(n + md)"),
            "S = by turns one of each k-means cluster of h, small clusters first\namong the shortlist·b largest 1 − "
            "(p₁ − p₂)",
            (ref.CLUSTER_MARGIN,),
        ),
        "dropquery": Card(
            "hybrid",
            "A small head on frozen features of a foundation model.",
            Cost("O(nbd + nKCd) + 1 pass", "O(n + md)"),
            "S = the samples nearest to the b centroids of k-means of h over {x : q(x) ≥ threshold}\n"
            "q(x) = share of K copies of h(x), some units dropped, whose predicted class differs",
            (ref.DROPQUERY,),
        ),
        "ally": Card(
            "hybrid",
            "The default, for either task and any model: covers the pool, weighted by duals in closed form.",
            Cost("O(nC + n(m + L)(d + L) + bm(m + L + b)); at worst O(bnmd)", "O(n + md + m(m + L + b))"),
            "classes: next x = argmax_x Σ_{i ∈ U} w_i max_{j ∈ L ∪ S ∪ x} k(x_i, x_j)\n"
            "numbers: next x = argmax_x w_x Σ_{u ≠ x} w_u k_S(u, x)² / (k_S(x, x) + σ²),  k_S: k given L ∪ S\n"
            "w = λ = min(ρ[ℓ' − ε]₊, κ): 1 − (p₁ − p₂), or E min(|y − f| / c, 1);  k: Gaussian, of inputs",
            (ref.ALLY, ref.RESILIENT, ref.UHERDING),
            _DEFAULT,
        ),
        "ally-clusters": Card(
            "constrained",
            "Duals should rank the candidates: hard samples in diverse batches, close to margin where measured.",
            _DUAL,
            f"min_θ mean_{{i ∈ L}} ℓ_i  s.t.  ℓ_i ≤ ε\n{_DUALS}\n{_CLUSTERS}",
            (ref.ALLY,),
        ),
        "ally-paper": Card(
            "constrained",
            "You want the paper's method word for word: a network, stopped early by labels that are held out.",
            Cost("O((n + L)d + nbd)", "O(n + md)"),
            "min_θ mean_{i ∈ L} ℓ_i  s.t.  ℓ_i ≤ ε;  after each pass over L λ_i ← [λ_i + η (ℓ_i − ε)]₊\n"
            "λ̂(x) ≥ 0 from a network on h, fitted to λ;  S = argmax λ̂ in each of b k-means clusters of h",
            (ref.ALLY,),
        ),
        "ally-herding": Card(
            "constrained",
            "Hard samples matter, but the batch should represent the whole pool.",
            Cost(
                "O(nC + (n + L)md); regression O(nLd + (n + L)md); at worst O(bnmd)",
                "O(n + md); regression O(n + md + Ld)",
            ),
            "next x = argmax_x Σ_{i ∈ U} λ̂_i max_{j ∈ L ∪ S ∪ x} exp(−‖h_i − h_j‖²/σ²)",
            (ref.ALLY, ref.UHERDING),
        ),
        "ally-feasibility": Card(
            "constrained",
            "Every sample must meet the loss level and the mean does not matter; or you study the duals.",
            _DUAL,
            f"min_θ R(θ)  s.t.  ℓ_i ≤ ε, i ∈ L\n{_DUALS}\n{_CLUSTERS}",
            (ref.ALLY,),
        ),
        "ally-unlabelled": Card(
            "constrained",
            "You want true duals instead of predicted ones; it learns from the pool, so training is slow.",
            Cost("O(n + b²d)", "O(n + bd)"),
            "min_θ mean_{i ∈ L} ℓ_i  s.t.  KL(p(x_i) ‖ p(x_i + r_i)) ≤ ε, i ∈ L ∪ U\n"
            "λ of U is read, not predicted\nS = argmax λ in each of b k-means clusters of h over the shortlist·b "
            "largest λ",
            (ref.ALLY, ref.VAT),
        ),
        "accumulated-loss": Card(
            "constrained",
            "You ask what the weighting by duals adds: the ablation of ally-clusters, trained plainly.",
            _DUAL,
            f"min_θ mean_{{i ∈ L}} ℓ_i\n{_DUALS}\n{_CLUSTERS}",
            (ref.ALLY,),
        ),
        "learning-loss": Card(
            "learned",
            "A deep network whose inner layers separate hard from easy; with few labels the ranking is rough.",
            _SIDE,
            "S = top b of ℓ̂(x);  ℓ̂ descends max(0, ξ − sign(ℓ_i − ℓ_j)(ℓ̂_i − ℓ̂_j)) over pairs of L",
            (ref.LEARNING_LOSS,),
        ),
        "vaal": Card(
            "learned",
            "A large pool of images, time to train a VAE, and a choice that must not depend on the task.",
            _SIDE,
            "S = top b of log((1 − D(z)) / D(z)),  z = mean of q(z|x),  D(z) = probability of being labelled",
            (ref.VAAL,),
        ),
        "waal": Card(
            "learned",
            "Classification, the labelled set is unlike the pool, and you can change the training too.",
            _SIDE,
            "S = top b of w g(h(x)) − ½(‖log p‖₁ + ‖log p‖₂),  g = critic of U against L, Lipschitz 1",
            (ref.WAAL,),
        ),
        "dal": Card(
            "learned",
            "The labels should look like the pool, for any task and network, without changing the training.",
            Cost("O((n + L + b)d)", "O(n + Ld + bd)"),
            "S = top of log P(unlabelled | h(x)) / P(labelled | h(x))\nin sub-batches, each joining L before the next "
            "classifier is fitted",
            (ref.DAL,),
        ),
    },
)
