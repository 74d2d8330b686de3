/* all.h - the models of this folder. After play_run.h.
   SPDX-License-Identifier: MIT */
#include "npu/models/ethosn.h"
#include "npu/models/gaudi.h"
#include "npu/models/intel.h"
#include "npu/models/neuron.h"
#include "npu/models/powered.h"
#include "npu/models/progress.h"
#include "npu/models/qaic.h"
#include "npu/models/tenstorrent.h"
#include "npu/models/xdna.h"

/* X(case, model) */
#define PLAY_DEVICES(X) \
    X(ethosn_entries, ethosn_model) X(intel_fence_log, fence_model) X(intel_hws_log, hws_model) \
    X(tenstorrent_markers, tt_model) X(tenstorrent_packets, spsc_model) X(gaudi_cq_fed, gaudi_fed_model) \
    X(gaudi_cq_polled, gaudi_polled_model) X(qaic_responses, qaic_model) X(coral_index, coral_model) \
    X(hailo_index, hailo_model) X(aie4_index, aie4_model) X(neuron_notifications, neuron_model) \
    X(xdna_firmware_log, xdna_model) X(ethosu_sampled, ethosu_model) X(vip_sampled, vip_model) \
    X(rknpu_callbacks, rknpu_model) X(nvdla_callbacks, nvdla_model)
