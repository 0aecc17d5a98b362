"""Commands of a labelling campaign. All of them call `ally.campaign.Campaign`, never its store."""

from collections.abc import Callable

from ally.cli.campaign.asking import ask, release, skip, tell, undo
from ally.cli.campaign.changing import change
from ally.cli.campaign.classes import classes
from ally.cli.campaign.files import export, import_labels, rescan
from ally.cli.campaign.labelling import label
from ally.cli.campaign.learning import predict, retrain
from ally.cli.campaign.looking import review, status
from ally.cli.campaign.new import new
from ally.cli.campaign.trusting import trust

COMMANDS: dict[str, Callable[..., None]] = {
    "new": new,
    "label": label,
    "ask": ask,
    "tell": tell,
    "skip": skip,
    "undo": undo,
    "release": release,
    "status": status,
    "review": review,
    "import": import_labels,
    "export": export,
    "retrain": retrain,
    "predict": predict,
    "rescan": rescan,
    "change": change,
    "classes": classes,
    "trust": trust,
}

__all__ = ["COMMANDS"]
