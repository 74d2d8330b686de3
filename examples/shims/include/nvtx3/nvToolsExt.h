#include "../../npuprof_nvtx.h"   /* SPDX-License-Identifier: MIT */
