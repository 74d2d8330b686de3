#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#if defined(__linux__) && defined(__LP64__)
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

/* Linux: clock_gettime() as the kernel itself gives it to the process, in the page of code that it maps
   for that (vdso(7)). Why: who fakes the time of a program replaces the C library's function. This one stays,
   and readers compare the two. Why not a system call: a sandbox may end the process for it.

   This part knows the kernel's page and nothing else. */

typedef int (*npuprof_os_clock_read_)(clockid_t clock, struct timespec *to);

/* The dynamic section of the page, and what its addresses count from. NULL: there is none. */
static const Elf64_Dyn *npuprof_os_vdso_dynamic_(const uint8_t *page, uintptr_t *base)
{
    const Elf64_Ehdr *const head = (const Elf64_Ehdr *)(const void *)page;
    const Elf64_Phdr *const part = (const Elf64_Phdr *)(const void *)(page + head->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    bool loaded = false;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (part[i].p_type == PT_LOAD && !loaded) {
            *base = (uintptr_t)page + (uintptr_t)part[i].p_offset - (uintptr_t)part[i].p_vaddr;
            loaded = true;
        }
        if (part[i].p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(const void *)(page + part[i].p_offset);
    }
    return loaded ? dynamic : NULL;
}

/* NULL: the kernel gives none.
   Why the table of symbols ends where their names begin: the number of symbols stands nowhere, and the
   kernel lays the two side by side. */
static npuprof_os_clock_read_ npuprof_os_vdso_find_(void)
{
    const uint8_t *const page = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    const Elf64_Sym *symbol = NULL;
    const char *names = NULL;
    uintptr_t base = 0, found;
    npuprof_os_clock_read_ read;
    if (!page || memcmp(page, ELFMAG, SELFMAG) != 0) return NULL;
    const Elf64_Dyn *d = npuprof_os_vdso_dynamic_(page, &base);
    for (; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB) names = (const char *)(base + (uintptr_t)d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB) symbol = (const Elf64_Sym *)(base + (uintptr_t)d->d_un.d_ptr);
    }
    if (!names || !symbol) return NULL;
    for (; (uintptr_t)(symbol + 1) <= (uintptr_t)names; symbol++) {
        const char *const name = names + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF ||
            (strcmp(name, "__vdso_clock_gettime") != 0 && strcmp(name, "__kernel_clock_gettime") != 0))
            continue;
        found = base + (uintptr_t)symbol->st_value;
        memcpy(&read, &found, sizeof read);
        return read;
    }
    return NULL;
}
#endif /* __linux__ && __LP64__ */
