/* Put before the types of a copy of npuprof.h: every atomic access of it is a place where between.c may let
   another thread go on.
   SPDX-License-Identifier: MIT */
#ifndef BETWEEN_H
#define BETWEEN_H
void between_point(const volatile void *place);
int between_clock(clockid_t clock, struct timespec *time);
int between_nap(const struct timespec *time, struct timespec *left);
#undef NPUPROF_LOAD_
#undef NPUPROF_STORE_
#undef NPUPROF_LOAD_ACQUIRE_
#undef NPUPROF_STORE_RELEASE_
#undef NPUPROF_ADD_
#undef NPUPROF_CAS_
#undef NPUPROF_LOAD_SEQ_
#undef NPUPROF_STORE_SEQ_
#undef NPUPROF_ADD_SEQ_
#undef NPUPROF_LOAD_PLAIN_
#define NPUPROF_LOAD_(p) (between_point(p), __atomic_load_n((p), __ATOMIC_SEQ_CST))
#define NPUPROF_LOAD_PLAIN_(p) NPUPROF_LOAD_(p)
#define NPUPROF_LOAD_ACQUIRE_(p) NPUPROF_LOAD_(p)
#define NPUPROF_LOAD_SEQ_(p) NPUPROF_LOAD_(p)
/* Why the value first: between it and the store lies the place, too. */
#define NPUPROF_STORE_(p, v) \
    __extension__({ \
        const __typeof__(*(p)) between_value_ = (v); \
        between_point(p); \
        __atomic_store_n((p), between_value_, __ATOMIC_SEQ_CST); \
    })
#define NPUPROF_STORE_RELEASE_(p, v) NPUPROF_STORE_(p, v)
#define NPUPROF_STORE_SEQ_(p, v) NPUPROF_STORE_(p, v)
#define NPUPROF_ADD_(p, v) \
    __extension__({ \
        const __typeof__(*(p)) between_value_ = (__typeof__(*(p)))(v); \
        between_point(p); \
        __atomic_fetch_add((p), between_value_, __ATOMIC_SEQ_CST); \
    })
#define NPUPROF_ADD_SEQ_(p, v) NPUPROF_ADD_(p, v)
#define NPUPROF_CAS_(p, expected, v) \
    __extension__({ \
        const __typeof__(*(p)) between_value_ = \
            (v); \
        between_point(p); \
        __atomic_compare_exchange_n((p), (expected), between_value_, 0, __ATOMIC_SEQ_CST, \
                                    __ATOMIC_SEQ_CST); \
    })
#define clock_gettime between_clock
#define nanosleep between_nap
#endif /* BETWEEN_H */
