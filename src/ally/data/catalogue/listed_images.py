"""Image sets of the catalogue. Checksums are those published by their authors, or by the libraries that read them."""

from __future__ import annotations

from ally.data.catalogue.entry import Archive, Entry, File
from ally.data.catalogue.official_images import (
    CIFAR_BINARY,
    CIFAR_PYTHON,
    STL_FOLDER,
    read_cifar10,
    read_mnist,
    read_stl10,
    read_svhn,
)
from ally.data.catalogue.tiny_imagenet import read_tiny_imagenet, read_tiny_imagenet_32

IMAGENET_TERMS = "ImageNet terms: non-commercial research and teaching only"
TINY_CITATION = "Le, Yang: Tiny ImageNet visual recognition challenge. Stanford CS 231N, 2015."
TINY_ZIP = "md5:90528d7ca1a48142e341f4ef8d21d0de"
MNIST_PLACES = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
MNIST_FILES = {
    "train-images-idx3-ubyte": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte": "md5:d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte": "md5:9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte": "md5:ec29112dd5afa0611ce80d1b7f02629c",
}
CIFAR_PYTHON_FILES = {
    "data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
    "data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "md5:634d18415352ddfa80567beed471001a",
    "data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "md5:40351d587109b95175f43aff81a1287e",
}
SVHN_FILES = {
    "train_32x32.mat": "md5:e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "md5:eb5a983be6a315427106f1b164d9cef3",
}
STL_FILES = {
    "train_X.bin": "md5:918c2871b30a85fa023e0c44e0bee87f",
    "train_y.bin": "md5:5a34089d4802c674881badbb80307741",
    "test_X.bin": "md5:7f263ba9f9e0b06b93213547f721ac82",
    "test_y.bin": "md5:36f9794fa4beb8a2c72628de14fa638e",
}

IMAGES = {
    "mnist": Entry(
        task="classification",
        kind="images",
        describe="handwritten digits",
        size="60 000 + 10 000, 1×28×28",
        citation=(
            "LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition. Proc. "
            "IEEE 86(11), 1998."
        ),
        terms="cite the authors",
        read=read_mnist,
        files=tuple(
            File(
                f"mnist/{name}.gz",
                checksum,
                tuple(f"{place}{name}.gz" for place in MNIST_PLACES),
                (File(f"mnist/{name}"),),
            )
            for name, checksum in MNIST_FILES.items()
        ),
    ),
    "cifar10": Entry(
        task="classification",
        kind="images",
        describe="photographs of ten kinds of things",
        size="50 000 + 10 000, 3×32×32",
        citation=(
            "Krizhevsky: Learning multiple layers of features from tiny images. Technical report, "
            "University of Toronto, 2009."
        ),
        terms="cite the authors",
        read=read_cifar10,
        files=tuple(
            File(
                f"{CIFAR_BINARY}/{name}.bin",
                instead=(File(f"{CIFAR_PYTHON}/{name}", md5),),
                needed=name == "test_batch",
                size=10_000 * 3073,
            )
            for name, md5 in CIFAR_PYTHON_FILES.items()
        ),
        archives=(
            Archive(
                "cifar-10-binary.tar.gz",
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
                ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                tuple(f"{CIFAR_BINARY}/{name}.bin" for name in CIFAR_PYTHON_FILES),
            ),
        ),
    ),
    "svhn": Entry(
        task="classification",
        kind="images",
        describe="digits of house numbers",
        size="73 257 + 26 032, 3×32×32",
        citation="Netzer, Wang, Coates, Bissacco, Wu, Ng: Reading digits in natural images with unsupervised feature "
        "learning. NIPS workshop on deep learning, 2011.",
        terms="non-commercial use only; cite the authors",
        read=read_svhn,
        files=tuple(
            File(f"svhn/{name}", md5, (f"http://ufldl.stanford.edu/housenumbers/{name}",))
            for name, md5 in SVHN_FILES.items()
        ),
    ),
    "stl10": Entry(
        task="classification",
        kind="images",
        describe="photographs of ten kinds of things, split as in the paper",
        size="11 000 + 2000, 3×96×96",
        citation=(
            "Coates, Lee, Ng: An analysis of single-layer networks in unsupervised feature learning. AISTATS, 2011."
        ),
        terms="ImageNet terms; cite the authors",
        read=read_stl10,
        files=tuple(File(f"{STL_FOLDER}/{name}", checksum) for name, checksum in STL_FILES.items()),
        archives=(
            Archive(
                "stl10_binary.tar.gz",
                "md5:91f7769df0f17e558f3565bffb0c7dfb",
                ("http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",),
                tuple(f"{STL_FOLDER}/{name}" for name in STL_FILES),
            ),
        ),
    ),
    "tiny-imagenet": Entry(
        task="classification",
        kind="images",
        describe="200 classes of ImageNet at a small size",
        size="100 000 + 10 000, 3×64×64",
        citation=TINY_CITATION,
        terms=IMAGENET_TERMS,
        read=read_tiny_imagenet,
        files=(
            File(
                "tiny-imagenet-200.zip",
                TINY_ZIP,
                ("http://cs231n.stanford.edu/tiny-imagenet-200.zip",),
                (
                    File("tiny-imagenet-200/val/val_annotations.txt"),
                    File("tiny-imagenet-200/tiny-imagenet-200.zip", TINY_ZIP),
                ),
            ),
        ),
    ),
    "tiny-imagenet-32": Entry(
        task="classification",
        kind="images",
        describe="a subset of Tiny ImageNet re-encoded at 32×32, for trying things out",
        size="10 000 + 2000, 3×32×32",
        citation=TINY_CITATION,
        terms=IMAGENET_TERMS,
        read=read_tiny_imagenet_32,
        files=(File("tiny-imagenet-32/tiny_imagenet32_subset.zip"),),
        by_hand="put tiny_imagenet32_subset.zip (train/CLASS/*.JPEG, val/CLASS/*.JPEG) into tiny-imagenet-32/",
    ),
}
