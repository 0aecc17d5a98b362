"""The settings of a campaign, kept in its store.

Each setting is declared once: its default, what it means, how it is checked, and whether it may change later.
`Campaign.create`, `Campaign.change`, ``ally new``, ``ally change``, their help and the table in docs/campaign.md come
from the declarations.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypedDict, get_args, get_type_hints

from ally.campaign.permissions import Permission, grant, grant_keys, needed_permissions, restrict
from ally.campaign.places import beside
from ally.catalogue_names import KEPT_MODEL, LEARNERS, MODELS
from ally.checks import check_count, check_number
from ally.errors import AllyError, InputError, LabelError, StateUnavailable, StoreDamaged, StoreVersion
from ally.execution.resolve import ensure_named
from ally.json_form import find_misfit
from ally.metrics import metric_for
from ally.types import BOTH_TASKS, Task, find_text_fault

if TYPE_CHECKING:
    from ally.store import Store
    from ally.store.values import Policy

Vote: TypeAlias = Literal["last", "majority"]
"""Policies a campaign can choose from; `Settings.store_policy` maps them to the store's."""

Evaluate: TypeAlias = int | Literal["cv"]
"""Samples held out to measure the learning curve, or "cv": none, and cross-validation on the training labels."""

VERSION = 1
IGNORED = "ignored"
MEMORY = ":memory:"
"""What a store calls itself that ends with its process."""
MOST_THREADS = 4096
LONGEST_SETTING, LONGEST_CLASS, LONGEST_ESTIMATOR = 4000, 1000, 2**20
MOST_CLASSES = 20_000
"""They are checked whenever the settings are read, and shown to whoever labels."""
LONGEST_LEASE = 366 * 86400.0
Check: TypeAlias = Callable[[str, Any], object]
"""Called with the name and the value of a setting; raises if the value is invalid."""
Group: TypeAlias = Literal["Labels", "Queries", "Learner", "Annotators"]


@dataclass(frozen=True)
class Declared:
    """One setting, as users of `create`, `change` and the command line see it."""

    name: str
    default: Any
    """The default before creation; None may stand for a value found by reading the source."""
    kind: Any
    """Its type before creation."""
    meaning: str
    group: Group
    fixed: bool
    """Whether it stays as it was when the campaign was created."""


def setting(
    default: Any,
    group: Group,
    meaning: str,
    check: Check,
    *,
    fixed: bool = False,
    given: Any = dataclasses.MISSING,
    needs_permission: Callable[[Any], str | None] | None = None,
) -> Any:
    """A field of `Settings`. `given` is the default before the campaign is created, if different. `needs_permission`
    says what a value would do that only this machine's user may allow (`ally.campaign.permissions`), or None."""
    metadata = {"group": group, "meaning": meaning, "check": check, "fixed": fixed}
    metadata["given"] = default if given is dataclasses.MISSING else given
    if needs_permission is not None:
        metadata["needs_permission"] = needs_permission
    return field(default=default, metadata=metadata)


@cache
def declarations() -> tuple[Declared, ...]:
    """All settings that a person can choose, in order."""
    kinds = get_type_hints(Settings)
    found = []
    for item in dataclasses.fields(Settings):
        if "meaning" in item.metadata:
            first = item.metadata["given"]
            kind = kinds[item.name] if first is not None or item.default is None else kinds[item.name] | None
            found.append(
                Declared(item.name, first, kind, *(item.metadata[key] for key in ("meaning", "group", "fixed")))
            )
    return tuple(found)


def one_of(*values: str) -> Check:
    def check(name: str, value: Any) -> None:
        if value not in values:
            raise InputError.about(name, value, f"is unknown; use {' or '.join(map(repr, values))}")

    return check


def optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def share(name: str, value: Any) -> None:
    if not 0 <= check_number(name, value) < 1:
        raise InputError.about(name, value, "is out of range; use a number from 0 to below 1")


def lease(name: str, value: Any) -> None:
    if check_number(name, value, positive=True) > LONGEST_LEASE:
        raise InputError.about(name, value, "is more than a year; use less")


def text(name: str, value: Any, longest: int = LONGEST_SETTING) -> None:
    if not isinstance(value, str) or not value:
        raise InputError.about(name, value, "is not a name; give a text")
    fault = find_text_fault(value, longest)
    if fault is not None:
        raise InputError.about(name, value, fault)


