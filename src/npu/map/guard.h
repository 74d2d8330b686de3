#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../api.h"
#include "target.h"
#ifndef _WIN32
#include <signal.h>
#endif

/* desc.catch_sigbus: a table of the mappings that a SIGBUS may come from, and the handler that puts an empty
   page in place of one. May not know what the registers mean.

   npuprof_npu_guards_: written under npuprof_npu_guards_lock_, `bytes` and `gone` first, then `base` with
   release order. Handlers read it without the lock, `base` first, with acquire order.
   npuprof_npu_guards_used_, npuprof_npu_has_handler_, npuprof_npu_old_action_: under the lock. The handler
   reads npuprof_npu_old_action_, too; it is written before the handler is installed.
   Why a table and not a list: a handler walks it while other threads open and close devices. */

#ifndef _WIN32
enum { NPUPROF_NPU_GUARDS_ = 255 };
typedef struct npuprof_npu_guard_ {
    uintptr_t base;                      /* 0 = free */
    size_t bytes;
    uint32_t *gone;
} npuprof_npu_guard_;
static npuprof_npu_guard_ npuprof_npu_guards_[NPUPROF_NPU_GUARDS_];
static uint32_t npuprof_npu_guards_used_, npuprof_npu_guards_lock_;
static bool npuprof_npu_has_handler_;
static struct sigaction npuprof_npu_old_action_;

/* Sets `gone`, then changes the mapping. Why no page of all ones: others may read it before it is filled. */
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    for (int i = 0; i < NPUPROF_NPU_GUARDS_; i++) {
        npuprof_npu_guard_ *guard = &npuprof_npu_guards_[i];
        const uintptr_t base = NPUPROF_LOAD_ACQUIRE_(&guard->base);
        if (!base || (uintptr_t)address - base >= guard->bytes) continue;
        const int error = errno;
        NPUPROF_STORE_RELEASE_(guard->gone, 1u);
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        const bool done = mmap((void *)base, guard->bytes, PROT_READ, flags, -1, 0) != MAP_FAILED;
        errno = error;
        return done;
    }
    return false;
}

static void npuprof_npu_on_sigbus_(int number, siginfo_t *info, void *context)
{
    const struct sigaction *old = &npuprof_npu_old_action_;
    if (info->si_code > 0 && npuprof_npu_fault(info->si_addr)) return;
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(number, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(number);
    } else {                             /* back to the default action: the fault comes again */
        (void)sigaction(number, old, NULL);
        if (info->si_code <= 0) (void)raise(number);
    }
}

static void npuprof_npu_lock_guards_(void)
{
    uint32_t expected;
    do expected = 0; while (!NPUPROF_CAS_(&npuprof_npu_guards_lock_, &expected, 1u));
}

static void npuprof_npu_guard_map_(npuprof_npu *npu)
{
    npuprof_npu_lock_guards_();
    for (uint32_t i = 0; i < NPUPROF_NPU_GUARDS_ && !npu->guard_; i++) {
        npuprof_npu_guard_ *guard = &npuprof_npu_guards_[i];
        if (guard->base) continue;
        guard->bytes = npu->map_bytes_;
        guard->gone = &npu->gone_;
        NPUPROF_STORE_RELEASE_(&guard->base, (uintptr_t)npu->map_);
        npu->guard_ = i + 1;
        npuprof_npu_guards_used_++;
    }
    if (!npuprof_npu_has_handler_) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = npuprof_npu_on_sigbus_;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        npuprof_npu_has_handler_ = sigaction(SIGBUS, &action, &npuprof_npu_old_action_) == 0;
    }
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_lock_, 0u);
}

static void npuprof_npu_unguard_map_(npuprof_npu *npu)
{
    struct sigaction now;
    if (!npu->guard_) return;
    npuprof_npu_lock_guards_();
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_[npu->guard_ - 1].base, (uintptr_t)0);
    npu->guard_ = 0;
    /* Why it looks first: a handler that was installed later calls ours, which then has to stay. */
    if (--npuprof_npu_guards_used_ == 0 && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
        now.sa_sigaction == npuprof_npu_on_sigbus_)
        npuprof_npu_has_handler_ = sigaction(SIGBUS, &npuprof_npu_old_action_, NULL) != 0;
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_lock_, 0u);
}

#else /* _WIN32 */

NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    (void)address;
    return false;
}

#endif /* !_WIN32 */
