/*
 * A load is prepared on the caller's thread: its pieces, the way, buffers and readers.  Then its
 * threads run.  They share only the number of the next piece and a few atomic words beside it.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/free-numbers.h"
#include "daemon/engine/weights-reader.h"
#include "daemon/engine/weights-rows.h"
#include "daemon/engine/weights.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/errtext.h"
#include "kernels/cpu/cgroup-limits.h"

#define ROWS_ALIGN    32u /* no two pieces share rows that a backend packs together */
#define SAMPLES       64u
#define URING_THREADS 4u /* enough for repacking to keep up with any disk */
#define URING_DEPTH   8u
#define ALIGN         4096u
/* of n samples, how many must be in memory for a cached file */
#define CACHED_IN(n) ((n) - (n) / 8)

/* Whole rows of one tensor. */
struct slice {
        uint32_t load, row, rows;
};

struct worker {
        struct load *load;
        struct reader *reader;
        struct piece pieces[URING_DEPTH];
        char *buffers[URING_DEPTH];   /* the buffers of the pieces */
        uint32_t slices[URING_DEPTH]; /* the slice of each piece */
        char *scratch;
        char why[256]; /* the reason of a failure, if known */
        uint32_t idle_memory[URING_DEPTH];
        struct free_numbers idle; /* indices of pieces that are not being read */
        uint32_t in_flight;
        /* the caller's own thread does the work, because no thread could be started */
        bool watches;
        pthread_t thread;
};

struct load {
        const struct checkpoint *checkpoint;
        const struct weights_load *loads;
        uint32_t load_count;
        struct weights_conf conf;
        enum load_way way;
        struct slice *slices;
        uint32_t slice_count;
        size_t slice_bytes, scratch_bytes; /* the largest need of any slice */
        uint64_t total;
        struct worker workers[WEIGHTS_BUFFERS_MAX];
        uint32_t worker_count, depth;
        char *buffers;
        size_t buffers_bytes;

        _Atomic uint32_t next;  /* the next slice to take */
        _Atomic uint64_t bytes; /* bytes put so far */
        _Atomic uint32_t ended; /* workers that have ended */
        _Atomic bool stopped;   /* no more slices are taken */
        _Atomic bool failed;    /* set once; the thread that sets it writes result and why */
        int result;
        char *why;
        size_t why_bytes;
};

/* ---- slices ---- */

static const struct tensor *tensor_of(const struct load *load, const struct slice *slice)
{
        return load->loads[slice->load].tensor;
}

static struct rows rows_of(const struct load *load, const struct slice *slice)
{
        return (struct rows){ tensor_of(load, slice), slice->row, slice->rows };
}

static uint32_t rows_of_a_piece(const struct tensor *tensor)
{
        size_t bytes = rows_taken(&(struct rows){ tensor, 0, 1 });
        uint32_t rows;

        assert(bytes && bytes <= WEIGHTS_PIECE_MAX);
        if (tensor->group) /* as many rows lie between them */
                bytes = bytes * ((tensor->stride + tensor->group - 1) / tensor->group + 1);
        bytes = bytes < WEIGHTS_PIECE_MAX ? bytes : WEIGHTS_PIECE_MAX;
        rows = (uint32_t)(WEIGHTS_PIECE_MAX / bytes);
        return rows > ROWS_ALIGN ? rows / ROWS_ALIGN * ROWS_ALIGN : rows;
}

static int load_compare(const void *a, const void *b)
{
        const struct tensor *s = ((const struct weights_load *)a)->tensor;
        const struct tensor *t = ((const struct weights_load *)b)->tensor;

        if (s->file != t->file)
                return s->file < t->file ? -1 : 1;
        return (s->offset > t->offset) - (s->offset < t->offset);
}

static uint64_t count_slices(const struct load *load)
{
        uint64_t count = 0;

        for (uint32_t i = 0; i < load->load_count; i++) {
                const struct tensor *tensor = load->loads[i].tensor;
                uint32_t rows = rows_of_a_piece(tensor);

                count += ((uint64_t)tensor->rows + rows - 1) / rows;
        }
        return count;
}

/* Adds to the total, and updates the largest need. */
static void measure(struct load *load, const struct slice *slice)
{
        const struct rows rows = rows_of(load, slice);

        load->total += rows_stored(&rows);
        if (rows_buffer(&rows) > load->slice_bytes)
                load->slice_bytes = rows_buffer(&rows);
        if (rows_scratch(&rows) > load->scratch_bytes)
                load->scratch_bytes = rows_scratch(&rows);
}