def model_text(name: str, value: Any) -> None:
    """A name, or an estimator kept as text."""
    kept = isinstance(value, str) and value.startswith(KEPT_MODEL)
    text(name, value, LONGEST_ESTIMATOR if kept else LONGEST_SETTING)


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError.about(name, value, "must be True or False")


def anything(name: str, value: Any) -> None:
    """For settings that are checked together with others."""


def count_or_cv(name: str, value: Any) -> None:
    if value != "cv":
        if isinstance(value, str):
            raise InputError.about(name, value, "is unknown; use a whole number or 'cv'")
        check_count(name, value, least=0)


def what_model_does(model: str | None) -> str | None:
    if model is None or model in LEARNERS or model in MODELS:
        return None
    return "rebuilds an estimator stored in the campaign" if model.startswith(KEPT_MODEL) else "runs code"


def what_engine_does(engine: str) -> str | None:
    return None if engine == "local" else "connects to a cluster, or starts one"


def thread_count(name: str, value: Any) -> None:
    if check_count(name, value) > MOST_THREADS:
        raise InputError.about(name, value, f"is too many; use at most {MOST_THREADS}")


count = partial(check_count, least=1)
count_or_none = partial(check_count, least=0)


@dataclass(frozen=True)
class Settings:
    """Settings of a campaign: where its source is, and what `declarations` lists.

    Attributes:
        place: the folder or file of the source; None if it lives in memory and is passed at each opening.
        options: the other arguments of `ally.sources.open_source`.
        fingerprint: what was learned from the source, so that features keep their meaning.
        ignored: what is on record and not in force here, because its user did not allow it on this machine.
    """

    place: str | None
    options: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    task: Task = setting(
        "classification",
        "Labels",
        "What is learned: 'classification' or 'regression'.",
        one_of(*sorted(BOTH_TASKS)),
        fixed=True,
    )
    classes: tuple[Any, ...] | None = setting(None, "Labels", "All classes (default: any label is one).", anything)
    strategy: str = setting("ally", "Learner", "How samples are chosen: a name listed by `ally strategies`.", text)
    objective: str | None = setting(
        None,
        "Learner",
        "How the learner is trained; 'auto': a network by the best of erm, pdcl and smooth-unlabelled (default: as the "
        "strategy does).",
        optional(text),
    )
    model: str | None = setting(
        "auto",
        "Learner",
        "What learns: a name, module:builder of your own, or 'auto' for the best by cross-validation on the labels.",
        optional(model_text),
        needs_permission=what_model_does,
    )
    encoder: str | None = setting(
        None,
        "Learner",
        "A pretrained encoder of texts or photos: a name, the folder of a model, or 'none' (default: 'auto', the one "
        "that is installed).",
        optional(text),
        fixed=True,
        given="auto",
    )
    batch: int = setting(
        20, "Queries", "Samples in a query. The learner is trained again after as many answers.", count
    )
    lease_seconds: float = setting(
        3600.0, "Annotators", "How long a sample stays reserved for whoever asked for it.", lease
    )
    policy: Vote = setting(
        "last",
        "Annotators",
        "Which label counts if annotators disagree. For numbers, the majority is the median.",
        one_of(*get_args(Vote)),
    )
    opinions: int = setting(1, "Annotators", "How many different annotators are asked about each sample.", count)
    evaluate: Evaluate = setting(
        0,
        "Queries",
        "Random samples held out for the learning curve (default: 100, or a tenth if that is fewer). 'cv' holds out "
        "none and measures by cross-validation on the chosen labels.",
        count_or_cv,
        fixed=True,
        given=None,
    )
    validate: int = setting(0, "Queries", "Random samples held out for early stopping.", count_or_none, fixed=True)
    held_out_share: float = setting(
        0.25, "Queries", "Share of each query for held-out samples until they are labelled.", share
    )
    random_share: float = setting(0.0, "Queries", "Share of each query chosen at random, for comparison.", share)
    budget: int | None = setting(
        None, "Queries", "Total label budget, used in the advice on when to stop.", optional(count)
    )
    look_at: int = setting(
        100_000, "Learner", "Unlabelled samples to consider in each training, drawn at random.", count
    )
    threads: int | None = setting(
        None,
        "Learner",
        "CPU threads for training in the background (default: all cores but one).",
        optional(thread_count),
    )
    engine: str = setting(
        "local",
        "Learner",
        "Where a training looks at the unlabelled samples: 'local', 'ray' (the cluster at RAY_ADDRESS, else one "
        "started for each training) or 'ray://host:port'.",
        lambda name, value: ensure_named(value),
        needs_permission=what_engine_does,
    )
    metric: str | None = setting(
        None,
        "Learner",
        "What the learning curve shows: accuracy, balanced_accuracy, macro_f1, auroc or log_loss; r2, rmse or mae "
        "(default: accuracy or r2).",
        optional(text),
    )
    automatic: bool = setting(True, "Learner", "Train automatically when there are enough new answers.", flag)
    seed: int = setting(
        0, "Queries", "Seed of the random order of samples and of the training.", count_or_none, fixed=True
    )

    ignored: tuple[Permission, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            if "check" in item.metadata:
                item.metadata["check"](item.name, getattr(self, item.name))
        if self.classes is not None:
            object.__setattr__(self, "classes", check_classes(self.classes, self.task))
        if self.metric is not None:
            metric_for(self.metric, self.task)
        if self.held_out_share + self.random_share >= 1:
            total = self.held_out_share + self.random_share
            raise InputError(
                f"the shares of held-out and random samples add up to {total:g}; leave something for active queries"
            )
        if (self.held_out or self.validate) and not self.held_out_share:
            raise InputError("samples are held out, but the share of queries for them is 0; use a share such as 0.25")

    @property
    def encoded(self) -> Mapping[str, Any] | None:
        """What the fingerprint keeps of the encoder; None without one."""
        from ally.sources.fingerprint import ENCODED

        return self.fingerprint.get(ENCODED)

    def fingerprint_without_encoder(self) -> dict[str, Any]:
        from ally.sources.fingerprint import ENCODED

        return {name: value for name, value in self.fingerprint.items() if name != ENCODED}

    @property
    def held_out(self) -> int:
        """Samples that are held out for the learning curve."""
        return 0 if self.evaluate == "cv" else self.evaluate

    @property
    def store_policy(self) -> Policy:
        """The policy for the store: for numbers, the majority is the median."""
        return "median" if (self.policy, self.task) == ("majority", "regression") else self.policy

    def to_json(self) -> dict[str, Any]:
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name != IGNORED}
        return {"version": VERSION, **values, "classes": None if self.classes is None else list(self.classes)}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Settings:
        """The settings on record. Raises `StoreDamaged` unless each has a type and a value it can have."""
        if kept.get("version") != VERSION:
            raise StoreVersion(
                f"the campaign's settings have version {kept.get('version')!r:.60} and {VERSION} is needed; update ally"
            )
        values = {name: value for name, value in kept.items() if name != "version"}
        from ally.sources.fingerprint import find_fingerprint_misfit, find_side_misfit

        misfit = (
            _find_too_many(values.get("classes"))
            or find_misfit(values, _form(), "the settings")
            or find_side_misfit(values["options"])
            or find_fingerprint_misfit(values["fingerprint"])
        )
        if misfit is not None:
            raise StoreDamaged(f"{misfit}; the campaign is damaged: restore a backup")
        if values.get("classes") is not None:
            values["classes"] = tuple(values["classes"])
        try:
            return cls(**values)
        except AllyError as error:
            raise StoreDamaged(f"the settings are damaged ({error}); restore a backup") from error


