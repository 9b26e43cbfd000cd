/*
 * Both halves of a ring whose other side lies.
 *
 * The input is a script: the writer puts, publishes, asks for room, stalls, checks whether the bell
 * is due.  Between its steps the script writes into segment C, or into segment D as a process with
 * access to it may.  The test keeps a second copy of the writer's state, computed from its contract
 * alone, and both must be the same after each step: of everything in shared memory only an
 * acceptable head may change it.  The reader must take the record there or report that it is
 * invalid, and look at no byte beyond.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/doorbell.h"
#include "shm/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define DATA 4096u
#define PAGE 4096u
#define FILL 64u /* records put one after another, at most */

/* The state that the writer has to know, and no more. */
struct truth {
        uint64_t tail, published, head;
};

static struct {
        uint8_t *d, *c;
        struct ring_writer writer;
        struct ring_reader reader;
        struct doorbell bell;
        struct truth truth;
        const uint8_t *at, *end;
        uint64_t state; /* of the generator of records' sequence */
} w;

static uint8_t next(void)
{
        return w.at < w.end ? *w.at++ : 0;
}

static uint64_t shared_head(void)
{
        return ((struct smv_ring_control *)w.c)->head;
}

static bool acceptable(uint64_t head)
{
        return head >= w.truth.head && head <= w.truth.published && head % 8 == 0;
}

static uint64_t to_end(void)
{
        return DATA - w.truth.tail % DATA;
}

static void check(void)
{
        assert(w.writer.tail == w.truth.tail && w.writer.published == w.truth.published);
        assert(w.writer.head == w.truth.head);
        assert(w.truth.tail - w.truth.head <= DATA);
}

/* Puts a record with this payload behind its head; false: no room. */
static bool put(uint32_t payload_bytes)
{
        uint64_t bytes = (16 + payload_bytes + 7) / 8 * 8, needs = bytes;
        uint64_t head = shared_head();
        void *payload;
        int r;

        if (to_end() < bytes)
                needs += to_end();
        r = ring_put(&w.writer, SMV_RECORD_TOKENS, 0, 1, (uint32_t)w.state++, payload_bytes,
                     &payload);
        /* then the writer reads the head again */
        if (DATA - (w.truth.tail - w.truth.head) < needs) {
                if (!acceptable(head)) {
                        assert(r == -EPROTO);
                        return false;
                }
                w.truth.head = head;
                if (DATA - (w.truth.tail - head) < needs) {
                        assert(r == RING_E_FULL);
                        return false;
                }
        }
        assert(!r);
        w.truth.tail += needs;
        assert((uint8_t *)payload == w.d + PAGE + (w.truth.tail - bytes) % DATA + 16);
        memset(payload, 0xa5, payload_bytes);
        return true;
}

/* The room that was promised is there, whatever the sizes. */
static void ask_and_fill(uint8_t how)
{
        uint32_t most = 24 + how % 64 * 8;
        uint64_t room, head = shared_head();
        int r = ring_free_bytes(&w.writer, most, &room);

        if (!acceptable(head)) {
                assert(r == -EPROTO);
                return;
        }
        assert(!r);
        w.truth.head = head;
        assert(room <= DATA - (w.truth.tail - head));
        for (uint32_t i = 0; i < FILL && how & 0x80; i++) {
                uint32_t payload = next() % (most - 16 + 1);
                uint64_t bytes = (16 + payload + 7) / 8 * 8;

                if (bytes > room)
                        return;
                room -= bytes;
                assert(put(payload));
        }
}

static void scribble(uint8_t *page, uint32_t at)
{
        uint64_t word = 0;

        for (uint32_t i = 0; i < 8; i++)
                word |= (uint64_t)next() << 8 * i;
        memcpy(page + at, &word, 8);
}

/* Stores heads that are nearly right. */
static void nudge_head(uint8_t how)
{
        const uint64_t from[] = { w.truth.head, w.truth.published, w.truth.tail, shared_head() };
        uint64_t head = from[how & 3] + (uint64_t)(int64_t)((int8_t)how >> 2);

        memcpy(w.c, &head, 8);
}

static void read_on(uint8_t how)
{
        const struct smv_record *record;

        for (uint32_t i = 0; i <= how; i++) {
                int r = ring_next(&w.reader, &record);

                if (r) {
                        assert(r == RING_E_EMPTY || r == -EPROTO);
                        break;
                }
                assert((uint8_t *)record >= w.d + PAGE);
                assert((uint8_t *)record + record->size <= w.d + PAGE + DATA);
        }
        ring_release(&w.reader);
}

static void look(uint8_t how)
{
        struct doorbell_news news = { .tail = w.truth.published,
                                      .end = how & 1 ? w.truth.published : 0,
                                      .wake_level = doorbell_wake_level(&w.writer) };
        uint64_t wish = ((struct smv_ring_control *)w.c)->wake_position, from = w.bell.seen;
        bool due = doorbell_is_due(&w.bell, &news);

        assert(w.bell.seen == news.tail);
        if (wish == SMV_WAKE_NEVER || news.tail == from)
                assert(!due || (wish != SMV_WAKE_NEVER && news.tail > news.wake_level));
        else if (news.end > from || (wish >= from && wish < news.tail))
                assert(due);
}

static void step(uint8_t what, uint8_t how)
{
        switch (what % 10) {
        case 0:
                put(how * 4u % 1009);
                break;
        case 1:
                w.truth.published = w.truth.tail;
                ring_publish(&w.writer);
                break;
        case 2:
                ask_and_fill(how);
                break;
        case 3:
                scribble(w.c, how & 1 ? 0x80 : 0);
                break;
        case 4:
                nudge_head(how);
                break;
        case 5:
                if (ring_stall(&w.writer))
                        assert(shared_head() != w.writer.head_seen);
                break;
        case 6:
                ring_resume(&w.writer);
                break;
        case 7:
                look(how);
                break;
        case 8:
                read_on(how);
                break;
        case 9: { /* writes to: tail, state, the record that is read next, some other place */
                const uint32_t places[] = { 0x80, 0x100, PAGE + (uint32_t)(w.reader.head % DATA),
                                            PAGE + how * 16u % DATA };

                scribble(w.d, places[how & 3]);
                break;
        }
        }
        check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count)
{
        memset(w.d, 0, PAGE + DATA);
        memset(w.c, 0, PAGE);
        w.truth = (struct truth){ 0 };
        w.state = 0;
        w.bell = (struct doorbell){ .control = (struct smv_ring_control *)w.c };
        ring_writer_init(&w.writer, w.d, (struct smv_ring_control *)w.c, DATA);
        assert(!ring_reader_init(&w.reader, w.d, (struct smv_ring_control *)w.c));
        w.at = data;
        w.end = data + count;
        while (w.at < w.end) {
                uint8_t what = next();

                step(what, next());
        }
        return 0;
}

/* Maps each segment with an inaccessible page behind it. */
static uint8_t *map(size_t bytes)
{
        uint8_t *at = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                           -1, 0);

        assert(at != MAP_FAILED);
        assert(!mprotect(at + bytes, PAGE, PROT_NONE));
        return at;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        (void)argc;
        (void)argv;
        w.d = map(PAGE + DATA);
        w.c = map(PAGE);
        return 0;
}
