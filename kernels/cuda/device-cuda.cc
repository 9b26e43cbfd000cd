/*
 * The device on a real GPU.  This is the only file that uses CUDA's runtime.  blas-cuda.cc also
 * uses streams, and gets them from here.
 */
#include "kernels/cuda/device.h"
#include "kernels/cuda/device-cuda.h"

#include <assert.h>
#include <cuda_runtime.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/switches.h"

#define CAPABILITY_MIN   80 /* bfloats in products of matrices, copy_begin() */
#define CAPABILITY_EARLY 90 /* kernels that overlap */
#define SHARED_UNASKED   (48u << 10)
#define RAISED_MAX       128u /* kernels with more shared memory than that */
#define SMALL            ((size_t)512)
#define LARGE            ((size_t)2 << 20)

/*
 * Kernels that were allowed more shared memory, and how much.  One thread uses each stream, so
 * there is no lock.
 */
struct raised {
        const void *kernel;
        size_t bytes;
};

struct device {
        int number;
        char name[256];
        unsigned processors;
        bool can_begin_early;
        bool lost; /* set by any thread, never reset */
        cudaStream_t streams[STREAM_N];
        bool records[STREAM_N];
        raised raised[STREAM_N][RAISED_MAX];
};

struct moment {
        cudaEvent_t event;
};

struct recording {
        cudaGraphExec_t graph;
};

static thread_local char why[512];

const char *device_why(void)
{
        return why;
}

static int no_memory(void)
{
        snprintf(why, sizeof(why), "the host has no memory left");
        return -ENOMEM;
}

/* Lack of memory is a temporary error.  Any other error makes the device lost. */
static int judge(device *device, cudaError_t error, const char *doing)
{
        if (error == cudaSuccess)
                return 0;
        (void)cudaGetLastError(); /* clears the error: it is reported here */
        snprintf(why, sizeof(why), "%s, %s: %s (%s)", device->name, doing,
                 cudaGetErrorString(error), cudaGetErrorName(error));
        if (error == cudaErrorMemoryAllocation)
                return -ENOMEM;
        __atomic_store_n(&device->lost, true, __ATOMIC_RELAXED);
        return -EIO;
}

/* CUDA's current device is a setting of each thread, so every call sets it. */
static int enter(device *device)
{
        if (__atomic_load_n(&device->lost, __ATOMIC_RELAXED)) {
                snprintf(why, sizeof(why), "%s was lost before", device->name);
                return -EIO;
        }
        return judge(device, cudaSetDevice(device->number), "to choose it");
}

int device_cuda_lose(device *device, const char *doing, const char *what)
{
        snprintf(why, sizeof(why), "%s, %s: %s", device->name, doing, what);
        __atomic_store_n(&device->lost, true, __ATOMIC_RELAXED);
        return -EIO;
}

int device_cuda_stream(device *device, stream stream, void **ret_stream)
{
        int error = enter(device);

        *ret_stream = device->streams[stream];
        return error;
}

/* ---- opening ---- */

