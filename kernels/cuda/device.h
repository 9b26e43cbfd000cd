/*
 * The device: one GPU.  All calls to the CUDA runtime go through this interface.
 *
 * There are two implementations.  device-cuda.cc is the real one.  device-emu.cc runs where there
 * is no GPU: the emulator (emu.h) runs the kernels, and host memory stands for device memory.  It
 * delays work as long as a GPU may:
 *
 *   - Work that is put on a stream is done only once a caller waits for it.
 *   - Streams run in any order that the events allow.
 *   - Pinned memory that a copy is to fill holds poison until the host has waited for a moment
 *     after that copy.
 *   - Device memory and swap memory are poisoned when they are allocated.
 *
 * So code that forgets to wait, or that frees or writes too early, fails visibly.
 *
 * Streams are queues: work on a stream is done in order, at some later time.  An event is a
 * position in a queue. It is recorded; then other streams, or the host, can wait for it.
 *
 * Functions that return int return 0 or a negative errno, and device_errtext() describes the error.
 * An error of a kernel is reported by some later call, as -EIO, and by all calls after that one:
 * the device is lost, and only a new process can use it again.  Only one thread at a time may use
 * a stream.
 */
#ifndef KERNELS_CUDA_DEVICE_H
#define KERNELS_CUDA_DEVICE_H

#include <stddef.h>
#include <stdint.h>

struct device;
struct event;
struct graph;

enum stream { STREAM_STEPS, STREAM_LOADS, STREAM_N };

/* -ENODEV: there is no such GPU, or no driver that supports it. */
int device_open(unsigned number, device **ret_device);
/* NULL is fine.  Waits for all streams.  Delete everything that was made on the device first. */
void device_close(device *device);
const char *device_name(const device *device);
unsigned device_processors(const device *device); /* multiprocessors */
size_t device_memory_left(const device *device);
/* Estimates how much of that memory an allocation of `bytes` takes. */
size_t device_memory_of(size_t bytes);
/* A sentence about the last failure of this host thread. */
const char *device_errtext(void);

/*
 * The memory is aligned to 256 bytes, and has at least one byte.  Deleting waits until nothing
 * uses it any more.
 */
int device_new(device *device, size_t bytes, void **ret_memory);
void device_delete(device *device, void *memory);
/* Host memory that streams copy from and to. */
int device_pinned_new(device *device, size_t bytes, void **ret_memory);
void device_pinned_delete(device *device, void *memory);
/*
 * Host memory that only streams use: the host never reads or writes it.  So it belongs to nobody
 * between copies, and it is used like device memory, in the order of the streams.
 */
int device_swap_new(device *device, size_t bytes, void **ret_memory);
void device_swap_delete(device *device, void *memory);

/*
 * Pinned memory belongs to the copy that was put on a stream, until the host has waited for an
 * event after it.  During an upload, the caller must not change the memory; it may upload it once
 * more. During a download, the caller must neither read, write nor upload the memory.
 */
int device_upload(device *device, stream stream, void *to, const void *pinned, size_t bytes);
/*
 * Uploads `count` runs of `bytes` bytes.  In pinned memory they are contiguous; at `to` they are
 * `stride` bytes apart.
 */
int device_upload_apart(device *device, stream stream, void *to, size_t stride, const void *pinned,
                        size_t bytes, uint32_t count);
int device_download(device *device, stream stream, void *pinned, const void *from, size_t bytes);
int device_copy(device *device, stream stream, void *to, const void *from, size_t bytes);
/* From device memory to swap memory, and back. */
int device_swap_out(device *device, stream stream, void *swap, const void *from, size_t bytes);
int device_swap_in(device *device, stream stream, void *to, const void *swap, size_t bytes);
int device_clear(device *device, stream stream, void *to, size_t bytes); /* to zeros */

int device_event_new(device *device, event **ret_event);
void device_event_delete(device *device, event *event);
/* An event can be recorded any number of times; the last time counts. */
int device_event_record(device *device, stream stream, event *event);
/* Makes the stream wait for the event before its next work. */
int device_stream_wait(device *device, stream stream, event *event);
/* Makes the host wait for the event. Returns at once if it was never recorded. */
int device_event_wait(device *device, event *event);

/* ---- kernels ---- */

struct launch {
        unsigned x, y, z; /* number of blocks; 0 is fine */
        unsigned threads; /* per block, one-dimensional */
        size_t shared;    /* bytes for each block */
        bool early;       /* may begin before its predecessor has ended (intrinsics.h) */
};

#define DEVICE_ARGS_MAX 1024u /* bytes */

typedef void device_run(const launch *launch, const void *kernel, const void *args);
int device_launch_raw(device *device, stream stream, const launch *launch, const void *kernel,
                      device_run *run, const void *args, size_t args_bytes);

/* How the emulator calls a kernel with these arguments.  Only device_launch() needs it. */
template <class Args>
void device_emulate(const launch *launch, const void *kernel, const void *args);

/* Tests of single kernels on a GPU have another (tests/cuda/gpu-heap.h). */
#if !defined(DEVICE_RUN) && defined(__CUDACC__)
#define DEVICE_RUN(Args) nullptr
#elif !defined(DEVICE_RUN)
#define DEVICE_RUN(Args) device_emulate<Args>
#endif

/* The arguments are copied during the call. */
template <class Args>
int device_launch(device *device, stream stream, const launch &launch, void (*kernel)(Args),
                  const Args &args)
{
        device_run *run = DEVICE_RUN(Args);

        static_assert(sizeof(Args) <= DEVICE_ARGS_MAX && alignof(Args) <= 16, "");
        return device_launch_raw(device, stream, &launch, (const void *)kernel, run, &args,
                                 sizeof(args));
}

/* ---- graphs: a sequence of work that one call repeats ---- */

/*
 * Between device_capture_begin() and device_capture_end(), work that is put on the stream is
 * captured instead of done.  device_graph_launch() then puts the whole graph on the stream, any
 * number of times.  Memory and arguments are those of the capture. A graph may be deleted as soon
 * as it was put on a stream, even if its work is not done yet.  During the capture, only launches,
 * device_copy() and device_clear() are allowed, on that stream only, and no thread may
 * allocate or free memory.
 */
int device_capture_begin(device *device, stream stream);
int device_capture_end(device *device, stream stream, graph **ret_graph);
int device_graph_launch(device *device, stream stream, graph *graph);
void device_graph_delete(device *device, graph *graph);
/* True between device_capture_begin() and device_capture_end(). */
bool device_is_capturing(const device *device, stream stream);

#ifndef __CUDACC__
#include "kernels/cuda/emu.h"

template <class Args>
void device_emulate(const launch *launch, const void *kernel, const void *args)
{
        const emu_shape shape = { { launch->x, launch->y, launch->z },
                                  { launch->threads, 1, 1 },
                                  launch->shared,
                                  launch->early };
        struct both {
                const void *kernel, *args;
        } both = { kernel, args };
        auto one = [](const void *at) {
                const struct both *it = (const struct both *)at;

                ((void (*)(Args))it->kernel)(*(const Args *)it->args);
        };

        emu_run(&shape, one, &both);
}
#endif

#endif
