/* played.h - the library, the world of play.h, and the models of this folder; a test's knobs stand before.
   SPDX-License-Identifier: MIT */
#ifndef PLAYED_H
#define PLAYED_H

#include "npu/models/play.h"
#include "trace.h"
#include "npu/fed.h"
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npu/models/play_run.h"
#include "npu/models/all.h"

#endif /* PLAYED_H */
