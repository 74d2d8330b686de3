/* coverage.h - in front of each program of `run.py --coverage`: a process that ends by _exit() writes its
   counts, too. Those of a process that a signal kills are lost. The linker's --wrap=_exit leads here.
   SPDX-License-Identifier: MIT */
#ifndef COVERAGE_H
#define COVERAGE_H

#ifdef __cplusplus
extern "C" {
#endif
void coverage_write(void) __asm__("__gcov_dump");
void coverage_real_exit(int status) __asm__("__real__exit");
void coverage_exit(int status) __asm__("__wrap__exit");
__attribute__((weak)) void coverage_exit(int status)
{
    coverage_write();
    coverage_real_exit(status);
}
#ifdef __cplusplus
}
#endif

#endif /* COVERAGE_H */
