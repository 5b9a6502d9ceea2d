"""Files: fitted estimators saved, loaded and looked into without running code."""

from kplus.persist.save import ArrayInfo, ModelInfo, inspect, load, save

__all__ = ["ArrayInfo", "ModelInfo", "inspect", "load", "save"]
