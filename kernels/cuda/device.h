/*
 * The device: one GPU, and the one door to the CUDA runtime.
 *
 * There are two behind it.  device-cuda.cc is the real one.  device-emu.cc runs where
 * there is no GPU: kernels by the emulator (emu.h), memory of the host; and it is as
 * late as a GPU may be.  What is put on a stream is done only once somebody waits for it,
 * streams in any order that moments allow; pinned memory that a copy is to fill holds poison
 * until a moment after that copy was waited for; and memory for the device is poisoned
 * when it is made.  So whoever forgets to wait, or frees or writes too early, shows.
 *
 * Streams are queues: what is put there is done in order, some time.  A moment is a
 * place in a queue: marked, then followed by other streams, or waited for by the host.
 *
 * Functions that return int return 0 or a negative errno, and device_why() says the rest.  An
 * error of a kernel is told by some later call, -EIO, and by all that follow: the device is
 * lost, and nothing brings it back but a new process.  One thread at a time for each stream.
 */
#ifndef KERNELS_CUDA_DEVICE_H
#define KERNELS_CUDA_DEVICE_H

#include <stddef.h>
#include <stdint.h>

struct device;
struct moment;
struct recording;

enum stream { STREAM_STEPS, STREAM_LOADS, STREAM_N };

/* -ENODEV: no such GPU, or no driver that can. */
int device_open(unsigned number, device **ret_device);
/* NULL is fine; waits for all streams.  After all that was made on it was deleted. */
void device_close(device *device);
const char *device_name(const device *device);
unsigned device_processors(const device *device); /* multiprocessors */
size_t device_memory_left(const device *device);
/* What a piece of so many bytes takes of that, as far as it can be told. */
size_t device_memory_of(size_t bytes);
/* In a sentence, of the last failure of this host thread. */
const char *device_why(void);

/* At a multiple of 256, a byte at least.  Freeing waits until nothing uses it any more. */
int device_new(device *device, size_t bytes, void **ret_memory);
void device_delete(device *device, void *memory);
/* Of the host, that streams copy from and to. */
int device_pinned_new(device *device, size_t bytes, void **ret_memory);
void device_pinned_delete(device *device, void *memory);

/*
 * Pinned memory belongs to the copy that was put on a stream, until the host has waited for a moment
 * after it: who uploads it leaves it as it is (it may be uploaded once more), who
 * downloads into it neither looks nor writes, nor has it uploaded.
 */
int device_upload(device *device, stream stream, void *to, const void *pinned, size_t bytes);
/* `count` runs of so many bytes, one behind the other in pinned memory, `stride` bytes apart there. */
int device_upload_apart(device *device, stream stream, void *to, size_t stride, const void *pinned,
                        size_t bytes, uint32_t count);
int device_download(device *device, stream stream, void *pinned, const void *from, size_t bytes);
int device_copy(device *device, stream stream, void *to, const void *from, size_t bytes);
int device_clear(device *device, stream stream, void *to, size_t bytes); /* to zeros */

int device_moment_new(device *device, moment **ret_moment);
void device_moment_delete(device *device, moment *moment);
/* Again and again: the last mark counts. */
int device_mark(device *device, stream stream, moment *moment);
int device_follow(device *device, stream stream, moment *moment); /* goes on after it */
int device_wait(device *device, moment *moment); /* the host does; never marked: at once */

/* ---- kernels ---- */

struct launch {
        unsigned x, y, z; /* blocks; none is fine */
        unsigned threads; /* of a block, in one row */
        size_t shared;    /* bytes for each block */
        bool early;       /* may begin before the one before it has ended (lane.h) */
};

#define DEVICE_ARGS_MAX 1024u /* bytes */

typedef void device_run(const launch *launch, const void *kernel, const void *args);
int device_launch_raw(device *device, stream stream, const launch *launch, const void *kernel,
                      device_run *run, const void *args, size_t args_bytes);

/* How the emulator calls one of these arguments; nobody else needs it. */
template <class Args>
void device_emulate(const launch *launch, const void *kernel, const void *args);

/* Tests of single kernels on a GPU have another (tests/cuda/place.h). */
#if !defined(DEVICE_RUN) && defined(__CUDACC__)
#define DEVICE_RUN(Args) nullptr
#elif !defined(DEVICE_RUN)
#define DEVICE_RUN(Args) device_emulate<Args>
#endif

/* The arguments are copied now. */
template <class Args>
int device_launch(device *device, stream stream, const launch &launch, void (*kernel)(Args),
                  const Args &args)
{
        device_run *run = DEVICE_RUN(Args);

        static_assert(sizeof(Args) <= DEVICE_ARGS_MAX && alignof(Args) <= 16, "");
        return device_launch_raw(device, stream, &launch, (const void *)kernel, run, &args,
                                 sizeof(args));
}

/* ---- the same again, with one call ---- */

/*
 * What is put on a stream from begin to end is not done, but kept; then it is put there as often
 * as one likes.  Memory and arguments are those of the recording; a recording may be deleted when
 * it was put there, even if that is not done.  From begin to end there are only launches, copies on
 * the device and clearings on that stream, and nobody makes or frees memory.
 */
int device_record(device *device, stream stream);
int device_recorded(device *device, stream stream, recording **ret_recording);
int device_replay(device *device, stream stream, recording *recording);
void device_recording_delete(device *device, recording *recording);
/* Between the begin and the end of one. */
bool device_records(const device *device, stream stream);

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
