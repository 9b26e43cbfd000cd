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

#include "kernels/cuda/features.h"

#define CAPABILITY_MIN   80 /* bfloats in products of matrices, async_copy() */
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

struct event {
        cudaEvent_t handle;
};

struct graph {
        cudaGraphExec_t executable;
};

static thread_local char errtext[512];

const char *device_errtext(void)
{
        return errtext;
}

static int no_memory(void)
{
        snprintf(errtext, sizeof(errtext), "the host has no memory left");
        return -ENOMEM;
}

/* Lack of memory is a temporary error.  Any other error makes the device lost. */
static int judge(device *device, cudaError_t error, const char *doing)
{
        if (error == cudaSuccess)
                return 0;
        (void)cudaGetLastError(); /* clears the error: it is reported here */
        snprintf(errtext, sizeof(errtext), "%s: cannot %s: %s (%s)", device->name, doing,
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
                snprintf(errtext, sizeof(errtext),
                         "%s failed before; only a new process can use it", device->name);
                return -EIO;
        }
        return judge(device, cudaSetDevice(device->number), "select the device");
}

int device_cuda_lose(device *device, const char *doing, const char *what)
{
        snprintf(errtext, sizeof(errtext), "%s: cannot %s: %s", device->name, doing, what);
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
                snprintf(errtext, sizeof(errtext), "the NVIDIA driver sees no GPU");
        else if (!driver)
                snprintf(errtext, sizeof(errtext), "no NVIDIA driver is installed");
        else if (error == cudaErrorInsufficientDriver)
                snprintf(errtext, sizeof(errtext),
                         "the NVIDIA driver supports CUDA %d.%d, and samovar needs %d.%d: install "
                         "a newer driver",
                         driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        else
                snprintf(errtext, sizeof(errtext), "cannot start CUDA: %s (%s)",
                         cudaGetErrorString(error), cudaGetErrorName(error));
        return -ENODEV;
}

static int find_device(unsigned number, cudaDeviceProp *ret_properties)
{
        int count = 0;
        cudaError_t error = cudaGetDeviceCount(&count);

        if (error != cudaSuccess)
                return refuse_runtime(error);
        if (number >= (unsigned)count) {
                snprintf(errtext, sizeof(errtext),
                         "there is no GPU %u: this machine has %d, numbered from 0", number, count);
                return -ENODEV;
        }
        error = cudaGetDeviceProperties(ret_properties, (int)number);
        if (error != cudaSuccess)
                return refuse_runtime(error);
        if (ret_properties->major * 10 + ret_properties->minor < CAPABILITY_MIN) {
                snprintf(errtext, sizeof(errtext),
                         "GPU %u (%s) has compute capability %d.%d; samovar needs 8.0 or higher",
                         number, ret_properties->name, ret_properties->major,
                         ret_properties->minor);
                return -ENODEV;
        }
        return 0;
}

/*
 * Makes streams that wait only for the events that they are told to wait for.  Steps have priority
 * over loads.
 */
static int make_streams(device *device)
{
        int last = 0, first = 0;
        int error = judge(device, cudaDeviceGetStreamPriorityRange(&last, &first), "priorities");

        for (unsigned i = 0; i < STREAM_N && !error; i++)
                error = judge(device,
                              cudaStreamCreateWithPriority(&device->streams[i],
                                                           cudaStreamNonBlocking,
                                                           i == STREAM_STEPS ? first : last),
                              "create a stream");
        return error;
}

int device_open(unsigned number, device **ret_device)
{
        cudaDeviceProp properties;
        device *device;
        int error = find_device(number, &properties);

        if (error)
                return error;
        device = (struct device *)calloc(1, sizeof(*device));
        if (!device)
                return no_memory();
        device->number = (int)number;
        device->processors = (unsigned)properties.multiProcessorCount;
        device->can_begin_early = properties.major * 10 + properties.minor >= CAPABILITY_EARLY &&
                                  !feature_is_disabled(FEATURE_EARLY);
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
        return error ? error : judge(device, cudaMalloc(ret_memory, bytes), "allocate memory");
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
                             "allocate pinned memory");
}

void device_pinned_delete(device *device, void *memory)
{
        if (!memory)
                return;
        (void)cudaSetDevice(device->number);
        (void)cudaDeviceSynchronize();
        (void)cudaFreeHost(memory);
}

