"""A card for every training objective."""

from __future__ import annotations

from ally.cards import references as ref
from ally.cards.card import ObjectiveCard

OBJECTIVE_CARDS: dict[str, ObjectiveCard] = {
    "erm": ObjectiveCard(
        "Plain training: the default unless a strategy needs something else.",
        "nothing",
        "min_θ  1/L Σ_{i ∈ L} ℓ(f_θ(x_i), y_i)",
    ),
    "pdcl": ObjectiveCard(
        "You want the dual variable of every labelled sample, for ALLY or for finding mislabelled ones.",
        "a few per cent of time, one number per labelled sample",
        "min_θ  1/L Σ ℓ_i  s.t.  ℓ'_i ≤ ε_i, i ∈ L\n"
        "θ descends 1/L Σ (ℓ_i + λ_i (ℓ'_i − ε_i))\nλ_i ← [λ_i + η_d (ℓ'_i − ε_i)]₊ once per epoch, η_d diminishing",
        (ref.ALLY,),
    ),
    "feasibility": ObjectiveCard(
        "Every sample must meet its level and nothing else matters; with R = 0 only the path of λ counts.",
        "as pdcl",
        "min_θ  R(f_θ)  s.t.  ℓ'_i ≤ ε_i, i ∈ L\nθ descends R + 1/L Σ λ_i (ℓ'_i − ε_i);  λ as for pdcl",
        (ref.ALLY,),
    ),
    "resilient": ObjectiveCard(
        "Some samples cannot meet their level: each may exceed it at a price, and λ stays bounded.",
        "as pdcl",
        "min_{θ, u ≥ 0}  1/L Σ (ℓ_i + h(u_i))  s.t.  ℓ'_i ≤ ε_i + u_i;  h = ρu²/2, slope κ beyond κ/ρ\n"
        "λ_i ← clip(λ_i + η_d (ℓ'_i − ε_i − λ_i/ρ), 0, κ), which rests at λ_i = min(ρ[ℓ'_i − ε_i]₊, κ)",
        (ref.ALLY, ref.RESILIENT),
    ),
    "accumulated-loss": ObjectiveCard(
        "The ablation of pdcl: λ records the slacks, and training does not see it.",
        "as pdcl",
        "min_θ  1/L Σ ℓ_i;  λ_i ← [λ_i + η_d (ℓ_i − ε)]₊",
    ),
    "smooth-unlabelled": ObjectiveCard(
        "You have a few hundred labels and a large pool; with fewer labels it may be worse than erm.",
        "at least `steps` optimiser steps on labelled and unlabelled batches, with about three passes each",
        "min_θ  1/L Σ_{i ∈ L} ℓ_i + w mean ℓ'(f_θ, x_i) over batches of L and of U\n"
        "ℓ' = KL(p(·|x) ‖ p(·|x + r)), regression (f(x) − f(x + r))²;  r of length ρ moves f most",
        (ref.VAT,),
    ),
    "pdcl-unlabelled": ObjectiveCard(
        "You want the dual variable of every sample of the pool; to save labels, smooth-unlabelled is safer.",
        "as smooth-unlabelled, and one number per sample of the pool; with model='graph' it is solved at once",
        "min_θ  1/L Σ_{i ∈ L} ℓ_i  s.t.  ℓ'(f_θ, x_i) ≤ ε, i ∈ L ∪ U;  ℓ' as for smooth-unlabelled\n"
        "θ descends 1/L Σ_{i ∈ L} ℓ_i + mean_{i ∈ L ∪ U} λ_i (ℓ'_i − ε)\n"
        "λ_i ← [λ_i + η_d (ℓ'_i − ε)]₊ once in every pass over L ∪ U, η_d diminishing",
        (ref.ALLY, ref.VAT),
    ),
    "learning-loss": ObjectiveCard(
        "The strategy learning-loss needs its module.",
        "a small module on inner layers",
        "min  1/B Σ ℓ_i + w 2/B Σ_{(i,j)} max(0, ξ − sign(ℓ_i − ℓ_j)(ℓ̂_i − ℓ̂_j))",
        (ref.LEARNING_LOSS,),
    ),
    "vaal": ObjectiveCard(
        "The strategy vaal needs its discriminator; the task itself is trained as by erm.",
        "a VAE and a discriminator on labelled and unlabelled batches",
        "VAE:  min  −E log p(x|z) + β KL(q(z|x) ‖ N(0, I)) − w (E_L log D(z) + E_U log D(z))\nD:    min  −E_L log "
        "D(z) − E_U log(1 − D(z))",
        (ref.VAAL,),
    ),
    "waal": ObjectiveCard(
        "The strategy waal needs its critic; the embedding is pulled towards one where L and U look alike.",
        "a critic, and unlabelled batches through the backbone",
        "min_{f,h} max_g  1/L Σ_{i ∈ L} ℓ_i + μ (E_U g(f(x)) − E_L g(f(x))),  ‖∇g‖ near 1",
        (ref.WAAL,),
    ),
}
