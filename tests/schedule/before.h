/* The private names of the header that SCHEDULE_OLD builds with (see test_schedule.py), by those of today.
   SPDX-License-Identifier: MIT */
#define NPUPROF_CHUNK_NUMBER_MASK_ NPUPROF_FREE_MASK_
#define npuprof_arena_state_ npuprof_state_
#define npuprof_arena_ npuprof_s_
#define npuprof_control_ npuprof_s_
#define npuprof_control_lists_ npuprof_s_
#define npuprof_record_categories_ npuprof_s_.categories
#define npuprof_chunk_queue_lap_ npuprof_queue_lap_
#define npuprof_control_set_gate_ npuprof_set_gate_
#define npuprof_process_thread_ends_ npuprof_thread_ends_
#define npuprof_control_advance_generation_ npuprof_next_generation_
#define npuprof_image_init_live_ npuprof_live_image_
#define npuprof_image_next_entry_ npuprof_next_entry_
#define npuprof_slot_mine_() npuprof_my_slot_
#define npuprof_slot_none_ npuprof_no_slot_
#define npuprof_me_(x) FIBER_ME_##x