def _find_too_many(classes: Any) -> str | None:
    """Before each is looked at."""
    if isinstance(classes, (list, tuple)) and len(classes) > MOST_CLASSES:
        return f"there are {len(classes)} classes, and at most {MOST_CLASSES} can be listed"
    return None


class OptionsForm(TypedDict):
    """Options of a source, as a campaign keeps them. None stands for what was in memory."""

    id_column: NotRequired[str]
    text: NotRequired[str]
    image: NotRequired[str]
    label: NotRequired[str]
    embeddings: NotRequired[Path | None]
    columns: NotRequired[list[str] | dict[str, Literal["number", "category"] | None]]
    recursive: NotRequired[bool]
    ids: NotRequired[Path | None]
    folder: NotRequired[Path | None]
    encoding: NotRequired[str]
    header: NotRequired[bool]
    size: NotRequired[int]
    channels: NotRequired[Literal["auto", "first", "last"]]
    missing_label: NotRequired[str | int]


@cache
def _form() -> dict[str, Any]:
    """The types of the settings on record: older campaigns lack some."""
    kinds = get_type_hints(Settings)
    kinds |= {"options": OptionsForm, "fingerprint": dict[str, Any], "classes": list[str | bool | int] | None}
    kinds["place"] = Path | None
    del kinds[IGNORED]
    always = ("place", "options", "fingerprint")
    return {name: kind if name in always else NotRequired[kind] for name, kind in kinds.items()}


