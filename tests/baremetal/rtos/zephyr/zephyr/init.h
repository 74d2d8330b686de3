/* zephyr/init.h - how a module's function runs at the start of Zephyr, for the compiler alone.
   SPDX-License-Identifier: MIT */
#ifndef ZEPHYR_INIT_H
#define ZEPHYR_INIT_H
#define SYS_INIT(function, level, priority) int (*const sys_init_##level##_##priority)(void) = function
#endif