static int cut(struct load *load)
{
        uint64_t count = count_slices(load);

        if (count < UINT32_MAX)
                load->slices = calloc(count ? count : 1, sizeof(*load->slices));
        if (!load->slices)
                return error_raise(-ENOMEM);
        for (uint32_t i = 0; i < load->load_count; i++) {
                const struct tensor *tensor = load->loads[i].tensor;
                uint32_t group = rows_of_a_piece(tensor), rows;

                for (uint32_t row = 0; row < tensor->rows; row += rows) {
                        struct slice *slice = &load->slices[load->slice_count++];

                        rows = tensor->rows - row < group ? tensor->rows - row : group;
                        *slice = (struct slice){ i, row, rows };
                        measure(load, slice);
                }
        }
        assert(load->slice_count == count);
        return 0;
}

/* ---- the way ---- */

/*
 * Tests one byte in each piece of a sample.  If the kernel cannot tell, the files count as not
 * cached.
 */
static bool is_cached(const struct load *load)
{
        uint32_t samples = load->slice_count < SAMPLES ? load->slice_count : SAMPLES, in = 0;

        for (uint32_t i = 0; i < samples; i++) {
                uint32_t at = (uint32_t)((uint64_t)i * load->slice_count / samples);
                const struct rows rows = rows_of(load, &load->slices[at]);
                int fd = checkpoint_fd(load->checkpoint, rows.tensor);
                char byte;

                in += sys_pread_cached(fd, &byte, 1, rows_offset(&rows)) == 1;
        }
        return in >= CACHED_IN(samples);
}

static void close_reader(struct worker *worker)
{
        if (worker->reader)
                worker->reader->close(worker->reader);
        worker->reader = NULL;
}

static void close_readers(struct load *load)
{
        for (uint32_t i = 0; i < load->worker_count; i++)
                close_reader(&load->workers[i]);
        load->worker_count = 0;
}

/* Chooses the number of threads, and how many pieces each has at a time. */
static void share_out(struct load *load)
{
        uint32_t threads = load->conf.threads ? load->conf.threads : cgroup_limits_cores();
        uint32_t most = load->way == LOAD_URING ? URING_THREADS : WEIGHTS_BUFFERS_MAX;

        threads = threads < most ? threads : most;
        threads = threads < load->slice_count ? threads : load->slice_count;
        load->depth = 1;
        if (load->way == LOAD_URING)
                load->depth = WEIGHTS_BUFFERS_MAX / threads;
        if (load->depth > URING_DEPTH)
                load->depth = URING_DEPTH;
        load->worker_count = threads;
}

static int open_readers(struct load *load)
{
        int r = 0;

        share_out(load);
        for (uint32_t i = 0; !r && i < load->worker_count; i++) {
                struct worker *worker = &load->workers[i];

                *worker = (struct worker){ .load = load };
                if (load->way == LOAD_URING)
                        r = reader_open_uring(load->depth, &worker->reader);
                else
                        r = reader_open_pread(load->way == LOAD_PLAIN, &worker->reader);
                if (r)
                        load->worker_count = i;
        }
        if (r)
                close_readers(load);
        return error_pass(r);
}

static int choose(struct load *load)
{
        int r;

        load->way = load->conf.way;
        if (load->way == LOAD_AUTO)
                load->way = is_cached(load) ? LOAD_CACHED : LOAD_URING;
        r = open_readers(load);
        if (r && load->way == LOAD_URING && load->conf.way == LOAD_AUTO) {
                log_info("io_uring_unavailable error=%s", strerror(-r));
                load->way = LOAD_PLAIN;
                r = open_readers(load);
        }
        if (r && load->way == LOAD_URING)
                return error_raise(errtext_set(
                        load->why, load->why_bytes, r,
                        "its weights cannot be read by io_uring: %s; use load = auto or plain",
                        strerror(-r)));
        return error_pass(r);
}

