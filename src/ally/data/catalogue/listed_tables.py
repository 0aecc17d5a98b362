"""Tables of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

from ally.data.catalogue.entry import Entry, File
from ally.data.catalogue.official_tables import read_builtin, read_digit_images, read_parkinsons, read_uci

UCI_TERMS = "CC BY 4.0"
CITE = "cite the authors"
PTD = File(
    "parkinsons/parkinsons_updrs.data",
    "sha256:f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
    ("https://archive.ics.uci.edu/ml/machine-learning-databases/parkinsons/telemonitoring/parkinsons_updrs.data",),
)


def _parkinsons(score: Literal["total", "motor"], by_subject: bool) -> Entry:
    people = "tested on new people" if by_subject else "random split"
    return Entry(
        task="regression",
        kind="table",
        describe=f"{score} UPDRS score of Parkinson's disease from the voice, {people}",
        size=f"{'4749 + 1126' if by_subject else '4700 + 1175'}, 19 features",
        citation="Tsanas, Little, McSharry, Ramig: Accurate telemonitoring of Parkinson's disease progression by "
        "non-invasive speech tests. IEEE Trans. Biomedical Engineering 57(4), 2010.",
        terms=UCI_TERMS,
        read=partial(read_parkinsons, target=score, by_subject=by_subject),
        files=(PTD,),
    )


def _uci(name: str, describe: str, rows: int, features: int, citation: str, terms: str = UCI_TERMS) -> Entry:
    return Entry(
        task="regression",
        kind="table",
        describe=describe,
        size=f"{rows - round(rows / 5)} + {round(rows / 5)}, {features} features",
        citation=citation,
        terms=terms,
        read=partial(read_uci, name=name, rows=rows),
        files=(File(f"uci/{name}.csv.gz", instead=(File(f"uci/{name}.csv"),)),),
        by_hand=(
            f"write its {rows} rows into uci/{name}.csv.gz, the number to predict in the last column, called target"
        ),
    )


def _builtin(name: str, describe: str, size: str, citation: str, terms: str = UCI_TERMS) -> Entry:
    return Entry(
        task="regression" if name == "diabetes" else "classification",
        kind="table",
        describe=describe,
        size=size,
        citation=citation,
        terms=terms,
        read=partial(read_builtin, name=name),
    )


TABLES = {
    "ptd-total": _parkinsons("total", by_subject=False),
    "ptd-motor": _parkinsons("motor", by_subject=False),
    "ptd-total-by-subject": _parkinsons("total", by_subject=True),
    "ptd-motor-by-subject": _parkinsons("motor", by_subject=True),
    "concrete": _uci(
        "concrete",
        "strength of concrete from its mixture and age",
        1030,
        8,
        "Yeh: Modeling of strength of high-performance concrete using artificial neural networks. "
        "Cement and Concrete Research 28(12), 1998.",
    ),
    "energy": _uci(
        "energy",
        "heating load of a building from its shape",
        768,
        8,
        "Tsanas, Xifara: Accurate quantitative estimation of energy performance of residential buildings using "
        "statistical machine learning tools. Energy and Buildings 49, 2012.",
    ),
    "kin8nm": _uci(
        "kin8nm",
        "distance of a simulated robot arm's end from a target",
        8192,
        8,
        "Ghahramani: The kin family of data sets. Delve, University of Toronto, 1996.",
        CITE,
    ),
    "power-plant": _uci(
        "power-plant",
        "output of a power plant from the weather",
        9568,
        4,
        "Tüfekci: Prediction of full load electrical power output of a base load operated combined cycle power plant "
        "using machine learning methods. Int. J. Electrical Power & Energy Systems 60, 2014.",
    ),
    "wine-quality-red": _uci(
        "wine-quality-red",
        "quality of red wine, 3 to 8, from its chemistry",
        1599,
        11,
        "Cortez, Cerdeira, Almeida, Matos, Reis: Modeling wine preferences by data mining from physicochemical "
        "properties. Decision Support Systems 47(4), 2009.",
    ),
    "digits": _builtin(
        "digits",
        "handwritten digits at 8×8",
        "1438 + 359, 64 features",
        "Alpaydin, Kaynak: Optical recognition of handwritten digits. UCI repository, 1998.",
    ),
    "digits-images": replace(
        _builtin(
            "digits",
            "handwritten digits, as images",
            "1438 + 359, 1×8×8",
            "Alpaydin, Kaynak: Optical recognition of handwritten digits. UCI repository, 1998.",
        ),
        kind="images",
        read=read_digit_images,
    ),
    "diabetes": _builtin(
        "diabetes",
        "progress of diabetes after a year",
        "354 + 88, 10 features",
        "Efron, Hastie, Johnstone, Tibshirani: Least angle regression. Annals of Statistics 32(2), 2004.",
        CITE,
    ),
    "breast-cancer": _builtin(
        "breast_cancer",
        "benign or malignant, from measures of an image",
        "456 + 113, 30 features",
        "Wolberg, Mangasarian, Street, Street: Breast cancer Wisconsin (diagnostic). UCI repository, 1995.",
    ),
    "wine": _builtin(
        "wine",
        "grower of a wine from its chemistry",
        "142 + 36, 13 features",
        "Aeberhard, Forina: Wine. UCI repository, 1992.",
    ),
    "iris": _builtin(
        "iris",
        "species of iris from its flower",
        "120 + 30, 4 features",
        "Fisher: The use of multiple measurements in taxonomic problems. Annals of Eugenics 7(2), 1936.",
    ),
}
