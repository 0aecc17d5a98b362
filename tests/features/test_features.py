import numpy as np
import pytest
import torch

from ally.errors import NonFiniteInput
from ally.features import Gradient, ProductRows
from ally.features.gradient import residuals
from ally.features.product import Patched, part, squared


def test_product_rows_equal_the_explicit_matrix():
    generator = torch.Generator().manual_seed(0)
    a, h = torch.randn(40, 3, generator=generator).double(), torch.randn(40, 5, generator=generator).double()
    rows = ProductRows((a, h))
    g = torch.einsum("nc,nd->ncd", a, h).reshape(40, -1)
    torch.testing.assert_close(rows.squared_norms(), g.square().sum(1))
    some = torch.tensor([3, 17])
    assert all(torch.equal(cut, factor[some]) for cut, factor in zip(part(rows, some).factors, (a, h), strict=True))
    with pytest.raises(NonFiniteInput, match="their squares overflow"):
        ProductRows((a, 1e200 * h)).squared_norms()


def test_residuals_equal_their_definition_and_keep_small_ones(make_snapshot):
    view = make_snapshot().candidates
    p = view.probabilities.double().numpy()
    np.testing.assert_allclose(residuals(view)[:], p - np.eye(4)[p.argmax(1)], atol=1e-6)
    view.probabilities[0] = torch.tensor([1.0, 1e-12, 1e-13, 0.0])
    assert residuals(view)[:][0, 0] < 0
    assert Gradient()(view).squared_norms()[0] > 0


def test_replaced_entries_stand_in_copies_only():
    matrix = torch.arange(12.0).reshape(4, 3)
    patched = Patched(matrix, torch.tensor([0, 2, 1, 1], dtype=torch.int32), torch.tensor([-1.0, -2.0, -3.0, -4.0]))
    whole = [[-1, 1, 2], [3, 4, -2], [6, -3, 8], [9, -4, 11]]
    assert patched[:].tolist() == whole
    assert patched[torch.tensor([3, 1])].tolist() == [whole[3], whole[1]]
    assert patched[2:].tolist() == whole[2:]
    assert matrix.tolist() == torch.arange(12.0).reshape(4, 3).tolist()
    rows = ProductRows((patched, matrix))
    assert rows.factors[0].tolist() == whole
    torch.testing.assert_close(rows.squared_norms(), patched[:].square().sum(1) * matrix.square().sum(1))
    assert len(ProductRows((patched[:0], matrix[:0])).squared_norms()) == 0


def test_squared_distances_between_rows():
    generator = torch.Generator().manual_seed(0)
    a, h = torch.rand(30, 4, generator=generator).double(), torch.randn(30, 6, generator=generator).double()
    rows, g = ProductRows((a, h)), torch.einsum("nc,nd->ncd", a, h).reshape(30, -1)
    norms = rows.squared_norms()
    torch.testing.assert_close(
        squared(rows, part(rows, slice(0, 5)), norms, norms[:5]), torch.cdist(g, g[:5]).square(), atol=1e-9, rtol=1e-9
    )
    far = ProductRows((torch.randn(300, 64, generator=generator) + 100,))
    assert squared(far, far, far.squared_norms(), far.squared_norms()).diagonal().max() == 0
