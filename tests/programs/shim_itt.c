/* A program written against ITT, compiled with examples/shims instead: in C and in C++.
   SPDX-License-Identifier: MIT */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1        /* MAP_ANONYMOUS */
#endif
#include <ittnotify.h>

#include <string.h>
#include <sys/mman.h>

/* A text right before memory that nobody may read. NULL: there is none. */
static const char *at_the_end(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *const pages = (char *)mmap(NULL, 2 << 16, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + (1 << 16), 1 << 16, PROT_NONE) != 0) return NULL;
    return (const char *)memcpy(pages + (1 << 16) - bytes, text, bytes);
}

int main(void)
{
    __itt_domain *const domain = __itt_domain_create("d");
    __itt_string_handle *const task = __itt_string_handle_create("task");
    __itt_string_handle *const key = __itt_string_handle_create("key");
    const __itt_id id = __itt_id_make(domain, 7), parent = __itt_id_make(NULL, 0);
    int64_t values[] = { -5, 6 };
    int32_t depth = 3;
    double real = 2.5;
    __itt_thread_set_name("named by ITT");
    __itt_id_create(domain, id);
    __itt_task_begin(domain, id, parent, task);
    __itt_metadata_add(domain, id, key, __itt_metadata_s64, 1, values);
    __itt_metadata_str_add(domain, __itt_null, task, "a text that is longer", 6);
    __itt_metadata_str_add(domain, __itt_null, __itt_string_handle_create("whole"), at_the_end("to its 0"),
                           (size_t)-1);
    __itt_task_begin(domain, __itt_null, id, key);
    __itt_metadata_add(domain, id, key, __itt_metadata_s64, 1, values);        /* not of the innermost */
    __itt_metadata_add(domain, __itt_null, key, __itt_metadata_s64, 2, values);
    __itt_formatted_metadata_add(domain, __itt_string_handle_create("%d of %s"), 3, "four");
    __itt_task_end(domain);
    __itt_marker(domain, __itt_null, task, __itt_scope_task);
    __itt_task_end(domain);
    domain->flags = 0;
    __itt_task_begin(domain, __itt_null, __itt_null, task);
    __itt_task_end(domain);
    domain->flags = 1;
    __itt_task_begin_overlapped(domain, id, id, task);
    __itt_task_end_overlapped(domain, id);
    __itt_region_begin(domain, id, __itt_null, key);
    __itt_region_end(domain, id);
    __itt_frame_begin_v3(domain, NULL);
    __itt_frame_end_v3(domain, NULL);
    const __itt_timestamp now = __itt_get_timestamp();
    __itt_frame_submit_v3(domain, NULL, now - 3000, now);
    const __itt_counter plain = __itt_counter_create("plain", "of domain");
    __itt_counter_inc_delta(plain, 3);
    __itt_counter_dec(plain);
    const __itt_counter typed = __itt_counter_create_typed("depth", NULL, __itt_metadata_s32);
    __itt_counter_set_value(typed, &depth);
    __itt_counter_set_value(__itt_counter_create_typed("real", NULL, __itt_metadata_double), &real);
    __itt_counter_dec_v3(domain, key);
    const __itt_event event = __itt_event_create("event and more", 5);
    __itt_event_start(event);
    __itt_event_end(event);
    __itt_event_start(0);
    __itt_relation_add(domain, id, __itt_relation_is_child_of, id);
    __itt_sync_acquired(domain);
    __itt_sync_releasing(domain);
    __itt_pause();
    __itt_task_begin(domain, __itt_null, __itt_null, task);
    __itt_task_end(domain);
    __itt_resume();
    return domain != __itt_domain_create("d") || task != __itt_string_handle_create("task");
}
