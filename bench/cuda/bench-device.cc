#include "bench/cuda/bench.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cuda/intrinsics.h"

#define SENT_AT_ONCE (8u << 20)

static const struct {
        const char *name;
        void (*measure)(bench *b);
} parts[] = {
        { "memory", bench_memory },     { "boundary", bench_boundary },
        { "products", bench_products }, { "attention", bench_attention },
        { "pick", bench_pick },         { "host", bench_host },
};

void bench_must(int error, const char *what)
{
        if (!error)
                return;
        fprintf(stderr, "bench-device: %s: %s (%d)\n", what, device_errtext(), error);
        exit(1);
}

void bench_check(bool good, const char *what)
{
        if (good)
                return;
        fprintf(stderr, "bench-device: wrong result: %s\n", what);
        exit(1);
}

void bench_note(bench *b, bool good, const char *what)
{
        if (good)
                return;
        fprintf(stderr, "bench-device: wrong result: %s\n", what);
        b->wrong = true;
}

void *bench_new(bench *b, size_t bytes)
{
        void *memory;

        bench_must(device_new(b->device, bytes, &memory), "memory");
        return memory;
}

void bench_delete(bench *b, void *memory)
{
        device_delete(b->device, memory);
}

void bench_wait(bench *b)
{
        bench_must(device_event_record(b->device, STREAM_STEPS, b->event), "an event");
        bench_must(device_event_wait(b->device, b->event), "waiting");
}

/* Copies through pinned memory that it allocates itself; this is not measured. */
static void carry(bench *b, void *to, const void *from, size_t bytes, bool up)
{
        size_t most = bytes < SENT_AT_ONCE ? bytes : SENT_AT_ONCE;
        void *pinned;

        bench_must(device_pinned_new(b->device, most, &pinned), "pinned memory");
        for (size_t at = 0, some; at < bytes; at += some) {
                some = bytes - at < most ? bytes - at : most;
                if (up)
                        memcpy(pinned, (const uint8_t *)from + at, some);
                bench_must(up ? device_upload(b->device, STREAM_STEPS, (uint8_t *)to + at, pinned,
                                              some)
                              : device_download(b->device, STREAM_STEPS, pinned,
                                                (const uint8_t *)from + at, some),
                           "a copy");
                bench_wait(b);
                if (!up)
                        memcpy((uint8_t *)to + at, pinned, some);
        }
        device_pinned_delete(b->device, pinned);
}

void bench_send(bench *b, void *to, const void *from, size_t bytes)
{
        carry(b, to, from, bytes, true);
}

void bench_fetch(bench *b, void *to, const void *from, size_t bytes)
{
        carry(b, to, from, bytes, false);
}

/* ---- random numbers ---- */

struct fill_args {
        uint32_t *to;
        size_t words;
        fill kind;
        uint32_t seed;
};

DEVICE uint32_t scatter(uint64_t i, uint32_t seed)
{
        uint64_t z = i * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return (uint32_t)(z ^ z >> 31);
}

DEVICE uint32_t number_of(fill kind, uint32_t dice)
{
        float low = (float)(int32_t)(dice << 16) * 0x1p-31f; /* -1 .. 1 */
        float high = (float)(int32_t)dice * 0x1p-31f;

        switch (kind) {
        case FILL_BITS:
                return dice;
        case FILL_BFLOATS:
                return two_bfloats(low, high);
        case FILL_HALVES:
                return two_halves(low, high);
        case FILL_FLOATS:
                return bits_of(high);
        case FILL_SCALES:
                return two_halves((low + 2) / 256, (high + 2) / 256);
        }
        return 0;
}

static KERNEL(256) fill_words(fill_args a)
{
        size_t step = (size_t)gridDim.x * blockDim.x;

        wait_for_predecessor();
        for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.words; i += step)
                a.to[i] = number_of(a.kind, scatter(i, a.seed));
}

void bench_fill(bench *b, fill kind, void *to, size_t bytes)
{
        static uint32_t seed;
        const fill_args args = { (uint32_t *)to, bytes / 4, kind, ++seed };
        unsigned blocks = device_processors(b->device) * (b->tiny ? 1 : 8);

        bench_must(device_launch(b->device, STREAM_STEPS, { blocks, 1, 1, 256, 0, false },
                                 fill_words, args),
                   "random numbers");
        bench_wait(b);
}

/* ---- the program ---- */

static void open_device(bench *b)
{
        bench_must(device_open(0, &b->device), "a GPU");
        b->card = card_of(device_name(b->device));
        bench_must(device_event_new(b->device, &b->event), "an event");
        fprintf(stderr, "bench-device: %s, %u multiprocessors, %zu MiB free\n",
                device_name(b->device), device_processors(b->device),
                device_memory_left(b->device) >> 20);
}

static int refuse(void)
{
        fputs("usage: bench-device [--tiny] [--predict] [--bandwidth GB/S] PART ...\nparts:",
              stderr);
        for (const auto &part : parts)
                fprintf(stderr, " %s", part.name);
        fputc('\n', stderr);
        return 2;
}

static bool measure(bench *b, const char *name)
{
        for (const auto &part : parts)
                if (!strcmp(part.name, name)) {
                        b->samples = BENCH_SAMPLES;
                        part.measure(b);
                        return true;
                }
        return false;
}

int main(int argc, char **argv)
{
        bench b = {};
        bool predict = false, has_bandwidth = false;
        int i = 1;

        for (; i < argc && argv[i][0] == '-'; i++)
                if (!strcmp(argv[i], "--tiny"))
                        b.tiny = true;
                else if (!strcmp(argv[i], "--predict"))
                        predict = true;
                else if (!strcmp(argv[i], "--bandwidth") && i + 1 < argc) {
                        b.bandwidth = atof(argv[++i]) * 1e9;
                        has_bandwidth = true;
                } else
                        return refuse();
        if (i == argc || (has_bandwidth && !(b.bandwidth > 0)))
                return refuse();
        b.card = card_of(nullptr);
        if (!predict)
                open_device(&b);
        if (!has_bandwidth)
                b.bandwidth = b.card->memory;
        for (; i < argc; i++)
                if (!measure(&b, argv[i]))
                        return refuse();
        device_event_delete(b.device, b.event);
        device_close(b.device);
        return b.wrong;
}