def lists_settings(function: Any) -> Any:
    """Shows the settings in the signature and the documentation of a function that takes them as ``**chosen``."""
    shown = inspect.signature(function)
    parameters = [item for item in shown.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
    settings = [
        inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=item.kind)
        for item in declarations()
    ]
    function.__signature__ = shown.replace(parameters=[*parameters, *settings, shown.parameters["chosen"]])
    lines = [f"            {item.name}: {item.meaning}" for item in declarations()]
    function.__doc__ += "\n        Settings:\n" + "\n".join(lines)
    return function


def current_settings(store: Store) -> Settings:
    """The settings now in force; another process may change them. What needs a permission of this machine's user, and
    has none, is left out."""
    return restrict(Settings.from_json(store.settings), store)


def allow_settings(store: Store, names: Iterable[str] | None = None, *, remember: bool = True) -> list[Permission]:
    """Allow what the settings on record ask for, or only what those of these names do: this machine's user chose them.
    Raises `StateUnavailable` if that cannot be remembered; without `remember` a warning says so."""
    needed = needed_permissions(Settings.from_json(store.settings), beside(store.name))
    return allow_permissions(store, [one for one in needed if names is None or one.name in names], remember=remember)


def allow_permissions(store: Store, chosen: list[Permission], *, remember: bool = True) -> list[Permission]:
    """Allow exactly this to a campaign. See `allow_settings`."""
    if store.name == MEMORY:
        grant_keys(store.id, [one.key for one in chosen])
        return chosen
    try:
        grant(store.id, chosen)
    except StateUnavailable as error:
        if remember:
            raise
        warnings.warn(f"{error}; until then the campaign opens restricted elsewhere", UserWarning, stacklevel=3)
    return chosen


def changed_settings(settings: Settings, chosen: Mapping[str, Any]) -> Settings:
    """The settings with some of them changed."""
    names = [declared.name for declared in declarations() if not declared.fixed]
    odd = next((name for name in chosen if name not in names), None)
    if odd is not None:
        raise InputError(f"{odd} cannot be changed; these can: {', '.join(names)}")
    changed = dataclasses.replace(settings, **chosen)
    if changed.classes is not None and settings.classes is not None:
        lost = next((label for label in settings.classes if label not in changed.classes), None)
        if lost is not None:
            raise LabelError(f"the class {lost!r} is missing and may have labels; list it too")
    return changed


def declared_classes(classes: Iterable[Any], labels: Sequence[Any]) -> tuple[Any, ...]:
    """The classes, each spelled like the equal existing label. Raises if a label is missing."""
    from ally.sources.export.answers import reads

    known = {reads(label): label for label in reversed(labels)}
    found = {reads(label): known.get(reads(label), label) for label in classes}
    lost = next((label for text, label in known.items() if text not in found), None)
    if lost is not None:
        raise LabelError(f"samples are labelled {lost!r}, which is not among the classes; list it too")
    return tuple(found.values())


def check_classes(classes: Any, task: Task) -> tuple[Any, ...]:
    """At least two distinct texts or numbers."""
    if task == "regression":
        raise LabelError("classes are given and the task is regression; leave one out")
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise LabelError.about("classes", classes, "; pass a list of all classes, such as ['cat', 'dog']")
    values = tuple(value.item() if hasattr(value, "item") else value for value in classes)
    too_many = _find_too_many(values)
    if too_many is not None:
        raise LabelError(f"{too_many}; leave classes out, and any label is one")
    odd = next((value for value in values if not isinstance(value, (str, bool, int)) or value == ""), None)
    if odd is not None or "" in values:
        raise LabelError(f"{odd!r} cannot be a class; use texts or whole numbers")
    for value in values:
        fault = find_text_fault(value, LONGEST_CLASS) if isinstance(value, str) else None
        if fault is not None:
            raise LabelError(f"the class {value!r:.80} {fault}")
    if len({str(value) for value in values}) != len(values):
        raise LabelError.about("classes", list(values), "holds two that read alike; list each once")
    if len(values) < 2:
        raise LabelError.about("classes", list(values), f"holds {len(values)}; a classifier needs at least two")
    return values
