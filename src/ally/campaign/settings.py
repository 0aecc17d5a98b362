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
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypedDict, get_args, get_type_hints

from ally.campaign.permissions import Permission, grant, grant_keys, needed_permissions, restrict
from ally.campaign.places import beside
from ally.campaign.setting_checks import (
    Check,
    allow_none,
    check_classes,
    check_count_or_cv,
    check_flag,
    check_later,
    check_lease,
    check_model,
    check_natural,
    check_positive,
    check_share,
    check_text,
    check_threads,
    find_too_many,
    make_choice_check,
)
from ally.catalogue_names import KEPT_MODEL, LEARNERS, MODELS
from ally.errors import AllyError, InputError, LabelError, StateUnavailable, StoreDamaged, StoreVersion
from ally.execution.resolve import ensure_named
from ally.json_form import find_misfit
from ally.metrics import metric_for
from ally.types import BOTH_TASKS, Task

if TYPE_CHECKING:
    from ally.store import Store
    from ally.store.values import Policy

Vote: TypeAlias = Literal["last", "majority"]
"""Policies a campaign can choose from; `Settings.store_policy` maps them to the store's."""

Evaluate: TypeAlias = int | Literal["cv"]
"""Samples held out to measure the learning curve, or "cv": none, and cross-validation on the training labels."""

VERSION = 1
RECORDED_AS = {"random_state": "seed", "validation": "validate"}
"""Settings that a campaign's record has under another name."""
IGNORED = "ignored"
MEMORY = ":memory:"
"""What a store calls itself that ends with its process."""
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
    given_kind: Any = None,
    needs_permission: Callable[[Any], str | None] | None = None,
) -> Any:
    """A field of `Settings`. `given` is the default before the campaign is created, if different, and
    `given_kind` the type then. `needs_permission` says what a value would do that only this machine's user may allow
    (`ally.campaign.permissions`), or None."""
    metadata = {"group": group, "meaning": meaning, "check": check, "fixed": fixed}
    metadata["given"] = default if given is dataclasses.MISSING else given
    metadata["given_kind"] = given_kind
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
            kind = item.metadata["given_kind"] or kinds[item.name]
            kind = kind if first is not None or item.default is None else kind | None
            found.append(
                Declared(item.name, first, kind, *(item.metadata[key] for key in ("meaning", "group", "fixed")))
            )
    return tuple(found)


def what_model_does(model: str | None) -> str | None:
    if model is None or model in LEARNERS or model in MODELS:
        return None
    return "rebuilds an estimator stored in the campaign" if model.startswith(KEPT_MODEL) else "runs code"


def what_engine_does(engine: str) -> str | None:
    return None if engine == "local" else "connects to a cluster, or starts one"