static int refuse_runtime(cudaError_t error)
{
        int runtime = 0, driver = 0;

        (void)cudaGetLastError();
        (void)cudaRuntimeGetVersion(&runtime);
        (void)cudaDriverGetVersion(&driver);
        if (error == cudaErrorNoDevice)
                snprintf(why, sizeof(why), "CUDA's driver sees no GPU");
        else if (!driver)
                snprintf(why, sizeof(why), "no driver for CUDA is installed");
        else if (error == cudaErrorInsufficientDriver)
                snprintf(why, sizeof(why),
                         "the driver is one for CUDA %d.%d, and this program needs one for %d.%d",
                         driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        else
                snprintf(why, sizeof(why), "CUDA does not start: %s (%s)",
                         cudaGetErrorString(error), cudaGetErrorName(error));
        return -ENODEV;
}

static int find(unsigned number, cudaDeviceProp *ret_properties)
{
        int count = 0;
        cudaError_t error = cudaGetDeviceCount(&count);

        if (error != cudaSuccess)
                return refuse_runtime(error);
        if (number >= (unsigned)count) {
                snprintf(why, sizeof(why), "there is no GPU %u; there are %d, from 0 on", number,
                         count);
                return -ENODEV;
        }
        error = cudaGetDeviceProperties(ret_properties, (int)number);
        if (error != cudaSuccess)
                return refuse_runtime(error);
        if (ret_properties->major * 10 + ret_properties->minor < CAPABILITY_MIN) {
                snprintf(why, sizeof(why),
                         "GPU %u, %s, has compute capability %d.%d; 8.0 is the least that will do",
                         number, ret_properties->name, ret_properties->major,
                         ret_properties->minor);
                return -ENODEV;
        }
        return 0;
}

/* Makes streams that wait only for moments that they follow.  Steps have priority over loads. */
static int make_streams(device *device)
{
        int last = 0, first = 0;
        int error = judge(device, cudaDeviceGetStreamPriorityRange(&last, &first), "priorities");

        for (unsigned i = 0; i < STREAM_N && !error; i++)
                error = judge(device,
                              cudaStreamCreateWithPriority(&device->streams[i],
                                                           cudaStreamNonBlocking,
                                                           i == STREAM_STEPS ? first : last),
                              "to make a stream");
        return error;
}

int device_open(unsigned number, device **ret_device)
{
        cudaDeviceProp properties;
        device *device;
        int error = find(number, &properties);

        if (error)
                return error;
        device = (struct device *)calloc(1, sizeof(*device));
        if (!device)
                return no_memory();
        device->number = (int)number;
        device->processors = (unsigned)properties.multiProcessorCount;
        device->can_begin_early = properties.major * 10 + properties.minor >= CAPABILITY_EARLY &&
                                  !is_left_out(PART_EARLY);
        snprintf(device->name, sizeof(device->name), "%s", properties.name);
        error = enter(device);
        if (!error)
                error = make_streams(device);
        if (error) {
                device_close(device);
                return error;
        }
        *ret_device = device;
        return 0;
}

void device_close(device *device)
{
        if (!device)
                return;
        (void)cudaSetDevice(device->number);
        for (cudaStream_t stream : device->streams)
                if (stream) {
                        (void)cudaStreamSynchronize(stream);
                        (void)cudaStreamDestroy(stream);
                }
        free(device);
}

const char *device_name(const device *device)
{
        return device->name;
}

unsigned device_processors(const device *device)
{
        return device->processors;
}

size_t device_memory_left(const device *device)
{
        size_t left = 0, all = 0;

        if (cudaSetDevice(device->number) != cudaSuccess ||
            cudaMemGetInfo(&left, &all) != cudaSuccess)
                return 0;
        return left;
}

/*
 * The runtime allocates in large pieces.  Small allocations share a piece; large ones have their
 * own.
 */
size_t device_memory_of(size_t bytes)
{
        size_t unit = bytes < LARGE / 2 ? SMALL : LARGE;

        return bytes > SIZE_MAX - unit ? SIZE_MAX : (bytes + unit - 1) / unit * unit;
}

/* ---- memory ---- */

int device_new(device *device, size_t bytes, void **ret_memory)
{
        int error = enter(device);

        assert(bytes);
        return error ? error : judge(device, cudaMalloc(ret_memory, bytes), "to get memory");
}

void device_delete(device *device, void *memory)
{
        if (!memory)
                return;
        (void)cudaSetDevice(device->number);
        (void)cudaDeviceSynchronize();
        (void)cudaFree(memory);
}

int device_pinned_new(device *device, size_t bytes, void **ret_memory)
{
        int error = enter(device);

        assert(bytes);
        return error ? error
                     : judge(device, cudaHostAlloc(ret_memory, bytes, cudaHostAllocPortable),
                             "to get pinned memory");
}

void device_pinned_delete(device *device, void *memory)
{
        if (!memory)
                return;
        (void)cudaSetDevice(device->number);
        (void)cudaDeviceSynchronize();
        (void)cudaFreeHost(memory);
}

static int copy(device *device, stream stream, void *to, const void *from, size_t bytes,
                cudaMemcpyKind kind, const char *doing)
{
        int error = enter(device);

        return error ? error
                     : judge(device,
                             cudaMemcpyAsync(to, from, bytes, kind, device->streams[stream]),
                             doing);
}

int device_upload(device *device, stream stream, void *to, const void *pinned, size_t bytes)
{
        return copy(device, stream, to, pinned, bytes, cudaMemcpyHostToDevice, "to upload");
}

int device_upload_apart(device *device, stream stream, void *to, size_t stride, const void *pinned,
                        size_t bytes, uint32_t count)
{
        int error;

        if (count <= 1)
                return count ? device_upload(device, stream, to, pinned, bytes) : 0;
        assert(stride >= bytes);
        error = enter(device);
        return error ? error
                     : judge(device,
                             cudaMemcpy2DAsync(to, stride, pinned, bytes, bytes, count,
                                               cudaMemcpyHostToDevice, device->streams[stream]),
                             "to upload");
}

int device_download(device *device, stream stream, void *pinned, const void *from, size_t bytes)
{
        return copy(device, stream, pinned, from, bytes, cudaMemcpyDeviceToHost, "to download");
}

int device_copy(device *device, stream stream, void *to, const void *from, size_t bytes)
{
        return copy(device, stream, to, from, bytes, cudaMemcpyDeviceToDevice, "to copy");
}

int device_clear(device *device, stream stream, void *to, size_t bytes)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaMemsetAsync(to, 0, bytes, device->streams[stream]),
                             "to clear");
}

