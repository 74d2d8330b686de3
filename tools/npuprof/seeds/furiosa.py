# SPDX-License-Identifier: MIT
"""The profiler of FuriosaAI's SDK, by its names: profile, RecordFormat, Resource."""

import enum

from ..base.messages import Refused
from ..recording.profile import RecordFormat, profile as own

__all__ = ["RecordFormat", "Resource", "profile"]
HOST_COLUMN, DEVICE_CATEGORY = "cat", "NPU"


class Resource(enum.Enum):
    ALL = "all"
    CPU = "cpu"
    NPU = "npu"


class profile(own):
    """npuprof.profile in the order of Furiosa's arguments. Each inference has a trace id of its own.

    resource    chooses the rows of the data frame; a file has all
    """

    _one_id_an_inference = True

    def __init__(self, resource=Resource.ALL, format=RecordFormat.ChromeTrace, file=None):
        super().__init__(file, format=format)
        try:
            self.resource = Resource(getattr(resource, "value", resource))
        except ValueError:
            raise Refused(f"resource {resource!r}: it is Resource.ALL, CPU or NPU") from None

    def get_pandas_dataframe(self):
        frame = super().get_pandas_dataframe()
        if self.resource is Resource.ALL:
            return frame
        return frame[(frame[HOST_COLUMN] == DEVICE_CATEGORY) == (self.resource is Resource.NPU)]

    def get_pandas_dataframe_with_filter(self, column, value):
        frame = self.get_pandas_dataframe()
        return frame[frame[column] == value]

    def get_cpu_pandas_dataframe(self):
        frame = super().get_pandas_dataframe()
        return frame[frame[HOST_COLUMN] != DEVICE_CATEGORY]

    def get_npu_pandas_dataframe(self):
        return self.get_pandas_dataframe_with_filter(HOST_COLUMN, DEVICE_CATEGORY)

    def export_chrome_trace(self, filename):
        self.dump(filename)
