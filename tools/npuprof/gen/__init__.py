# SPDX-License-Identifier: MIT
"""C headers from device descriptions: TOML and CMSIS-SVD in, one checked device, C out."""
