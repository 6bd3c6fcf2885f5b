"""A second device made of CPU numbers, to find tensors that lie on the wrong one.

Tensors that are sent to the device "lazy", or made there, hold their numbers on the CPU and say
that they lie elsewhere. Within `OtherDevice()` an operation on tensors of both devices fails, as it
would on a GPU; indices, scalars and copies from one to the other may be mixed, as there.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

NAME = "lazy"
aten = torch.ops.aten
COPIES = (aten._to_copy.default, aten.copy_.default)
INDEXED = (aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default)


class Elsewhere(torch.Tensor):
    "A tensor of the other device."

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held):
        how = dict(strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype)
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, device=NAME, **how)

    def __init__(self, held):
        self.held = held

    def tolist(self):
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
        raise RuntimeError(f"{f} on the other device, outside of OtherDevice()")


def refuse_two_devices(f, args, kwargs):
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    there = any(isinstance(x, Elsewhere) for x in tensors)
    here = any(not isinstance(x, Elsewhere) and x.dim() for x in tensors)
    indexed = f in INDEXED and isinstance(args[0], Elsewhere)
    if there and here and f not in COPIES and not indexed:
        raise RuntimeError(f"{f}: tensors on two devices")
    return there


GENERATOR, AUTOCAST, TENSOR = torch.Generator, torch.autocast, torch.tensor
INFERENCE, MATMUL, NEW = torch.inference_mode, torch.Tensor.__matmul__, torch.Tensor.new_tensor


class _IsGenerator(type(GENERATOR)):
    def __instancecheck__(cls, x):
        return isinstance(x, GENERATOR)


class _Generator(GENERATOR, metaclass=_IsGenerator):
    "A generator of the other device draws on the CPU."

    def __new__(cls, device="cpu"):
        return GENERATOR.__new__(GENERATOR, "cpu" if torch.device(device).type == NAME else device)


def _autocast(device, *args, **kwargs):
    return AUTOCAST("cpu" if device == NAME else device, *args, **kwargs)


def _tensor(data, *, device=None, **kwargs):
    made = TENSOR(data, **kwargs)
    return made if device is None else made.to(device)


def _new_tensor(like, data):
    return TENSOR(data, dtype=like.dtype).to(like.device)


def _matmul(a, b):  # torch squeezes the product of a vector in place, which Elsewhere cannot follow
    return MATMUL(a[None], b)[0] if a.dim() == 1 and b.dim() == 2 else MATMUL(a, b)


class OtherDevice(TorchDispatchMode):
    "Within it there are two devices; `made` counts what was made on the other one."

    def __init__(self):
        super().__init__()
        self.made = 0

    def __enter__(self):
        torch.Generator, torch.autocast, torch.tensor = _Generator, _autocast, _tensor
        torch.inference_mode = torch.no_grad  # what it makes cannot be held by another tensor
        torch.Tensor.__matmul__, torch.Tensor.new_tensor = _matmul, _new_tensor
        return super().__enter__()

    def __exit__(self, *raised):
        torch.Generator, torch.autocast, torch.tensor = GENERATOR, AUTOCAST, TENSOR
        torch.inference_mode, torch.Tensor.__matmul__ = INFERENCE, MATMUL
        torch.Tensor.new_tensor = NEW
        return super().__exit__(*raised)

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        goes_there = refuse_two_devices(f, args, kwargs)
        if kwargs.get("device") is not None:
            goes_there = torch.device(kwargs["device"]).type == NAME
            kwargs["device"] = "cpu"
        held = tree_map_only(Elsewhere, lambda x: x.held, (args, kwargs))
        found = f(*held[0], **held[1])
        if "out" in kwargs:
            return kwargs["out"]
        if f._schema.name.endswith("_"):
            return args[0]
        self.made += goes_there
        return tree_map_only(torch.Tensor, Elsewhere, found) if goes_there else found