/* ---- moments ---- */

int device_moment_new(device *device, moment **ret_moment)
{
        moment *moment;
        int error = enter(device);

        if (error)
                return error;
        moment = (struct moment *)malloc(sizeof(*moment));
        if (!moment)
                return no_memory();
        error = judge(device, cudaEventCreateWithFlags(&moment->event, cudaEventDisableTiming),
                      "to make a moment");
        if (error) {
                free(moment);
                return error;
        }
        *ret_moment = moment;
        return 0;
}

void device_moment_delete(device *device, moment *moment)
{
        if (!moment)
                return;
        (void)cudaSetDevice(device->number);
        (void)cudaEventDestroy(moment->event);
        free(moment);
}

int device_mark(device *device, stream stream, moment *moment)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaEventRecord(moment->event, device->streams[stream]),
                             "to mark a moment");
}

int device_follow(device *device, stream stream, moment *moment)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaStreamWaitEvent(device->streams[stream], moment->event, 0),
                             "to follow a moment");
}

int device_wait(device *device, moment *moment)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaEventSynchronize(moment->event), "to wait for a moment");
}

/* ---- kernels ---- */

/*
 * A kernel needs permission for more than SHARED_UNASKED bytes, which is asked for once for each
 * kernel.
 */
static int raise_shared(device *device, stream stream, const void *kernel, size_t bytes)
{
        raised *raised = device->raised[stream];
        unsigned i = 0;
        int error;

        if (bytes <= SHARED_UNASKED)
                return 0;
        while (i < RAISED_MAX && raised[i].kernel && raised[i].kernel != kernel)
                i++;
        if (i < RAISED_MAX && raised[i].bytes >= bytes)
                return 0;
        error = judge(device,
                      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           (int)bytes),
                      "to give a kernel shared memory");
        if (!error && i < RAISED_MAX) /* otherwise it is asked for again next time */
                raised[i] = { kernel, bytes };
        return error;
}

int device_launch_raw(device *device, stream stream, const launch *launch, const void *kernel,
                      device_run *, const void *args, size_t)
{
        cudaLaunchConfig_t config = {};
        cudaLaunchAttribute early = {};
        void *all_args[] = { (void *)args };
        int error = enter(device);

        if (error || !launch->x || !launch->y || !launch->z)
                return error;
        error = raise_shared(device, stream, kernel, launch->shared);
        if (error)
                return error;
        early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        early.val.programmaticStreamSerializationAllowed = 1;
        config.gridDim = dim3(launch->x, launch->y, launch->z);
        config.blockDim = dim3(launch->threads);
        config.dynamicSmemBytes = launch->shared;
        config.stream = device->streams[stream];
        config.attrs = &early;
        config.numAttrs = launch->early && device->can_begin_early;
        return judge(device, cudaLaunchKernelExC(&config, kernel, all_args), "to launch a kernel");
}

/* ---- recordings ---- */

int device_record(device *device, stream stream)
{
        int error = enter(device);

        if (!error)
                error = judge(device,
                              cudaStreamBeginCapture(device->streams[stream],
                                                     cudaStreamCaptureModeThreadLocal),
                              "to begin a recording");
        device->records[stream] = !error;
        return error;
}

int device_recorded(device *device, stream stream, recording **ret_recording)
{
        cudaGraph_t graph = nullptr;
        recording *recording = nullptr;
        int error = enter(device);

        device->records[stream] = false;
        if (!error)
                error = judge(device, cudaStreamEndCapture(device->streams[stream], &graph),
                              "to end a recording");
        if (!error) {
                recording = (struct recording *)malloc(sizeof(*recording));
                error = recording ? 0 : no_memory();
        }
        if (!error)
                error = judge(device, cudaGraphInstantiate(&recording->graph, graph, 0),
                              "to make a recording ready");
        if (graph)
                (void)cudaGraphDestroy(graph);
        if (error) {
                free(recording);
                return error;
        }
        *ret_recording = recording;
        return 0;
}

int device_replay(device *device, stream stream, recording *recording)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaGraphLaunch(recording->graph, device->streams[stream]),
                             "to replay a recording");
}

void device_recording_delete(device *device, recording *recording)
{
        if (!recording)
                return;
        (void)cudaSetDevice(device->number);
        (void)cudaGraphExecDestroy(recording->graph);
        free(recording);
}

bool device_records(const device *device, stream stream)
{
        return device->records[stream];
}
