#include "../../npuprof_tracy.h"   /* SPDX-License-Identifier: MIT */
