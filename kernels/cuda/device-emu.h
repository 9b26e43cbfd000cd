/*
 * What tests may ask of the emulated device (device.h says what that is).
 *
 * It has 4 multiprocessors, and no more shared memory for a block than the
 * smallest GPU that device_open() takes.  A program that breaks device.h in a way that
 * can be told at once is aborted: memory of the wrong kind, pinned memory that two copies
 * want, waiting in the middle of a recording, a block that no GPU could run.  Under AddressSanitizer
 * the host cannot look at the device's memory.
 *
 * These have names as C has them, for tests that open this as part of a library, and are for the
 * whole process, set while nobody else uses a device.
 */
#ifndef KERNELS_CUDA_DEVICE_EMU_H
#define KERNELS_CUDA_DEVICE_EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * In what order things are done, on devices opened from now on.  SMV_DEVICE_SEED in the environment goes
 * before: a number, or "any" for one of the clock's, which is told on stderr.
 */
void device_emu_seed(uint64_t seed);

/*
 * What devices opened from now on have; at first 1 TiB, that is: what the host has.  Bytes in
 * SMV_DEVICE_MEMORY go before.
 */
void device_emu_memory(size_t bytes);

/* So many pieces of memory are still made, pinned or not, and no more.  UINT64_MAX: all. */
void device_emu_refuse(uint64_t pieces);

/*
 * So many operations are still done; with the next one its device is lost.  UINT64_MAX: never.  A program
 * that is not the test's own is told by SMV_DEVICE_LOSE in the environment: such a number, or a path, and with the
 * next operation once there is such a file.
 */
void device_emu_lose(uint64_t operations);

/* Whether blas_open() finds its library; at first it does.  SMV_DEVICE_BLAS=none: it does not. */
void device_emu_blas(bool there);

/* Memory of a device, as it is now: what was waited for is done. */
void device_emu_peek(void *to, const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
