/*
 * Splits a stream into frames: wire_frame() and wire_scan().
 *
 * The first byte says how many steps follow it, and the steps say in what pieces the rest arrives.
 * Whatever the pieces are, the frames are the same, and so is the refusal that ends them.  Bytes
 * that have not arrived are poisoned: a read of them is a finding.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <sanitizer/asan_interface.h>

#include "daemon/edge/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

#define FRAME_MAX  4096u
#define STEPS_MAX  15u
#define FRAMES_MAX 1024u /* of an input of libFuzzer's largest size, if each frame is empty */
#define ALIGNMENTS 8u
#define GUARD      64u /* poisoned bytes behind the last byte that may be read */
#define BLOCK_MAX  (2 * ALIGNMENTS + FRAMES_MAX * 4 + GUARD)

struct frames {
        uint32_t count;
        uint32_t sizes[FRAMES_MAX];
        size_t taken; /* bytes, all of them */
        int last;     /* the result after the last frame: WIRE_E_PARTIAL or WIRE_E_REFUSED */
        size_t needs; /* if PARTIAL */
        struct wire_problem problem;
};

/* Poisons everything but the body, as if the body were a block from malloc(), without malloc()'s
 * cost. */
static bool scan_copy(const uint8_t *body, size_t count, size_t shift)
{
        static _Alignas(ALIGNMENTS) uint8_t block[BLOCK_MAX];
        uint8_t *copy = block + ALIGNMENTS + shift;

        ASAN_POISON_MEMORY_REGION(block, ALIGNMENTS + shift + count + GUARD);
        ASAN_UNPOISON_MEMORY_REGION(copy, count);
        memcpy(copy, body, count);
        return wire_scan(copy, count);
}

static void check_body(const uint8_t *body, size_t count)
{
        bool taken = wire_scan(body, count);
        size_t shift = ((uintptr_t)body + 1 + count % (ALIGNMENTS - 1)) % ALIGNMENTS;

        assert(scan_copy(body, count, shift) == taken);
        /* The body is one map, and nothing else. */
        if (taken)
                assert(count && !wire_scan(body, count - 1));
}

static void check_partial(size_t needs, size_t count)
{
        assert(needs > count && needs >= 4 && needs <= FRAME_MAX + 4);
        assert(count >= 4 || needs == 4);
}

static void check_refused(const struct wire_problem *problem, const uint8_t *bytes, size_t count)
{
        uint32_t length;

        assert(count >= 4);
        memcpy(&length, bytes, 4);
        assert(length > FRAME_MAX);
        assert(problem->code == SMV_BAD_FRAME && problem->fatal && !problem->id);
        assert(problem->message[0] && !problem->field[0]);
}

/* Takes the whole frames of the bytes that have arrived, as a peer does. */
static void take(struct frames *frames, const uint8_t *bytes, size_t count)
{
        for (;;) {
                const uint8_t *at = bytes + frames->taken, *body = NULL;
                size_t left = count - frames->taken, size = 0;

                frames->last = wire_frame(at, left, FRAME_MAX, &size, &body, &frames->problem);
                if (frames->last == WIRE_E_PARTIAL) {
                        check_partial(size, left);
                        frames->needs = size;
                        return;
                }
                if (frames->last) {
                        assert(frames->last == WIRE_E_REFUSED);
                        check_refused(&frames->problem, at, left);
                        return;
                }
                assert(size >= 4 && size <= left && size <= FRAME_MAX + 4 && body == at + 4);
                assert(frames->count < FRAMES_MAX);
                frames->sizes[frames->count++] = (uint32_t)size;
                frames->taken += size;
                check_body(body, size - 4);
        }
}

static void check_same(const struct frames *a, const struct frames *b)
{
        assert(a->count == b->count && a->taken == b->taken && a->last == b->last);
        assert(!memcmp(a->sizes, b->sizes, a->count * sizeof(*a->sizes)));
        if (a->last == WIRE_E_PARTIAL)
                assert(a->needs == b->needs);
        else
                assert(!strcmp(a->problem.message, b->problem.message));
}

static void grow(struct frames *frames, const uint8_t *stream, size_t count, const uint8_t *steps,
                 size_t step_count)
{
        static _Alignas(ALIGNMENTS) uint8_t arrived[BLOCK_MAX];
        size_t here = 0;

        ASAN_UNPOISON_MEMORY_REGION(arrived, count);
        memcpy(arrived, stream, count);
        ASAN_POISON_MEMORY_REGION(arrived, count + GUARD);
        for (uint32_t i = 0; here < count && frames->last != WIRE_E_REFUSED; i++) {
                size_t step = step_count ? steps[i % step_count] + 1u : count;

                here = step < count - here ? here + step : count;
                ASAN_UNPOISON_MEMORY_REGION(arrived, here);
                take(frames, arrived, here);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count)
{
        /* only the first `count` sizes are used, so they need no clearing */
        static struct frames whole, grown;
        size_t step_count;

        if (!count || count > FRAMES_MAX * 4)
                return 0;
        step_count = data[0] & STEPS_MAX;
        if (1 + step_count >= count)
                return 0;
        whole.count = grown.count = 0;
        whole.taken = grown.taken = 0;
        whole.last = grown.last = WIRE_E_PARTIAL;

        data++;
        count--;
        take(&whole, data + step_count, count - step_count);
        grow(&grown, data + step_count, count - step_count, data, step_count);
        check_same(&whole, &grown);
        return 0;
}
