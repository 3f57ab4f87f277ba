# SPDX-License-Identifier: BSD-3-Clause
"""DLPack's capsules, read and made by ctypes, after https://dmlc.github.io/dlpack/latest/c_api.html: what another library would do."""
import ctypes

CPU, CUDA = 1, 2
READ_ONLY, COPIED = 1, 2
CODES = {"float32": (2, 32), "float64": (2, 64), "complex64": (5, 64), "complex128": (5, 128), "int32": (0, 32), "bfloat16": (4, 16)}
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32), ("dimensions", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", Deleter), ("flags", ctypes.c_uint64),
                ("tensor", Tensor)]


NAMES = {b"dltensor": Managed, b"dltensor_versioned": Versioned}
_TENSORS = []  # those of producers, which outlive them
USED = {name: b"used_" + name for name in NAMES}  # capsules keep the addresses of these texts


def _api(name, result, *arguments):
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


name_of = _api("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Taken:
    """Takes the tensor of a capsule, as a consumer does. It must be freed, once, by free()."""

    def __init__(self, capsule):
        name = name_of(capsule)
        self.managed = ctypes.cast(_pointer(capsule, name), ctypes.POINTER(NAMES[name]))[0]
        _rename(capsule, USED[name])
        tensor = self.managed.tensor
        self.address, self.device, self.byte_offset = tensor.data, (tensor.kind, tensor.number), tensor.byte_offset
        self.shape, self.strides = tuple(tensor.sizes[:tensor.dimensions]), tuple(tensor.strides[:tensor.dimensions])
        self.dtype = {code: each for each, code in CODES.items()}[tensor.code, tensor.bits] if tensor.lanes == 1 else None
        self.flags, self.version = (self.managed.flags, self.managed.major) if name == b"dltensor_versioned" else (None, 0)
        self._capsule = capsule

    def free(self):
        self.managed.deleter(ctypes.addressof(self.managed))  # ctypes lets go of the interpreter's lock during the call
        self.managed = None


class Producer:
    """An array of another library, of which only DLPack is known: memory at an address, described as one likes. Strides are in elements.

    ``made`` counts capsules, and ``freed`` calls of deleters; ``streams`` are those that were to wait. Versions before (1, 0) do not know max_version.
    """

    def __init__(self, address, shape, strides, dtype, device=(CPU, 0), *, lanes=1, byte_offset=0, flags=0, version=(1, 0), keeps=None, consumed=False):
        self.facts = (address, shape, strides, dtype, lanes, byte_offset, flags)
        self.device, self.version, self.keeps, self.consumed = device, version, keeps, consumed
        self.made, self.freed, self.streams, self.capsule = 0, 0, [], None

    @classmethod
    def of(cls, array, **changes):
        """An array of NumPy's on the host."""
        strides = tuple(stride // array.itemsize for stride in array.strides)
        return cls(array.ctypes.data, array.shape, strides, array.dtype.name, keeps=array, **changes)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if self.version[0] < 1 and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        if "stream" in options:
            self.streams.append(options["stream"])
        address, shape, strides, dtype, lanes, byte_offset, flags = self.facts
        name = next(each for each in NAMES if (each == b"dltensor_versioned") == (self.version[0] >= 1))
        managed = NAMES[name]()
        if self.version[0] >= 1:
            managed.major, managed.minor = self.version
            managed.flags = flags
        tensor = managed.tensor
        tensor.data, (tensor.kind, tensor.number), tensor.dimensions, tensor.lanes, tensor.byte_offset = address, self.device, len(shape), lanes, byte_offset
        tensor.code, tensor.bits = CODES[dtype]
        sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        tensor.sizes = sizes
        if strides is not None:
            tensor.strides = (ctypes.c_int64 * max(1, len(shape)))(*strides)

        def free(_):
            self.freed += 1

        managed.deleter = Deleter(free)
        self.made += 1
        _TENSORS.append((self, managed, sizes))
        self.capsule = _new(ctypes.addressof(managed), USED[name] if self.consumed else name, None)
        return self.capsule
