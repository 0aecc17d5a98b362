"""The papers behind the catalogue."""

from ally.cards.card import Reference

ALLY = Reference(
    "Elenter, NaderiAlizadeh, Ribeiro", "A Lagrangian Duality Approach to Active Learning", "NeurIPS", 2022
)
ACTIVE_HMM = Reference(
    "Scheffer, Decomain, Wrobel", "Active Hidden Markov Models for Information Extraction", "IDA", 2001
)
BADGE = Reference(
    "Ash, Zhang, Krishnamurthy, Langford, Agarwal",
    "Deep Batch Active Learning by Diverse, Uncertain Gradient Lower Bounds",
    "ICLR",
    2020,
)
BAIT = Reference(
    "Ash, Goel, Krishnamurthy, Kakade", "Gone Fishing: Neural Active Learning with Fisher Embeddings", "NeurIPS", 2021
)
BALD = Reference(
    "Houlsby, Huszár, Ghahramani, Lengyel",
    "Bayesian Active Learning for Classification and Preference Learning",
    "arXiv:1112.5745",
    2011,
)
BATCHBALD = Reference(
    "Kirsch, van Amersfoort, Gal",
    "BatchBALD: Efficient and Diverse Batch Acquisition for Deep Bayesian Active Learning",
    "NeurIPS",
    2019,
)
CALIBRATION = Reference("Guo, Pleiss, Sun, Weinberger", "On Calibration of Modern Neural Networks", "ICML", 2017)
CLUSTER_MARGIN = Reference(
    "Citovsky, DeSalvo, Gentile, Karydas, Rajagopalan, Rostamizadeh, Kumar",
    "Batch Active Learning at Scale",
    "NeurIPS",
    2021,
)
CORESET = Reference(
    "Sener, Savarese", "Active Learning for Convolutional Neural Networks: A Core-Set Approach", "ICLR", 2018
)
DAL = Reference("Gissin, Shalev-Shwartz", "Discriminative Active Learning", "arXiv:1907.06347", 2019)
DEEP_BALD = Reference("Gal, Islam, Ghahramani", "Deep Bayesian Active Learning with Image Data", "ICML", 2017)
DROPQUERY = Reference(
    "Gupte, Aklilu, Nirschl, Yeung-Levy",
    "Revisiting Active Learning in the Era of Vision Foundation Models",
    "TMLR",
    2024,
)
KMEANSPP = Reference("Arthur, Vassilvitskii", "k-means++: The Advantages of Careful Seeding", "SODA", 2007)
LCMD = Reference(
    "Holzmüller, Zaverkin, Kästner, Steinwart",
    "A Framework and Benchmark for Deep Batch Active Learning for Regression",
    "JMLR 24",
    2023,
)
LEARNING_LOSS = Reference("Yoo, Kweon", "Learning Loss for Active Learning", "CVPR", 2019)
MATCHING = Reference(
    "Azimi, Fern, Zhang-Fern, Borradaile, Heeringa", "Batch Active Learning via Coordinated Matching", "ICML", 2012
)
MAXHERDING = Reference(
    "Bae, Noh, Sutherland", "Generalized Coverage for More Robust Low-Budget Active Learning", "ECCV", 2024
)
PROBCOVER = Reference("Yehuda, Dekel, Hacohen, Weinshall", "Active Learning Through a Covering Lens", "NeurIPS", 2022)
STOCHASTIC = Reference(
    "Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron, Gal",
    "Stochastic Batch Acquisition: A Simple Baseline for Deep Active Learning",
    "TMLR",
    2023,
)
SURVEY = Reference(
    "Settles", "Active Learning Literature Survey", "Technical Report 1648, University of Wisconsin–Madison", 2009
)
TYPICLUST = Reference(
    "Hacohen, Dekel, Weinshall",
    "Active Learning on a Budget: Opposite Strategies Suit High and Low Budgets",
    "ICML",
    2022,
)
RESILIENT = Reference("Hounie, Ribeiro, Chamon", "Resilient Constrained Learning", "NeurIPS", 2023)
UHERDING = Reference(
    "Bae, Oliveira, Sutherland", "Uncertainty Herding: One Active Learning Method for All Label Budgets", "ICLR", 2025
)
VAAL = Reference("Sinha, Ebrahimi, Darrell", "Variational Adversarial Active Learning", "ICCV", 2019)
VAT = Reference(
    "Miyato, Maeda, Koyama, Ishii",
    "Virtual Adversarial Training: A Regularization Method for Supervised and Semi-Supervised Learning",
    "IEEE TPAMI",
    2018,
)
WAAL = Reference(
    "Shui, Zhou, Gagné, Wang",
    "Deep Active Learning: Unified and Principled Method for Query and Training",
    "AISTATS",
    2020,
)
