/* ethosu_driver.h - a stub with the names of the public interface of Arm's Ethos-U core driver, as much of it
   as examples/ethosu uses. Written for npuprof's tests; the NPU behind it is ethosu_stub.h.
   SPDX-License-Identifier: MIT */
#ifndef ETHOSU_DRIVER_H
#define ETHOSU_DRIVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct NPU_REG;
struct ethosu_device { volatile struct NPU_REG *reg; };
struct ethosu_driver {
    struct ethosu_device dev;
    void *user_arg;
    uint32_t power_request_counter;
};

int ethosu_init(struct ethosu_driver *drv, void *base_address, const void *fast_memory,
                size_t fast_memory_size, uint32_t secure_enable, uint32_t privilege_enable);
int ethosu_soft_reset(struct ethosu_driver *drv);
int ethosu_request_power(struct ethosu_driver *drv);
void ethosu_release_power(struct ethosu_driver *drv);
int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data, int custom_data_size,
                     uint64_t *base_addr, const size_t *base_addr_size, int num_base_addr, void *user_arg);
void ethosu_irq_handler(struct ethosu_driver *drv);

/* Weak in the driver: the user may define them. */
void ethosu_inference_begin(struct ethosu_driver *drv, void *user_arg);
void ethosu_inference_end(struct ethosu_driver *drv, void *user_arg);

#ifdef __cplusplus
}
#endif
#endif /* ETHOSU_DRIVER_H */
