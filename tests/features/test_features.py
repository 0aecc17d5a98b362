import numpy as np
import torch

from ally.features import Gradient, ProductRows
from ally.features.gradient import residuals


def test_product_rows_equal_the_explicit_matrix():
    generator = torch.Generator().manual_seed(0)
    a, h = torch.randn(40, 3, generator=generator).double(), torch.randn(40, 5, generator=generator).double()
    rows = ProductRows((a, h))
    g = torch.einsum("nc,nd->ncd", a, h).reshape(40, -1)
    torch.testing.assert_close(rows.squared_norms(), g.square().sum(1))
    distances = torch.full((40,), torch.inf, dtype=torch.float64)
    for row in (3, 17):
        rows.lower_to_row(distances, rows.squared_norms(), row)
    expected = torch.cdist(g, g[[3, 17]]).square().amin(1)
    torch.testing.assert_close(distances, expected, atol=1e-9, rtol=1e-9)
    assert distances[3] == distances[17] == 0


def test_residuals_equal_their_definition_and_keep_small_ones(make_snapshot):
    view = make_snapshot().candidates
    p = view.probabilities.double().numpy()
    np.testing.assert_allclose(residuals(view), p - np.eye(4)[p.argmax(1)], atol=1e-6)
    view.probabilities[0] = torch.tensor([1.0, 1e-12, 1e-13, 0.0])
    assert residuals(view)[0, 0] < 0
    assert Gradient()(view).squared_norms()[0] > 0
