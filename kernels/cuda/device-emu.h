/*
 * Settings of the emulated device for tests (device.h describes the device).
 *
 * It has 4 multiprocessors, and no more shared memory for a block than the smallest GPU that
 * device_open() accepts.  It aborts a program that breaks a rule of device.h, if it can detect that
 * at once: memory of the wrong kind, pinned memory that two copies use, waiting while a graph is
 * captured, a block that no GPU could run.  Under AddressSanitizer the host cannot access the
 * device's memory.
 *
 * These functions have C names, for tests that open this code as part of a library.  They apply
 * to the whole process; call them while no other thread uses a device.
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
 * Seeds the order in which work is done, on devices opened from now on.  SMV_DEVICE_SEED in the
 * environment has precedence: a number, or "any" for a seed from the clock, which is printed to
 * stderr.
 */
void device_emu_seed(uint64_t seed);

/*
 * The memory of devices opened from now on.  The default is 1 TiB, which means: all that the host
 * has.  SMV_DEVICE_MEMORY, in bytes, has precedence.
 */
void device_emu_memory(size_t bytes);

/*
 * Lets `pieces` more allocations succeed, pinned or not, and refuses the rest.  UINT64_MAX: all
 * succeed.
 */
void device_emu_refuse(uint64_t pieces);

/*
 * Lets `operations` more operations be done; the next one loses its device.  UINT64_MAX: never.
 * For a program that is not the test's own, set SMV_DEVICE_LOSE in the environment: to a number,
 * or to a path.  With a path, the device is lost at the next operation after that file exists.
 */
void device_emu_lose(uint64_t operations);

/*
 * Sets whether blas_open() finds its library; by default it does.  SMV_DEVICE_BLAS=none: it does
 * not.
 */
void device_emu_blas(bool there);

/* Reads memory of a device in its current state: only work that was waited for is done. */
void device_emu_peek(void *to, const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
