"""wisp: small Transformers that recommend, and learn on the device with differential privacy.

    import wisp

    with wisp.Recommender.open("cafe.wisp") as model:
        items, scores = model.recommend([12, 7, 31], k=5)
        print(model.names(items))

Errors are wisp.Error; the text is a sentence that names the file, the value and what is allowed. An argument of an
impossible type is a TypeError. A guide: docs/python.md.
"""

import atexit as _atexit
import inspect as _inspect

from . import _calls
from ._core import end as _end
from ._core import version
from ._errors import (
    Cancelled,
    Closed,
    Error,
    InternalError,
    InvalidArgument,
    InvalidData,
    IoError,
    PrivacyRefused,
    TooEarly,
    Unsupported,
)
from ._deployment import (
    NewItem,
    budget,
    budget_history,
    catalogue_add,
    catalogue_retire,
    change_plan,
    evaluate,
    make_plan,
    rebase,
    rebase_adapter,
    run_planned,
)
from ._fit import FitParams, SequenceRecommender, fit
from ._html import Statement
from ._log import Log
from ._private import PrivateGenerator, PrivateRecommender, SampleOptions
from ._program import compress, convert, export, run_program, train, train_classifier
from ._ranking import Ranking
from ._recommender import OpenOptions, Recommender, Session, describe_device, plan_memory
from ._results import (
    Budget,
    BudgetHistory,
    FitReport,
    Generated,
    LogCounts,
    ModelInfo,
    ModelMemory,
    Plan,
    Provenance,
    Quality,
    Rebased,
    RunReport,
    Spent,
    Step,
    TextInfo,
    TrainingMemory,
    TrainingReport,
)
from ._texts import GenerateOptions, TextModel
from ._training import Anchor, personalise, plan_training_memory, privacy_statement, privacy_statement_json, train_texts

__version__ = version()

__all__ = [
    "Anchor", "Budget", "BudgetHistory", "Cancelled", "Closed", "Error", "FitParams", "FitReport",
    "GenerateOptions", "Generated", "InternalError", "InvalidArgument", "InvalidData", "IoError", "Log",
    "LogCounts", "ModelInfo", "ModelMemory", "NewItem", "OpenOptions", "Plan", "PrivacyRefused", "PrivateGenerator",
    "PrivateRecommender", "Provenance", "Quality", "Ranking", "Rebased", "Recommender", "RunReport",
    "SampleOptions", "SequenceRecommender", "Session", "Spent", "Statement", "Step", "TextInfo", "TextModel",
    "TooEarly", "TrainingMemory", "TrainingReport", "Unsupported", "__version__", "budget", "budget_history",
    "catalogue_add", "catalogue_retire", "change_plan", "compress", "convert", "describe_device", "evaluate",
    "export", "fit", "make_plan", "personalise", "plan_memory", "plan_training_memory", "privacy_statement",
    "privacy_statement_json", "rebase", "rebase_adapter", "run_planned", "run_program", "train", "train_classifier",
    "train_texts",
]  # fmt: skip

for _object in (Log, PrivateGenerator, PrivateRecommender, Recommender, SequenceRecommender, Session, TextModel):
    _calls.explain_methods(_object)
for _name in __all__:
    if _inspect.isfunction(globals()[_name]):
        globals()[_name] = _calls.explain_function(globals()[_name])
del _name, _object
_atexit.register(_end)
