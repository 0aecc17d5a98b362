import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from ally.cli.generate import generate
from ally.errors import InputError
from ally.testing.pools import blobs

app = typer.Typer()
app.command()(generate)


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    scene = blobs("classification", n=120, labelled=60)
    names = [f"s{row}" for row in range(120)]
    pd.DataFrame(scene.X, columns=list("abcd")).assign(id=names).to_csv(folder / "X.csv", index=False)
    (folder / "L.csv").write_text("id,label\n" + "".join(f"s{row},class{int(scene.y[row])}\n" for row in range(60)))
    (folder / "numbers.csv").write_text(
        "id,label\n" + "".join(f"s{row},{scene.X[row, 0] ** 2:.3f}\n" for row in range(60))
    )
    np.save(folder / "X.npy", scene.X.astype(np.float32))
    return folder


def test_digits_by_default(tmp_path):
    out = tmp_path / "out"
    done = run("--steps", 20, "--step-size", 0.05, "--n", 4, "--epochs", 15, "--out", out)
    assert done.exit_code == 0, done.output
    assert sorted(file.name for file in out.iterdir()) == [
        "progression.csv",
        "progression.png",
        "progression.svg",
        "samples.npy",
    ]
    table = pd.read_csv(out / "progression.csv")
    assert table["step"].unique().tolist() == [0, 4, 8, 12, 16, 20]
    duals = table.pivot(index="step", columns="sample", values="dual")
    assert (duals.loc[20] > duals.loc[0]).all()
    samples = np.load(out / "samples.npy")
    assert samples.shape == (4, 1, 8, 8)
    assert samples.min() >= 0
    assert samples.max() <= 16
    assert "digits: trained on 144 labelled samples" in done.output
    assert "up for 4 of 4 samples" in done.output


def test_the_papers_head_is_trained_as_in_the_paper(tmp_path):
    done = run("--head", "paper", "--smooth", "--n", 4, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "digits: trained on 130 labelled samples and stopped at epoch" in done.output
    assert " by 14 others" in done.output
    assert "of 4 end among the highest tenth of the pool's duals" in done.output
    assert "note: steps were smoothed" in done.output


def test_equal_seeds_give_equal_samples(tmp_path):
    def samples(seed):
        run("--steps", 2, "--n", 2, "--epochs", 3, "--seed", seed, "--head", "paper", "--out", tmp_path / "out")
        return np.load(tmp_path / "out" / "samples.npy")

    first, second, third = samples(1), samples(1), samples(2)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


@pytest.mark.parametrize("labels", ["L.csv", "numbers.csv"])
def test_a_table_and_labels_of_yours(files, tmp_path, labels):
    done = run(files / "X.csv", "--labels", files / labels, "--steps", 6, "--n", 3, "--epochs", 10, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "progression.csv")
    assert list(table.columns[-4:]) == list("abcd")
    assert table["start"].str.startswith("s").all()
    X = pd.read_csv(files / "X.csv").set_index("id")
    first = table[table["step"] == 0]
    assert set(first["start"]) <= {f"s{row}" for row in range(60, 120)}
    np.testing.assert_allclose(first[list("abcd")], X.loc[first["start"]])
    assert (table[list("abcd")] >= X.min() - 1e-9).all(axis=None)
    assert (table[list("abcd")] <= X.max() + 1e-9).all(axis=None)
    assert ("p(class0)" in table.columns) == (labels == "L.csv")


def test_rows_as_images_and_the_labelled_side(files, tmp_path):
    (tmp_path / "L.csv").write_text("id,label\n" + "".join(f"{row},{row % 3}\n" for row in range(60)))
    options = (
        "--steps",
        2,
        "--n",
        2,
        "--epochs",
        3,
        "--start",
        "labelled",
        "--image-shape",
        "2x2",
        "--out",
        tmp_path / "out",
    )
    assert run(files / "X.npy", "--labels", tmp_path / "L.csv", *options).exit_code == 0
    assert np.load(tmp_path / "out" / "samples.npy").shape == (2, 1, 2, 2)
    assert pd.read_csv(tmp_path / "out" / "progression.csv")["start"].max() < 60


def test_user_errors_exit_with_2(files, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    pool, labels = files / "X.csv", files / "L.csv"
    for arguments, words in (
        ((pool,), "needs --labels"),
        ((pool, "--labels", labels, "--share", 0.5), "--share and POOL"),
        ((pool, "--labels", labels, "--dataset", "digits"), "--dataset and POOL"),
        (("--labels", labels), "--labels is for POOL"),
        (("--share", 0), "--share 0 is out of range"),
        (("--share", 1.5), "--share 1.5 is out of range"),
        (("--image-shape", "8"), "is not a shape"),
        (("--image-shape", "7x7"), "has 49 numbers, but a sample has 64"),
        (("--dataset", "no-such-set"), "no-such-set"),
        (("--out", file), "is a file"),
    ):
        with pytest.raises(InputError, match=words):
            run(*arguments)
