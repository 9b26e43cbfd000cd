/*
 * The device where there is no GPU.
 *
 * A stream is a list of operations, with a count of those that are done.  So a position in a stream
 * is a number.  An event has such a number for each stream: the operations that must be done before
 * it, on its own stream and on all streams that it followed directly or indirectly.
 * device_event_record() copies these numbers from the stream, and device_stream_wait() takes the
 * larger number for each stream.  The operations that the host knows to be done are such a set of
 * numbers, too.
 *
 * Nothing is done before a caller waits.  Then a random eagerness is chosen: no more than is
 * necessary, anything in any order, or all other work first.  Operations of one stream stay in
 * order.
 *
 * A kernel that may begin early does so half of the time: its first block runs, up to the point
 * where it waits, before its predecessor in the stream runs.
 *
 * Downloads: pinned memory exists twice, as the host sees it and as the device sees it.  A
 * download fills the device's copy.  The data is copied to the host's when the host has waited
 * for it, and not before.
 */
#include "kernels/cuda/device.h"
#include "kernels/cuda/device-emu.h"

#include <assert.h>
#include <errno.h>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(at, bytes)   ((void)(at), (void)(bytes))
#define __asan_unpoison_memory_region(at, bytes) ((void)(at), (void)(bytes))
#endif

#include "kernels/cuda/features.h"

#define POISON       0xff
#define MEMORY_ALIGN 256u
#define PROCESSORS   4u
#define SHARED_MAX   (99u << 10) /* compute capability 8.6 */
#define THREADS_MAX  1024u
#define GRID_YZ_MAX  65535u

enum work { COPY, UPLOAD, DOWNLOAD, CLEAR, LAUNCH, FOLLOW };

/* For each stream, a number of its operations. */
struct place {
        uint64_t done[STREAM_N];
};

struct operation {
        enum work work;
        void *to;
        const void *from;
        size_t bytes;
        struct place place; /* FOLLOW: the place to wait for */
        struct launch launch;
        const void *kernel;
        device_run *run;
        alignas(16) uint8_t args[DEVICE_ARGS_MAX];
};

struct queue {
        std::vector<operation> operations; /* the operations before `next` are done */
        size_t next;
        place put; /* all operations put on this stream, and all that it followed */
};

enum kind { LOCAL, PINNED, SWAP };

struct memory {
        enum kind kind;
        uint8_t *bytes, *other; /* other: the device's copy of pinned memory, or NULL */
        size_t size;
};

/* Pinned memory that a copy needs, until the host has waited for it. */
struct claim {
        enum stream stream;
        uint64_t number; /* of the operation */
        bool fills;
        uint8_t *pinned, *other;
        size_t bytes;
};

struct event {
        struct place place;
};

struct graph {
        std::vector<operation> operations;
};

struct device {
        mutable std::mutex lock;
        uint64_t random_state;
        bool lost, begins_early;
        size_t left;
        queue queues[STREAM_N];
        place done, known; /* known: what the host knows to be done */
        std::vector<memory> memories;
        std::vector<claim> claims; /* in the order in which they were put */
        struct graph *graph;
        stream recorded;
};

static struct {
        uint64_t seed, operations, pieces;
        size_t bytes;
        const char *sign; /* a file whose existence makes the device lost */
} wanted = { 0, UINT64_MAX, UINT64_MAX, (size_t)1 << 40, nullptr };

static thread_local char errtext[160];

void device_emu_seed(uint64_t seed)
{
        wanted.seed = seed;
}

void device_emu_memory(size_t bytes)
{
        wanted.bytes = bytes;
}

void device_emu_refuse(uint64_t pieces)
{
        wanted.pieces = pieces;
}

void device_emu_lose(uint64_t operations)
{
        wanted.operations = operations;
}

void device_emu_peek(void *to, const void *from, size_t bytes)
{
        __asan_unpoison_memory_region(from, bytes);
        memcpy(to, from, bytes);
        __asan_poison_memory_region(from, bytes);
}

