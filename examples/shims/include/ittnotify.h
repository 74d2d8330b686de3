#include "../npuprof_itt.h"   /* SPDX-License-Identifier: MIT */
