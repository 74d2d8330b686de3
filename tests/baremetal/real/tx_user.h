/* tx_user.h - the real ThreadX in these tests.
   SPDX-License-Identifier: MIT */
#ifndef TX_USER_H
#define TX_USER_H
#define TX_ENABLE_STACK_CHECKING
#include "npuprof_threadx.h"
#endif