static size_t aligned(size_t bytes)
{
        return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static int give_buffers(struct load *load)
{
        size_t each = aligned(load->slice_bytes), scratch = aligned(load->scratch_bytes);
        char *at;

        load->buffers_bytes = (each * load->depth + scratch) * load->worker_count;
        load->buffers = at = sys_map(load->buffers_bytes);
        if (!load->buffers)
                return error_raise(-ENOMEM);
        for (uint32_t i = 0; i < load->worker_count; i++) {
                struct worker *worker = &load->workers[i];

                for (uint32_t j = 0; j < load->depth; j++, at += each) {
                        worker->buffers[j] = at;
                }
                free_numbers_init(&worker->idle, worker->idle_memory, 0, load->depth);
                worker->scratch = at;
                at += scratch;
        }
        return 0;
}

/* ---- a thread ---- */

static bool is_stopped(struct load *load)
{
        return atomic_load_explicit(&load->stopped, memory_order_relaxed);
}

static void stop(struct load *load)
{
        atomic_store_explicit(&load->stopped, true, memory_order_relaxed);
}

/* The first thread that fails writes the reason; it is read after all threads have ended. */
static void fail(struct worker *worker, const struct piece *piece, int r)
{
        struct load *load = worker->load;
        const struct slice *slice;

        stop(load);
        if (atomic_exchange(&load->failed, true))
                return;
        load->result = r;
        if (worker->why[0]) {
                errtext_set(load->why, load->why_bytes, r, "%s", worker->why);
                return;
        }
        if (r == -ENODATA) {
                load->result = -EIO;
                errtext_set(load->why, load->why_bytes, r,
                            "the file became shorter while it was read");
        } else if (piece && piece->done == piece->bytes) {
                errtext_set(load->why, load->why_bytes, r, "the backend did not take its rows: %s",
                            strerror(-r));
        } else if (piece) {
                errtext_set(load->why, load->why_bytes, r, "reading it at byte %" PRIu64 ": %s",
                            piece->offset + piece->done, strerror(-r));
        } else {
                errtext_set(load->why, load->why_bytes, r, "reading its weights: %s", strerror(-r));
        }
        if (!piece)
                return;
        slice = &load->slices[worker->slices[piece - worker->pieces]];
        checkpoint_prefix_error(load->checkpoint, tensor_of(load, slice), load->why,
                                load->why_bytes, r);
}

static bool take_slice(struct load *load, uint32_t *ret_slice)
{
        *ret_slice = atomic_fetch_add_explicit(&load->next, 1, memory_order_relaxed);
        return *ret_slice < load->slice_count;
}

/* Announces the slice that will be next after each thread has taken one more. */
static void announce(struct worker *worker, uint32_t now)
{
        struct load *load = worker->load;
        uint32_t at = now + load->worker_count;
        struct rows rows;

        if (at >= load->slice_count)
                return;
        rows = rows_of(load, &load->slices[at]);
        worker->reader->announce(worker->reader, checkpoint_fd(load->checkpoint, rows.tensor),
                                 rows_offset(&rows), rows_span(&rows));
}

static int start_pieces(struct worker *worker)
{
        struct load *load = worker->load;
        uint32_t at;
        int r = 0;

        while (!r && worker->idle.count && take_slice(load, &at)) {
                const struct rows rows = rows_of(load, &load->slices[at]);
                uint32_t i = free_numbers_take(&worker->idle);
                struct piece *piece = &worker->pieces[i];

                worker->slices[i] = at;
                piece->fd = checkpoint_fd(load->checkpoint, rows.tensor);
                piece->offset = rows_offset(&rows);
                piece->bytes = rows_span(&rows);
                piece->buffer = worker->buffers[i] + rows_buffer(&rows) - piece->bytes;
                piece->done = 0;
                worker->in_flight++;
                announce(worker, at);
                r = worker->reader->start(worker->reader, piece);
        }
        return error_pass(r);
}

static int put(struct worker *worker, struct piece *piece)
{
        struct load *load = worker->load;
        uint32_t i = (uint32_t)(piece - worker->pieces);
        const struct slice *slice = &load->slices[worker->slices[i]];
        const struct weights_load *to = &load->loads[slice->load];
        const struct rows rows = rows_of(load, slice);
        int r = rows_finish(load->checkpoint, &rows, worker->buffers[i], worker->scratch,
                            worker->why, sizeof(worker->why));

        if (r)
                return error_pass(r);
        r = to->kernels->weights_put(to->kernels, to->matrix, to->part, slice->row, slice->rows,
                                     worker->buffers[i]);
        if (r)
                return error_raise(r);
        atomic_fetch_add_explicit(&load->bytes, rows_stored(&rows), memory_order_relaxed);
        worker->in_flight--;
        free_numbers_give_back(&worker->idle, i);
        return 0;
}

static void look(struct load *load)
{
        const struct weights_progress progress = {
                .bytes = atomic_load_explicit(&load->bytes, memory_order_relaxed),
                .way = load->way,
        };

        if (load->conf.go_on && !load->conf.go_on(load->conf.arg, &progress))
                stop(load);
}

static void work(struct worker *worker)
{
        struct load *load = worker->load;
        struct piece *piece;
        int r = 0;

        while (!r && !is_stopped(load)) {
                piece = NULL;
                r = start_pieces(worker);
                if (r || !worker->in_flight)
                        break;
                r = worker->reader->wait(worker->reader, &piece);
                if (!r && piece)
                        r = put(worker, piece);
                if (worker->watches)
                        look(load);
        }
        if (r)
                fail(worker, piece, r);
        close_reader(worker); /* on the thread that made its reads */
}

static void end(struct load *load)
{
        atomic_fetch_add(&load->ended, 1);
        sys_futex_wake((uint32_t *)&load->ended);
}

static void *worker_main(void *arg)
{
        struct worker *worker = arg;

        work(worker);
        end(worker->load);
        return NULL;
}

/* ---- the whole load ---- */

/* Waits until that many threads have ended. */
static void watch(struct load *load, uint32_t threads)
{
        uint32_t ended;

        while ((ended = atomic_load(&load->ended)) < threads) {
                sys_futex_wait((uint32_t *)&load->ended, ended, sys_clock_ns() + WEIGHTS_LOOK_NS);
                look(load);
        }
}

/* With fewer threads it takes longer; with none, the caller's thread does the work. */
static void run(struct load *load)
{
        uint32_t threads = 0;

        while (threads < load->worker_count &&
               !sys_thread(&load->workers[threads].thread, "smv-load", worker_main,
                           &load->workers[threads]))
                threads++;
        if (!threads) {
                load->workers[0].watches = true;
                work(&load->workers[0]);
        }
        watch(load, threads);
        for (uint32_t i = 0; i < threads; i++)
                pthread_join(load->workers[i].thread, NULL);
}

static int read_all(struct load *load)
{
        int r;

        if ((r = cut(load)) || !load->slice_count)
                return error_pass(r);
        if ((r = choose(load)))
                return error_pass(r);
        if (!(r = give_buffers(load))) {
                run(load);
                r = load->result;
                if (!r && atomic_load(&load->bytes) < load->total)
                        r = errtext_set(load->why, load->why_bytes, -ECANCELED,
                                        "loading was stopped");
        }
        close_readers(load);
        sys_unmap(load->buffers, load->buffers_bytes);
        return error_pass(r);
}

int weights_read(const struct checkpoint *checkpoint, struct weights_load *loads,
                 uint32_t load_count, const struct weights_conf *conf, enum load_way *ret_way,
                 char *why, size_t why_bytes)
{
        struct load load = {
                .checkpoint = checkpoint,
                .loads = loads,
                .load_count = load_count,
                .conf = *conf,
                .why = why,
                .why_bytes = why_bytes,
        };
        int r;

        errtext_set(why, why_bytes, 0, "no memory for the buffers to read its weights");
        qsort(loads, load_count, sizeof(*loads), load_compare);
        r = read_all(&load);
        free(load.slices);
        if (!r)
                r = checkpoint_check(checkpoint, why, why_bytes);
        *ret_way = load.way;
        return error_pass(r);
}

/* Two tensors, compared by a thread because they may be large. */
struct comparison {
        struct load load; /* so that watch() works */
        const struct tensor *a, *b;
        char *buffer;
        int result;
};

static int compare(struct comparison *c)
{
        const size_t half = WEIGHTS_PIECE_MAX / 2;
        struct load *load = &c->load;
        int r;

        for (uint64_t at = 0; at < c->a->bytes && !is_stopped(load); at += half) {
                size_t n = c->a->bytes - at < half ? c->a->bytes - at : half;

                if ((r = checkpoint_read(load->checkpoint, c->a, at, c->buffer, n, load->why,
                                         load->why_bytes)) ||
                    (r = checkpoint_read(load->checkpoint, c->b, at, c->buffer + half, n, load->why,
                                         load->why_bytes)))
                        return error_pass(r);
                if (memcmp(c->buffer, c->buffer + half, n))
                        return 0;
        }
        return is_stopped(load)
                       ? errtext_set(load->why, load->why_bytes, -ECANCELED, "loading was stopped")
                       : 1;
}

static void *compare_main(void *arg)
{
        struct comparison *c = arg;

        c->result = compare(c);
        end(&c->load);
        return NULL;
}

int weights_equal(const struct checkpoint *checkpoint, const struct tensor *a,
                  const struct tensor *b, const struct weights_conf *conf, char *why,
                  size_t why_bytes)
{
        struct comparison c = {
                .load = { .checkpoint = checkpoint,
                          .conf = *conf,
                          .why = why,
                          .why_bytes = why_bytes },
                .a = a,
                .b = b,
        };
        pthread_t thread;

        if (a->type != b->type || a->rows != b->rows || a->columns != b->columns || a->scales ||
            b->scales)
                return 0;
        assert(!a->unserved && !b->unserved && a->bytes == b->bytes);
        c.buffer = malloc(WEIGHTS_PIECE_MAX);
        if (!c.buffer)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM,
                                               "no memory for the buffer to read it"));
        if (sys_thread(&thread, "smv-load", compare_main, &c)) {
                c.result = compare(&c);
        } else {
                watch(&c.load, 1);
                pthread_join(thread, NULL);
        }
        free(c.buffer);
        return error_pass(c.result);
}
