/*
 * The usage snapshot: the product's own usage_snapshot_begin(), usage_snapshot_put(),
 * usage_snapshot_end() and usage_snapshot_read().
 *
 * The snapshot has a table of one row.  The writer publishes a table of two rows while the
 * reader looks.  Forbidden: the reader sees a mix of both tables.
 *
 * WEAK makes all stores relaxed: cells may be seen before the odd count, or after the even one.
 */
#include "tests/models/litmus.h"

#include <stdatomic.h>

#ifdef WEAK
#define memory_order_release memory_order_relaxed
#endif
#ifdef LITMUS_CHECK
/* the snapshot is static here, and nothing allocates one */
#define aligned_alloc(alignment, bytes) NULL
#define calloc(count, bytes)            NULL
#endif
#include "daemon/ipc/usage-snapshot.c"
#undef memory_order_release

#ifdef LITMUS_CHECK
#undef TRIES
#define TRIES 1 /* one try is enough, and each more would multiply the executions */
#endif

/* Functions that usage-snapshot.c needs; these programs never call them. */
int error_mark(int r, int born, const char *file, int line, const char *function)
{
        (void)born, (void)file, (void)line, (void)function;
        return r;
}

static struct usage_row copies[4];
static struct usage_snapshot usage_snapshot = {
        .capacity = 2,
        .seen = copies,
        .next = copies + 2,
        .cells = { { 0 }, { 0 } },
};
static const struct usage_row *rows;
static uint32_t count;

static const char *const litmus_outcome[LITMUS_OUTCOMES] = {
        "of both (forbidden)",
        "the old one",
        "the new one",
};

/* Both threads are at rest: the reader may look, so that its last look is up to date. */
static void litmus_begin(void)
{
        usage_snapshot_begin(&usage_snapshot);
        usage_snapshot_put(&usage_snapshot, &(struct usage_row){ 1, 1, 1 });
        usage_snapshot_end(&usage_snapshot);
        count = usage_snapshot_read(&usage_snapshot, &rows);
}

static void write_it(void)
{
        usage_snapshot_begin(&usage_snapshot);
        usage_snapshot_put(&usage_snapshot, &(struct usage_row){ 2, 2, 2 });
        usage_snapshot_put(&usage_snapshot, &(struct usage_row){ 2, 2, 2 });
        usage_snapshot_end(&usage_snapshot);
}

static void look(void)
{
        count = usage_snapshot_read(&usage_snapshot, &rows);
}

static void (*const litmus_thread[3])(void) = { write_it, look };

static int litmus_end(void)
{
        uint32_t of = rows[0].uid;

        if (count != of)
                return LITMUS_FORBIDDEN;
        for (uint32_t i = 0; i < count; i++)
                if (rows[i].uid != of || rows[i].blocks != of || rows[i].cached != of)
                        return LITMUS_FORBIDDEN;
        return (int)of;
}
