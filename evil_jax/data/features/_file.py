"""Bytes of a large file, at any place in it."""

import os
import pathlib
import weakref


class File:
    """Reads parts of a file that stays as it is. pread has no file position: threads and forked processes may share it.

    A pickled copy opens the file again when it first reads. Nothing is mapped into memory, where a file that somebody
    cuts short would end the process.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.size = self.path.stat().st_size
        self._descriptor = None

    def __getstate__(self):
        return self.__dict__ | {'_descriptor': None}

    def read(self, start: int, end: int) -> bytes:
        """Bytes `start` to `end`; fewer where the file ends before."""
        if self._descriptor is None:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, descriptor)
            self._descriptor = descriptor
        parts = []
        while start < end and (part := os.pread(self._descriptor, min(end - start, 1 << 30), start)):
            parts.append(part)
            start += len(part)
        return b''.join(parts)