@dataclass(frozen=True)
class Settings:
    """Settings of a campaign: where its source is, and what `declarations` lists.

    Attributes:
        place: the folder or file of the source; None if it lives in memory and is passed at each opening.
        options: the other arguments of `ally.data.open_source`.
        fingerprint: what was learned from the source, so that features keep their meaning.
        ignored: what is on record and not in force here, because its user did not allow it on this machine.
    """

    place: str | None
    options: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    task: Task = setting(
        "classification",
        "Labels",
        "What is learned: 'classification' or 'regression' (default: 'auto', as the labels that come with the source "
        "say, else 'classification').",
        make_choice_check(*sorted(BOTH_TASKS)),
        fixed=True,
        given="auto",
        given_kind=Task | Literal["auto"],
    )
    classes: tuple[Any, ...] | None = setting(None, "Labels", "All classes (default: any label is one).", check_later)
    strategy: str = setting(
        "ally", "Learner", "How samples are chosen: a name listed by `ally strategies`.", check_text
    )
    objective: str | None = setting(
        None,
        "Learner",
        "How the learner is trained; 'auto': a network by the best of erm, pdcl and smooth-unlabelled (default: as the "
        "strategy does).",
        allow_none(check_text),
    )
    model: str | None = setting(
        "auto",
        "Learner",
        "What learns: a name, module:builder of your own, or 'auto' for the best by cross-validation on the labels.",
        allow_none(check_model),
        needs_permission=what_model_does,
    )
    encoder: str | None = setting(
        None,
        "Learner",
        "A pretrained encoder of texts or photos: a name, the folder of a model, or 'none' (default: 'auto', the one "
        "that is installed).",
        allow_none(check_text),
        fixed=True,
        given="auto",
    )
    batch: int = setting(
        20, "Queries", "Samples in a query. The learner is trained again after as many answers.", check_positive
    )
    lease_seconds: float = setting(
        3600.0, "Annotators", "How long a sample stays reserved for whoever asked for it.", check_lease
    )
    policy: Vote = setting(
        "last",
        "Annotators",
        "Which label counts if annotators disagree. For numbers, the majority is the median.",
        make_choice_check(*get_args(Vote)),
    )
    opinions: int = setting(
        1, "Annotators", "How many different annotators are asked about each sample.", check_positive
    )
    evaluate: Evaluate = setting(
        0,
        "Queries",
        "Random samples held out for the learning curve (default: 100, or a tenth if that is fewer). 'cv' holds out "
        "none and measures by cross-validation on the chosen labels.",
        check_count_or_cv,
        fixed=True,
        given=None,
    )
    validation: int = setting(0, "Queries", "Random samples held out for early stopping.", check_natural, fixed=True)
    held_out_share: float = setting(
        0.25, "Queries", "Share of each query for held-out samples until they are labelled.", check_share
    )
    random_share: float = setting(0.0, "Queries", "Share of each query chosen at random, for comparison.", check_share)
    budget: int | None = setting(
        None, "Queries", "Total label budget, used in the advice on when to stop.", allow_none(check_positive)
    )
    look_at: int = setting(
        100_000, "Learner", "Unlabelled samples to consider in each training, drawn at random.", check_positive
    )
    threads: int | None = setting(
        None,
        "Learner",
        "CPU threads for training in the background (default: all cores but one).",
        allow_none(check_threads),
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
        allow_none(check_text),
    )
    automatic: bool = setting(True, "Learner", "Train automatically when there are enough new answers.", check_flag)
    random_state: int = setting(
        0, "Queries", "Seed of the random order of samples and of the training.", check_natural, fixed=True
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
        if (self.held_out or self.validation) and not self.held_out_share:
            raise InputError("samples are held out, but the share of queries for them is 0; use a share such as 0.25")

    @property
    def encoded(self) -> Mapping[str, Any] | None:
        """What the fingerprint keeps of the encoder; None without one."""
        from ally.data.fingerprint import ENCODED

        return self.fingerprint.get(ENCODED)

    def fingerprint_without_encoder(self) -> dict[str, Any]:
        from ally.data.fingerprint import ENCODED

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
        names = [item.name for item in dataclasses.fields(self) if item.name != IGNORED]
        values = {RECORDED_AS.get(name, name): getattr(self, name) for name in names}
        return {"version": VERSION, **values, "classes": None if self.classes is None else list(self.classes)}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Settings:
        """The settings on record. Raises `StoreDamaged` unless each has a type and a value it can have."""
        if kept.get("version") != VERSION:
            raise StoreVersion(
                f"the campaign's settings have version {kept.get('version')!r:.60} and {VERSION} is needed; update ally"
            )
        values = {name: value for name, value in kept.items() if name != "version"}
        from ally.data.fingerprint import find_fingerprint_misfit, find_side_misfit

        misfit = (
            find_too_many(values.get("classes"))
            or find_misfit(values, _form(), "the settings")
            or find_side_misfit(values["options"])
            or find_fingerprint_misfit(values["fingerprint"])
        )
        if misfit is not None:
            raise StoreDamaged(f"{misfit}; the campaign is damaged: restore a backup")
        if values.get("classes") is not None:
            values["classes"] = tuple(values["classes"])
        for name, recorded in RECORDED_AS.items():
            if recorded in values:
                values[name] = values.pop(recorded)
        try:
            return cls(**values)
        except AllyError as error:
            raise StoreDamaged(f"the settings are damaged ({error}); restore a backup") from error


class OptionsForm(TypedDict):
    """Options of a source, as a campaign keeps them. None stands for what was in memory."""

    kind: NotRequired[str | None]
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
    return {RECORDED_AS.get(name, name): kind if name in always else NotRequired[kind] for name, kind in kinds.items()}


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
    from ally.data.export.answers import reads

    known = {reads(label): label for label in reversed(labels)}
    found = {reads(label): known.get(reads(label), label) for label in classes}
    lost = next((label for text, label in known.items() if text not in found), None)
    if lost is not None:
        raise LabelError(f"samples are labelled {lost!r}, which is not among the classes; list it too")
    return tuple(found.values())