int device_swap_new(device *device, size_t bytes, void **ret_memory)
{
        return device_pinned_new(device, bytes, ret_memory);
}

void device_swap_delete(device *device, void *memory)
{
        device_pinned_delete(device, memory);
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
        return copy(device, stream, to, pinned, bytes, cudaMemcpyHostToDevice, "upload");
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
                             "upload");
}

int device_download(device *device, stream stream, void *pinned, const void *from, size_t bytes)
{
        return copy(device, stream, pinned, from, bytes, cudaMemcpyDeviceToHost, "download");
}

int device_copy(device *device, stream stream, void *to, const void *from, size_t bytes)
{
        return copy(device, stream, to, from, bytes, cudaMemcpyDeviceToDevice, "copy");
}

int device_swap_out(device *device, stream stream, void *swap, const void *from, size_t bytes)
{
        return copy(device, stream, swap, from, bytes, cudaMemcpyDeviceToHost, "swap out");
}

int device_swap_in(device *device, stream stream, void *to, const void *swap, size_t bytes)
{
        return copy(device, stream, to, swap, bytes, cudaMemcpyHostToDevice, "swap in");
}

int device_clear(device *device, stream stream, void *to, size_t bytes)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaMemsetAsync(to, 0, bytes, device->streams[stream]),
                             "clear memory");
}

/* ---- events ---- */

int device_event_new(device *device, event **ret_event)
{
        event *event;
        int error = enter(device);

        if (error)
                return error;
        event = (struct event *)malloc(sizeof(*event));
        if (!event)
                return no_memory();
        error = judge(device, cudaEventCreateWithFlags(&event->handle, cudaEventDisableTiming),
                      "create an event");
        if (error) {
                free(event);
                return error;
        }
        *ret_event = event;
        return 0;
}

void device_event_delete(device *device, event *event)
{
        if (!event)
                return;
        (void)cudaSetDevice(device->number);
        (void)cudaEventDestroy(event->handle);
        free(event);
}

int device_event_record(device *device, stream stream, event *event)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaEventRecord(event->handle, device->streams[stream]),
                             "record an event");
}

int device_stream_wait(device *device, stream stream, event *event)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaStreamWaitEvent(device->streams[stream], event->handle, 0),
                             "make a stream wait for an event");
}

int device_event_wait(device *device, event *event)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaEventSynchronize(event->handle), "wait for an event");
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
                      "set the shared memory of a kernel");
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
        return judge(device, cudaLaunchKernelExC(&config, kernel, all_args), "launch a kernel");
}

/* ---- graphs ---- */

int device_capture_begin(device *device, stream stream)
{
        int error = enter(device);

        if (!error)
                error = judge(device,
                              cudaStreamBeginCapture(device->streams[stream],
                                                     cudaStreamCaptureModeThreadLocal),
                              "begin to capture a graph");
        device->records[stream] = !error;
        return error;
}

int device_capture_end(device *device, stream stream, graph **ret_graph)
{
        cudaGraph_t captured = nullptr;
        graph *graph = nullptr;
        int error = enter(device);

        device->records[stream] = false;
        if (!error)
                error = judge(device, cudaStreamEndCapture(device->streams[stream], &captured),
                              "end the capture of a graph");
        if (!error) {
                graph = (struct graph *)malloc(sizeof(*graph));
                error = graph ? 0 : no_memory();
        }
        if (!error)
                error = judge(device, cudaGraphInstantiate(&graph->executable, captured, 0),
                              "instantiate a graph");
        if (captured)
                (void)cudaGraphDestroy(captured);
        if (error) {
                free(graph);
                return error;
        }
        *ret_graph = graph;
        return 0;
}

int device_graph_launch(device *device, stream stream, graph *graph)
{
        int error = enter(device);

        return error ? error
                     : judge(device, cudaGraphLaunch(graph->executable, device->streams[stream]),
                             "launch a graph");
}

void device_graph_delete(device *device, graph *graph)
{
        if (!graph)
                return;
        (void)cudaSetDevice(device->number);
        (void)cudaGraphExecDestroy(graph->executable);
        free(graph);
}

bool device_is_capturing(const device *device, stream stream)
{
        return device->records[stream];
}