const char *device_errtext(void)
{
        return errtext;
}

static int fail(int error, const char *sentence)
{
        snprintf(errtext, sizeof(errtext), "%s", sentence);
        return error;
}

static int lost_error(const device *device)
{
        return device->lost ? fail(-EIO, "the emulated device was lost: a test asked for it") : 0;
}

static uint64_t random_number(device *device)
{
        uint64_t z = device->random_state += 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

static bool reaches(const place *place, const struct place *other)
{
        for (unsigned s = 0; s < STREAM_N; s++)
                if (place->done[s] < other->done[s])
                        return false;
        return true;
}

static void take_later(place *place, const struct place *other)
{
        for (unsigned s = 0; s < STREAM_N; s++)
                if (place->done[s] < other->done[s])
                        place->done[s] = other->done[s];
}

/* ---- memory ---- */

static bool lies_in(const memory *memory, const void *at, size_t bytes)
{
        size_t from = (size_t)((const uint8_t *)at - memory->bytes);

        return (const uint8_t *)at >= memory->bytes && from <= memory->size &&
               bytes <= memory->size - from;
}

/* Finds memory of this kind; a copy may use nothing else. */
static const memory *memory_of(const device *device, const void *at, size_t bytes, kind kind)
{
        for (const memory &memory : device->memories)
                if (lies_in(&memory, at, bytes)) {
                        assert(memory.kind == kind);
                        return &memory;
                }
        assert(!"memory of this device");
        return nullptr;
}

/*
 * Allows access to device memory and swap memory while work is done; the host must not access them
 * at other times.
 */
static void open_memory(const device *device, bool open)
{
        for (const memory &memory : device->memories) {
                if (memory.kind == PINNED)
                        continue;
                if (open)
                        __asan_unpoison_memory_region(memory.bytes, memory.size);
                else
                        __asan_poison_memory_region(memory.bytes, memory.size);
        }
}

static uint8_t *poisoned(size_t bytes)
{
        void *memory;

        if (!wanted.pieces)
                return nullptr;
        wanted.pieces -= wanted.pieces != UINT64_MAX;
        if (posix_memalign(&memory, MEMORY_ALIGN, bytes))
                return nullptr;
        memset(memory, POISON, bytes);
        return (uint8_t *)memory;
}

static bool overlap(const claim *claim, const void *at, size_t bytes)
{
        return (const uint8_t *)at < claim->pinned + claim->bytes &&
               claim->pinned < (const uint8_t *)at + bytes;
}

/*
 * The host gets back the pinned memory of operations that it now knows to be done.  It still must
 * not read the rest.
 */
static void hand_over(device *device)
{
        size_t kept = 0;

        for (const claim &claim : device->claims)
                if (claim.fills && claim.number < device->known.done[claim.stream])
                        memcpy(claim.pinned, claim.other, claim.bytes);
        for (const claim &claim : device->claims) {
                if (claim.number < device->known.done[claim.stream])
                        continue;
                if (claim.fills)
                        memset(claim.pinned, POISON, claim.bytes);
                device->claims[kept++] = claim;
        }
        device->claims.resize(kept);
}

/* ---- doing the operations ---- */

static void perform(device *device, const operation *operation)
{
        switch (operation->work) {
        case COPY:
                memmove(operation->to, operation->from, operation->bytes);
                break;
        case UPLOAD:
        case DOWNLOAD:
                memcpy(operation->to, operation->from, operation->bytes);
                break;
        case CLEAR:
                memset(operation->to, 0, operation->bytes);
                break;
        case LAUNCH:
                emu_set_schedule((unsigned)(random_number(device) % EMU_SCHEDULES));
                operation->run(&operation->launch, operation->kernel, operation->args);
                break;
        case FOLLOW:
                break;
        }
}

struct launched {
        struct device *device;
        const struct operation *operation;
};

static void perform_predecessor(void *arg)
{
        const launched *launched = (const struct launched *)arg;

        perform(launched->device, launched->operation);
}

/* Whether the next operation begins before this one has ended.  If so, both are done together. */
static bool is_overtaken(device *device, const queue *queue)
{
        const operation *one = &queue->operations[queue->next];

        return queue->next + 1 < queue->operations.size() && one[0].work == LAUNCH &&
               one[1].work == LAUNCH && one[1].launch.early && device->begins_early &&
               wanted.operations > 1 && random_number(device) & 1;
}

static bool has_work(const device *device, unsigned stream)
{
        const queue *queue = &device->queues[stream];

        return queue->next < queue->operations.size();
}

static bool can_go_on(const device *device, unsigned stream)
{
        const queue *queue = &device->queues[stream];

        return has_work(device, stream) &&
               (queue->operations[queue->next].work != FOLLOW ||
                reaches(&device->done, &queue->operations[queue->next].place));
}

static void lose(device *device)
{
        device->lost = true;
        for (queue &queue : device->queues) {
                queue.operations.clear();
                queue.next = 0;
        }
}

static void do_one(device *device, unsigned stream)
{
        queue *queue = &device->queues[stream];
        launched predecessor = { device, nullptr };
        unsigned count = 1;

        assert(stream < STREAM_N);
        if (!wanted.operations || (wanted.sign && !access(wanted.sign, F_OK))) {
                lose(device);
                return;
        }
        if (is_overtaken(device, queue)) {
                predecessor.operation = &queue->operations[queue->next];
                emu_begin_early(perform_predecessor, &predecessor);
                count = 2;
        }
        if (wanted.operations != UINT64_MAX)
                wanted.operations -= count;
        perform(device, &queue->operations[queue->next + count - 1]);
        queue->next += count;
        device->done.done[stream] += count;
        if (queue->next * 2 < queue->operations.size())
                return;
        queue->operations.erase(queue->operations.begin(),
                                queue->operations.begin() + (ptrdiff_t)queue->next);
        queue->next = 0;
}

enum eagerness { NO_MORE, ANYHOW, OTHERS_FIRST, EAGERNESS_N };

/* Chooses a stream that can go on, according to the mood.  STREAM_N: none can. */
static unsigned choose(device *device, const place *until, unsigned eagerness)
{
        unsigned first = (unsigned)(random_number(device) % STREAM_N), any = STREAM_N;

        for (unsigned i = 0; i < STREAM_N; i++) {
                unsigned stream = (first + i) % STREAM_N;
                bool must = device->done.done[stream] < until->done[stream];

                if (!can_go_on(device, stream))
                        continue;
                if (eagerness == ANYHOW || must == (eagerness == NO_MORE))
                        return stream;
                any = stream;
        }
        return any;
}

/*
 * At least one of the streams that must go on always can.  A stream that is followed already had
 * all its operations when it was marked, and so on back to the beginning; and a place includes
 * everything that was followed.
 */
static void run_until(device *device, const place *until)
{
        unsigned eagerness = (unsigned)(random_number(device) % EAGERNESS_N);
        unsigned more = eagerness == NO_MORE ? 0 : (unsigned)(random_number(device) % 16), stream;

        open_memory(device, true);
        while (!device->lost && !reaches(&device->done, until))
                do_one(device, choose(device, until, eagerness));
        while (!device->lost && more-- && (stream = choose(device, until, ANYHOW)) < STREAM_N)
                do_one(device, stream);
        open_memory(device, false);
}

static void run_all(device *device)
{
        for (const queue &queue : device->queues)
                run_until(device, &queue.put);
}

/* ---- the device ---- */

static uint64_t seed_of_run(void)
{
        const char *seed = getenv("SMV_DEVICE_SEED");
        struct timespec now;
        uint64_t any;

        if (!seed || !*seed)
                return wanted.seed;
        if (strcmp(seed, "any"))
                return strtoull(seed, nullptr, 10);
        clock_gettime(CLOCK_REALTIME, &now);
        any = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        fprintf(stderr, "SMV_DEVICE_SEED=%llu\n", (unsigned long long)any);
        return any;
}

static void read_when_to_lose(void)
{
        const char *when = getenv("SMV_DEVICE_LOSE");

        if (when && *when == '/')
                wanted.sign = when;
        else if (when && *when)
                wanted.operations = strtoull(when, nullptr, 10);
}

static size_t bytes_of_run(void)
{
        const char *bytes = getenv("SMV_DEVICE_MEMORY");

        return bytes && *bytes ? (size_t)strtoull(bytes, nullptr, 10) : wanted.bytes;
}

int device_open(unsigned number, device **ret_device)
{
        device *device;

        if (number)
                return fail(-ENODEV, "there is only one emulated GPU, number 0");
        read_when_to_lose();
        device = new struct device();
        device->random_state = seed_of_run();
        device->left = bytes_of_run();
        device->begins_early = !feature_is_disabled(FEATURE_EARLY);
        *ret_device = device;
        return 0;
}

void device_close(device *device)
{
        if (!device)
                return;
        assert(!device->graph);
        run_all(device);
        assert(device->memories.empty());
        delete device;
}

const char *device_name(const device *)
{
        return "emulated";
}

unsigned device_processors(const device *)
{
        return PROCESSORS;
}

size_t device_memory_left(const device *device)
{
        std::lock_guard<std::mutex> guard(device->lock);

        return device->left;
}

size_t device_memory_of(size_t bytes)
{
        return bytes;
}

int device_new(device *device, size_t bytes, void **ret_memory)
{
        std::lock_guard<std::mutex> guard(device->lock);
        memory memory = { LOCAL, nullptr, nullptr, bytes };

        assert(bytes && !device->graph);
        if (device->lost)
                return lost_error(device);
        if (bytes <= device->left)
                memory.bytes = poisoned(bytes);
        if (!memory.bytes)
                return fail(-ENOMEM, "the emulated device has no memory left");
        device->left -= bytes;
        device->memories.push_back(memory);
        __asan_poison_memory_region(memory.bytes, bytes);
        *ret_memory = memory.bytes;
        return 0;
}

int device_pinned_new(device *device, size_t bytes, void **ret_memory)
{
        std::lock_guard<std::mutex> guard(device->lock);
        memory memory = { PINNED, nullptr, nullptr, bytes };

        assert(bytes && !device->graph);
        if (device->lost)
                return lost_error(device);
        memory.bytes = poisoned(bytes);
        memory.other = poisoned(bytes);
        if (!memory.bytes || !memory.other) {
                free(memory.bytes);
                free(memory.other);
                return fail(-ENOMEM, "the host has no memory left that could be pinned");
        }
        device->memories.push_back(memory);
        *ret_memory = memory.bytes;
        return 0;
}

int device_swap_new(device *device, size_t bytes, void **ret_memory)
{
        std::lock_guard<std::mutex> guard(device->lock);
        memory memory = { SWAP, nullptr, nullptr, bytes };

        assert(bytes && !device->graph);
        if (device->lost)
                return lost_error(device);
        memory.bytes = poisoned(bytes);
        if (!memory.bytes)
                return fail(-ENOMEM, "the host has no memory left that could be pinned");
        device->memories.push_back(memory);
        __asan_poison_memory_region(memory.bytes, bytes);
        *ret_memory = memory.bytes;
        return 0;
}

/* It is not known which memory a kernel will use, so this first does all work on all streams. */
static void delete_memory(device *device, void *at, kind kind)
{
        if (!at)
                return;

        std::lock_guard<std::mutex> guard(device->lock);
        size_t i = (size_t)(memory_of(device, at, 1, kind) - device->memories.data());
        memory memory = device->memories[i];

        assert(memory.bytes == at && !device->graph);
        run_all(device);
        for (size_t c = device->claims.size(); c--;)
                if (overlap(&device->claims[c], memory.bytes, memory.size))
                        device->claims.erase(device->claims.begin() + (ptrdiff_t)c);
        __asan_unpoison_memory_region(memory.bytes, memory.size);
        free(memory.bytes);
        free(memory.other);
        if (kind == LOCAL)
                device->left += memory.size;
        device->memories.erase(device->memories.begin() + (ptrdiff_t)i);
}

void device_delete(device *device, void *memory)
{
        delete_memory(device, memory, LOCAL);
}

void device_pinned_delete(device *device, void *memory)
{
        delete_memory(device, memory, PINNED);
}

void device_swap_delete(device *device, void *memory)
{
        delete_memory(device, memory, SWAP);
}

/* ---- putting operations on a stream ---- */

static int put(device *device, stream stream, const operation *operation)
{
        queue *queue = &device->queues[stream];

        assert(stream < STREAM_N);
        if (device->lost)
                return lost_error(device);
        if (device->graph && device->recorded == stream) {
                assert(operation->work == LAUNCH || operation->work == COPY ||
                       operation->work == CLEAR);
                device->graph->operations.push_back(*operation);
                return 0;
        }
        queue->operations.push_back(*operation);
        queue->put.done[stream]++;
        return 0;
}

static int put_copy(device *device, stream stream, work work, void *to, const void *from,
                    size_t bytes)
{
        operation operation = {};

        operation.work = work;
        operation.to = to;
        operation.from = from;
        operation.bytes = bytes;
        return put(device, stream, &operation);
}

/*
 * Returns the device's copy of pinned memory.  A download is written there, and the memory is
 * claimed until the host may read it.
 */
static uint8_t *claim_pinned(device *device, stream stream, void *pinned, size_t bytes, bool fills)
{
        const memory *memory = memory_of(device, pinned, bytes, PINNED);
        claim claim = { stream, device->queues[stream].put.done[stream],
                        fills,  (uint8_t *)pinned,
                        NULL,   bytes };

        claim.other = memory->other + (claim.pinned - memory->bytes);
        for (const struct claim &other : device->claims)
                assert(!overlap(&other, pinned, bytes) || other.fills == fills);
        device->claims.push_back(claim);
        if (fills)
                memset(pinned, POISON, bytes);
        return claim.other;
}

static int put_upload(device *device, stream stream, void *to, const void *pinned, size_t bytes)
{
        memory_of(device, to, bytes, LOCAL);
        if (device->lost)
                return lost_error(device); /* lost work claims no memory */
        claim_pinned(device, stream, (void *)pinned, bytes, false);
        return put_copy(device, stream, UPLOAD, to, pinned, bytes);
}

int device_upload(device *device, stream stream, void *to, const void *pinned, size_t bytes)
{
        std::lock_guard<std::mutex> guard(device->lock);

        return put_upload(device, stream, to, pinned, bytes);
}

int device_upload_apart(device *device, stream stream, void *to, size_t stride, const void *pinned,
                        size_t bytes, uint32_t count)
{
        std::lock_guard<std::mutex> guard(device->lock);
        int error = 0;

        assert(count <= 1 || stride >= bytes);
        for (uint32_t i = 0; i < count && !error; i++)
                error = put_upload(device, stream, (uint8_t *)to + i * stride,
                                   (const uint8_t *)pinned + i * bytes, bytes);
        return error;
}

int device_download(device *device, stream stream, void *pinned, const void *from, size_t bytes)
{
        std::lock_guard<std::mutex> guard(device->lock);
        void *other;

        memory_of(device, from, bytes, LOCAL);
        if (device->lost)
                return lost_error(device);
        other = claim_pinned(device, stream, pinned, bytes, true);
        return put_copy(device, stream, DOWNLOAD, other, from, bytes);
}

int device_copy(device *device, stream stream, void *to, const void *from, size_t bytes)
{
        std::lock_guard<std::mutex> guard(device->lock);

        memory_of(device, to, bytes, LOCAL);
        memory_of(device, from, bytes, LOCAL);
        return put_copy(device, stream, COPY, to, from, bytes);
}

static int swap(device *device, stream stream, work work, void *to, kind kind_of_to,
                const void *from, kind kind_of_from, size_t bytes)
{
        std::lock_guard<std::mutex> guard(device->lock);

        memory_of(device, to, bytes, kind_of_to);
        memory_of(device, from, bytes, kind_of_from);
        return put_copy(device, stream, work, to, from, bytes);
}

int device_swap_out(device *device, stream stream, void *swapped, const void *from, size_t bytes)
{
        return swap(device, stream, DOWNLOAD, swapped, SWAP, from, LOCAL, bytes);
}

int device_swap_in(device *device, stream stream, void *to, const void *swapped, size_t bytes)
{
        return swap(device, stream, UPLOAD, to, LOCAL, swapped, SWAP, bytes);
}

int device_clear(device *device, stream stream, void *to, size_t bytes)
{
        std::lock_guard<std::mutex> guard(device->lock);

        memory_of(device, to, bytes, LOCAL);
        return put_copy(device, stream, CLEAR, to, nullptr, bytes);
}

int device_launch_raw(device *device, stream stream, const launch *launch, const void *kernel,
                      device_run *run, const void *args, size_t args_bytes)
{
        std::lock_guard<std::mutex> guard(device->lock);
        operation operation = {};

        assert(launch->threads && launch->threads <= THREADS_MAX && launch->shared <= SHARED_MAX);
        assert(launch->x <= INT32_MAX && launch->y <= GRID_YZ_MAX && launch->z <= GRID_YZ_MAX);
        assert(args_bytes <= DEVICE_ARGS_MAX);
        if (!launch->x || !launch->y || !launch->z)
                return lost_error(device);
        operation.work = LAUNCH;
        operation.launch = *launch;
        operation.kernel = kernel;
        operation.run = run;
        memcpy(operation.args, args, args_bytes);
        return put(device, stream, &operation);
}

/* ---- events ---- */

int device_event_new(device *device, event **ret_event)
{
        std::lock_guard<std::mutex> guard(device->lock);

        if (device->lost)
                return lost_error(device);
        *ret_event = new event();
        return 0;
}

void device_event_delete(device *, event *event)
{
        delete event;
}

int device_event_record(device *device, stream stream, event *event)
{
        std::lock_guard<std::mutex> guard(device->lock);

        assert(!device->graph || device->recorded != stream);
        event->place = device->queues[stream].put;
        return lost_error(device);
}

int device_stream_wait(device *device, stream stream, event *event)
{
        std::lock_guard<std::mutex> guard(device->lock);
        operation operation = {};
        int error;

        operation.work = FOLLOW;
        operation.place = event->place;
        error = put(device, stream, &operation);
        take_later(&device->queues[stream].put, &event->place);
        return error;
}

int device_event_wait(device *device, event *event)
{
        std::lock_guard<std::mutex> guard(device->lock);

        run_until(device, &event->place);
        if (device->lost)
                return lost_error(device);
        take_later(&device->known, &event->place);
        hand_over(device);
        return 0;
}

/* ---- graphs ---- */

int device_capture_begin(device *device, stream stream)
{
        std::lock_guard<std::mutex> guard(device->lock);

        assert(!device->graph);
        if (device->lost)
                return lost_error(device);
        device->graph = new graph();
        device->recorded = stream;
        return 0;
}

int device_capture_end(device *device, stream stream, graph **ret_graph)
{
        std::lock_guard<std::mutex> guard(device->lock);

        assert(device->graph && device->recorded == stream);
        *ret_graph = device->graph;
        device->graph = nullptr;
        return lost_error(device);
}

int device_graph_launch(device *device, stream stream, graph *graph)
{
        std::lock_guard<std::mutex> guard(device->lock);

        assert(!device->graph);
        for (const operation &operation : graph->operations)
                put(device, stream, &operation);
        return lost_error(device);
}

void device_graph_delete(device *, graph *graph)
{
        delete graph;
}

bool device_is_capturing(const device *device, stream stream)
{
        std::lock_guard<std::mutex> guard(device->lock);

        return device->graph && device->recorded == stream;
}
