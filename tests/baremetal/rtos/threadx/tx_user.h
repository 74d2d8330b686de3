/* tx_user.h - the configuration of these tests.
   SPDX-License-Identifier: MIT */
#define TX_ENABLE_EXECUTION_CHANGE_NOTIFY
#define TX_ENABLE_STACK_CHECKING
#include "npuprof_threadx.h"
