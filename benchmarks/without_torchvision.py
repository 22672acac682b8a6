"""streaming without its pictures: it imports that part with everything else, and torchvision does not load beside every
torch. Peers' scripts call this first, in the peers' environment; it imports nothing of ours.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


def leave_out() -> None:
    """Put modules in torchvision's place that hold the names which streaming asks for; no picture can be read then."""
    names = ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.transforms.functional")
    for name in names:
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        sys.modules[name] = module
    vars(sys.modules["torchvision.datasets"]).update(VisionDataset=object, CIFAR10=object)
    vars(sys.modules["torchvision.transforms.functional"]).update(to_tensor=None)
