/* What npuprof_iree.h needs of IREE's profile sink (b48a5955, August 2026), written for the tests. The sink
   itself is that of the host, which has these functions.
   SPDX-License-Identifier: MIT */
#pragma once
#include <iree/base/api.h>

typedef struct iree_hal_profile_sink_t iree_hal_profile_sink_t;
typedef uint64_t iree_hal_profile_chunk_flags_t;
enum { IREE_HAL_PROFILE_CHUNK_FLAG_TRUNCATED = 1 };

typedef struct iree_hal_profile_chunk_metadata_t {
    iree_string_view_t content_type, name;
    uint64_t session_id, stream_id, event_id, executable_id, command_buffer_id;
    uint32_t physical_device_ordinal, queue_ordinal;
    iree_hal_profile_chunk_flags_t flags;
    uint64_t dropped_record_count;
} iree_hal_profile_chunk_metadata_t;

static inline iree_hal_profile_chunk_metadata_t iree_hal_profile_chunk_metadata_default(void)
{
    iree_hal_profile_chunk_metadata_t metadata;
    memset(&metadata, 0, sizeof metadata);
    metadata.physical_device_ordinal = metadata.queue_ordinal = UINT32_MAX;
    return metadata;
}

void iree_hal_profile_sink_retain(iree_hal_profile_sink_t *sink);
void iree_hal_profile_sink_release(iree_hal_profile_sink_t *sink);
iree_status_t iree_hal_profile_sink_begin_session(iree_hal_profile_sink_t *sink,
                                                  const iree_hal_profile_chunk_metadata_t *metadata);
iree_status_t iree_hal_profile_sink_write(iree_hal_profile_sink_t *sink,
                                          const iree_hal_profile_chunk_metadata_t *metadata,
                                          iree_host_size_t count, const iree_const_byte_span_t *spans);
iree_status_t iree_hal_profile_sink_end_session(iree_hal_profile_sink_t *sink,
                                                const iree_hal_profile_chunk_metadata_t *metadata,
                                                iree_status_code_t code);
