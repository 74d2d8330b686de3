/* What npuprof_iree.h needs of IREE's profile records (b48a5955, August 2026): the same names, types and
   order, written for the tests.
   SPDX-License-Identifier: MIT */
#pragma once
#include <iree/base/api.h>

#define IREE_HAL_PROFILE_CONTENT_TYPE_DEVICES IREE_SV("application/vnd.iree.hal.profile.devices")
#define IREE_HAL_PROFILE_CONTENT_TYPE_QUEUES IREE_SV("application/vnd.iree.hal.profile.queues")
#define IREE_HAL_PROFILE_CONTENT_TYPE_EXECUTABLES IREE_SV("application/vnd.iree.hal.profile.executables")
#define IREE_HAL_PROFILE_CONTENT_TYPE_EXECUTABLE_FUNCTIONS \
    IREE_SV("application/vnd.iree.hal.profile.executable-functions")
#define IREE_HAL_PROFILE_CONTENT_TYPE_CLOCK_CORRELATIONS \
    IREE_SV("application/vnd.iree.hal.profile.clock-correlations")
#define IREE_HAL_PROFILE_CONTENT_TYPE_DISPATCH_EVENTS \
    IREE_SV("application/vnd.iree.hal.profile.dispatch-events")
enum {
    IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_DEVICE_TICK = 1,
    IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_HOST_CPU_TIMESTAMP = 2,
    IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_HOST_TIME_BRACKET = 8
};

typedef struct iree_hal_profile_device_record_t {
    uint32_t record_length, flags, physical_device_ordinal, queue_count;
    uint8_t physical_device_uuid[16];
} iree_hal_profile_device_record_t;

typedef struct iree_hal_profile_queue_record_t {
    uint32_t record_length, physical_device_ordinal, queue_ordinal, reserved0;
    uint64_t stream_id;
} iree_hal_profile_queue_record_t;

typedef struct iree_hal_profile_executable_record_t {
    uint32_t record_length, flags;
    uint64_t executable_id;
    uint32_t function_count, reserved0;
    uint64_t code_object_hash[2];
} iree_hal_profile_executable_record_t;

typedef struct iree_hal_profile_executable_function_record_t {
    uint32_t record_length, flags;
    uint64_t executable_id;
    uint32_t function_ordinal, constant_count, binding_count, parameter_count, workgroup_size[3], name_length;
    uint64_t function_hash[2];
} iree_hal_profile_executable_function_record_t;

typedef struct iree_hal_profile_clock_correlation_record_t {
    uint32_t record_length, flags, physical_device_ordinal, reserved0;
    uint64_t sample_id, device_tick, host_cpu_timestamp_ns, host_system_timestamp, host_system_frequency_hz;
    int64_t host_time_begin_ns, host_time_end_ns;
} iree_hal_profile_clock_correlation_record_t;

typedef struct iree_hal_profile_dispatch_event_t {
    uint32_t record_length, flags;
    uint64_t event_id, submission_id, command_buffer_id, executable_id;
    uint32_t command_index, function_ordinal, workgroup_count[3], workgroup_size[3];
    uint64_t start_tick, end_tick;
} iree_hal_profile_dispatch_event_t;

/* All zero, but the length and what says "none". */
#define IREE_DEFAULT(type, function, set)               \
    static inline type function(void)                   \
    {                                                   \
        type record;                                    \
        memset(&record, 0, sizeof record);              \
        record.record_length = (uint32_t)sizeof record; \
        set;                                            \
        return record;                                  \
    }

IREE_DEFAULT(iree_hal_profile_device_record_t, iree_hal_profile_device_record_default,
             record.physical_device_ordinal = UINT32_MAX)
IREE_DEFAULT(iree_hal_profile_queue_record_t, iree_hal_profile_queue_record_default,
             record.physical_device_ordinal = record.queue_ordinal = UINT32_MAX)
IREE_DEFAULT(iree_hal_profile_executable_record_t, iree_hal_profile_executable_record_default,
             (void)0)
IREE_DEFAULT(iree_hal_profile_executable_function_record_t,
             iree_hal_profile_executable_function_record_default, record.function_ordinal = UINT32_MAX)
IREE_DEFAULT(iree_hal_profile_clock_correlation_record_t, iree_hal_profile_clock_correlation_record_default,
             record.physical_device_ordinal = UINT32_MAX)
IREE_DEFAULT(iree_hal_profile_dispatch_event_t, iree_hal_profile_dispatch_event_default,
             record.command_index = record.function_ordinal = UINT32_MAX)
