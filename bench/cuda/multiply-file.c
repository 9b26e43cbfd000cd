/*
 * Multiplies one matrix by an operator of the backend for GPUs, from files to a file.  Another
 * program can then compare the result with its own (contrib/gpu/pytorch).
 *
 *      multiply-file [--deterministic] [--threads T] --library FILE OPERATOR TYPE N K ROWS
 *                    WEIGHTS X Y
 *
 * OPERATOR is project or head (y = W x), or gate (y = silu(Wg x) * (Wu x)).  WEIGHTS has N rows
 * of K numbers in the layout that a model file of that TYPE has; for gate it has gate's N rows,
 * then up's.  ROWS is a number of rows, or several with commas between them.  Each number is a
 * step of its own.  X has rows of K floats, as many as the largest number says; each step takes
 * the first of them.  Y gets the rows of N floats of all steps, one step after the other.  T
 * threads load the weights (8).
 *
 * The name of the backend goes to standard output: "cuda/blas" multiplies steps of many rows with
 * a library, "cuda" does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/kernels.h"

#define PIECE       ((size_t)2 << 20) /* bytes of weights that are put at once */
#define COUNTS_MAX  16u
#define THREADS_MAX 64u
#define ROWS_MAX    65536u
#define PROGRAM     "multiply-file: "

enum kind { PROJECT, HEAD, GATE, KINDS };
static const char *const kinds[KINDS] = { "project", "head", "gate" };

struct product {
        const char *library, *weights, *x_file, *y_file;
        bool deterministic;
        unsigned threads;
        enum kind kind;
        uint32_t n, columns;
        uint32_t counts[COUNTS_MAX], count_n, rows_max;

        struct kernels *k;
        struct matrix_shape shape;
        struct matrix *matrix;
        float *x, *out; /* the backend's */
        float *x_host, *out_host;
};

/* ---- failing ---- */

static void end(const char *what, const char *why)
{
        fprintf(stderr, PROGRAM "%s: %s\n", what, why);
        exit(1);
}

/* Prints the backend's own reason, if it has one. */
static void must(const struct product *p, int error, const char *what)
{
        const char *why;

        if (!error)
                return;
        why = p->k ? p->k->lost(p->k) : kernels_errtext();
        end(what, why && *why ? why : strerror(-error));
}

static void *memory(size_t count, size_t bytes)
{
        void *made = calloc(count, bytes);

        if (!made)
                end("memory", strerror(ENOMEM));
        return made;
}

/* ---- files ---- */

static int open_whole(const char *name, size_t bytes)
{
        int file = open(name, O_RDONLY | O_CLOEXEC);
        struct stat is;
        char why[80];

        if (file < 0 || fstat(file, &is))
                end(name, strerror(errno));
        snprintf(why, sizeof(why), "it has %zu bytes, not %zu", (size_t)is.st_size, bytes);
        if ((size_t)is.st_size != bytes)
                end(name, why);
        return file;
}

static void read_at(const char *name, int file, void *to, size_t bytes, size_t at)
{
        for (size_t done = 0; done < bytes;) {
                ssize_t some = pread(file, (char *)to + done, bytes - done, (off_t)(at + done));

                if (some < 0 && errno == EINTR)
                        continue;
                if (some <= 0)
                        end(name, some ? strerror(errno) : "it has become shorter");
                done += (size_t)some;
        }
}

static void read_x(struct product *p)
{
        size_t count = (size_t)p->rows_max * p->columns;
        int file = open_whole(p->x_file, count * sizeof(float));

        p->x_host = memory(count, sizeof(float));
        read_at(p->x_file, file, p->x_host, count * sizeof(float), 0);
        close(file);
}

/* ---- weights ---- */

struct job {
        const struct product *p;
        int file;
        size_t row_bytes;
        uint32_t piece; /* in rows */
        uint32_t next;  /* the next piece; accessed atomically */
        int error;      /* the error of one of the threads; accessed atomically */
};

static void *load_pieces(void *arg)
{
        struct job *job = arg;
        const struct product *p = job->p;
        uint32_t pieces = (p->n + job->piece - 1) / job->piece; /* of a part */
        uint8_t *rows = memory(job->piece, job->row_bytes);
        int r;

        for (;;) {
                uint32_t number = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
                uint32_t part = number / pieces, row = number % pieces * job->piece;
                uint32_t count = p->n - row < job->piece ? p->n - row : job->piece;

                if (part >= p->shape.parts)
                        break;
                read_at(p->weights, job->file, rows, count * job->row_bytes,
                        ((size_t)part * p->n + row) * job->row_bytes);
                r = p->k->weights_put(p->k, p->matrix, part, row, count, rows);
                if (r)
                        __atomic_store_n(&job->error, r, __ATOMIC_RELAXED);
        }
        free(rows);
        return NULL;
}

static void load(const struct product *p)
{
        size_t bytes = row_bytes(p->shape.type[0], p->columns);
        struct job job = { .p = p, .row_bytes = bytes };
        pthread_t others[THREADS_MAX];

        job.piece = bytes < PIECE ? (uint32_t)(PIECE / bytes) : 1;
        job.file = open_whole(p->weights, bytes * p->n * p->shape.parts);
        for (unsigned i = 0; i < p->threads; i++)
                must(p, -pthread_create(&others[i], NULL, load_pieces, &job), "a thread");
        for (unsigned i = 0; i < p->threads; i++)
                pthread_join(others[i], NULL);
        close(job.file);
        must(p, job.error, "weights");
}

/* ---- the product ---- */

static void make(struct product *p)
{
        const struct kernels_conf conf = {
                .rows_max = p->rows_max,
                .slots_max = 1,
                .pages_max = (p->rows_max + PAGE_POSITIONS - 1) / PAGE_POSITIONS,
                .vocab_max = p->n,
                .wants_max = p->rows_max,
                .deterministic = p->deterministic,
                .library = p->library,
        };
        size_t rows = p->rows_max;

        must(p, kernels_open("cuda", &conf, &p->k), "the backend");
        must(p, p->k->matrix_new(p->k, &p->shape, &p->matrix), "a matrix");
        must(p, p->k->floats_new(p->k, rows * p->columns, &p->x), "room for X");
        must(p, p->k->floats_new(p->k, rows * p->n, &p->out), "room for Y");
        p->out_host = memory(rows * p->n, sizeof(float));
}

static int operate(const struct product *p)
{
        const struct linear linear = { .w = p->matrix };
        const struct head head = { .w = p->matrix };
        const struct gate gate = { .w = p->matrix, .act = ACT_SILU };
        struct kernels *k = p->k;

        switch (p->kind) {
        case PROJECT:
                return k->project(k, &linear, p->out, p->x);
        case HEAD:
                return k->head(k, &head, p->out, p->x);
        default:
                return k->gate(k, &gate, p->out, p->x);
        }
}

/* Begins a step with one run of rows.  For head, all rows are wanted. */
static void begin(const struct product *p, uint32_t count, uint64_t number)
{
        struct step_row *rows = memory(count, sizeof(*rows));
        struct pick *picks = memory(count, sizeof(*picks));
        uint32_t *want = memory(count, sizeof(*want));
        const struct step_run run = { 0, count };
        const struct step step = { .number = number,
                                   .row_count = count,
                                   .run_count = 1,
                                   .want_count = p->kind == HEAD ? count : 0,
                                   .rows = rows,
                                   .runs = &run,
                                   .want = want,
                                   .picks = picks };

        for (uint32_t i = 0; i < count; i++) {
                rows[i] = (struct step_row){ .position = i, .from_row = STEP_TOKEN };
                want[i] = i;
        }
        must(p, p->k->step_begin(p->k, KV_ALONE(NULL), &step), "a step");
        free(rows);
        free(picks);
        free(want);
}

/*
 * project adds to Y, so Y begins with zeros.  The other operators must write all of Y, so it
 * begins with NaN.
 */
static void fill_out(const struct product *p)
{
        size_t count = (size_t)p->rows_max * p->n;
        int bits = p->kind == PROJECT ? 0 : 0xff;

        memset(p->out_host, bits, count * sizeof(float));
        must(p, p->k->put(p->k, p->out, p->out_host, count), "Y");
}

static void multiply(const struct product *p, uint32_t count, uint64_t number, FILE *y)
{
        struct kernels *k = p->k;
        size_t numbers = (size_t)count * p->n;

        fill_out(p);
        must(p, k->put(k, p->x, p->x_host, (size_t)count * p->columns), "X");
        begin(p, count, number);
        must(p, operate(p), kinds[p->kind]);
        must(p, k->step_end(k), "a step");
        k->get(k, p->out_host, p->out, numbers);
        must(p, k->lost(k) ? -EIO : 0, kinds[p->kind]);
        /* flushed now, so that a later step that crashes does not lose it */
        if (fwrite(p->out_host, sizeof(float), numbers, y) != numbers || fflush(y))
                end(p->y_file, strerror(errno));
}

static void multiply_all(struct product *p)
{
        FILE *y = fopen(p->y_file, "wb");

        if (!y)
                end(p->y_file, strerror(errno));
        read_x(p);
        make(p);
        load(p);
        for (uint32_t i = 0; i < p->count_n; i++)
                multiply(p, p->counts[i], i + 1, y);
        if (fclose(y))
                end(p->y_file, strerror(errno));
        puts(p->k->name);
        p->k->floats_free(p->k, p->x);
        p->k->floats_free(p->k, p->out);
        p->k->matrix_free(p->k, p->matrix);
        p->k->close(p->k);
        free(p->x_host);
        free(p->out_host);
}

/* ---- arguments ---- */

static void refuse(const char *what, const char *why)
{
        fprintf(stderr,
                PROGRAM "%s: %s\nusage: multiply-file [--deterministic] [--threads T] --library "
                        "FILE project|head|gate TYPE N K ROWS[,ROWS...] WEIGHTS X Y\n",
                what, why);
        exit(2);
}

/* Parses a number up to `most`; *ret_rest is the text after it. */
static uint32_t number_of(const char *text, uint32_t most, char **ret_rest)
{
        unsigned long number;

        errno = 0;
        number = strtoul(text, ret_rest, 10);
        if (errno || *ret_rest == text || *text == '-' || !number || number > most)
                refuse(text, "no such number");
        return (uint32_t)number;
}

static uint32_t whole_number(const char *text, uint32_t most)
{
        char *rest;
        uint32_t number = number_of(text, most, &rest);

        if (*rest)
                refuse(text, "no number");
        return number;
}

static enum kind kind_of(const char *name)
{
        unsigned i = 0;

        while (i < KINDS && strcmp(name, kinds[i]))
                i++;
        if (i == KINDS)
                refuse(name, "no such operator");
        return i;
}

static enum row_type type_of(const char *name)
{
        unsigned i = 0;

        while (i < ROW_TYPE_N && strcasecmp(name, row_type_name(i)))
                i++;
        if (i == ROW_TYPE_N)
                refuse(name, "no such type");
        return i;
}

static void take_counts(struct product *p, char *text)
{
        char *at = text;

        for (;; at++) {
                uint32_t count = number_of(at, ROWS_MAX, &at);

                if (p->count_n == COUNTS_MAX)
                        refuse(text, "too many numbers");
                p->counts[p->count_n++] = count;
                p->rows_max = count > p->rows_max ? count : p->rows_max;
                if (*at != ',')
                        break;
        }
        if (*at)
                refuse(text, "no numbers with commas between them");
}

static void take(struct product *p, char **of)
{
        enum row_type type = type_of(of[1]);

        p->kind = kind_of(of[0]);
        p->n = whole_number(of[2], INT32_MAX / 2);
        p->columns = whole_number(of[3], INT32_MAX);
        take_counts(p, of[4]);
        p->weights = of[5];
        p->x_file = of[6];
        p->y_file = of[7];
        p->shape = (struct matrix_shape){ .columns = p->columns,
                                          .parts = p->kind == GATE ? 2 : 1,
                                          .rows = { p->n, p->n },
                                          .type = { type, type } };
        if (!row_bytes(type, p->columns))
                refuse(of[3], "no whole blocks of that type");
}

int main(int argc, char **argv)
{
        struct product p = { .threads = 8 };
        int i = 1;

        for (; i < argc && argv[i][0] == '-'; i++)
                if (!strcmp(argv[i], "--deterministic"))
                        p.deterministic = true;
                else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
                        p.threads = whole_number(argv[++i], THREADS_MAX);
                else if (!strcmp(argv[i], "--library") && i + 1 < argc)
                        p.library = argv[++i];
                else
                        refuse(argv[i], "no such flag");
        if (!p.library)
                refuse("--library", "it is not given");
        if (argc - i != 8)
                refuse("arguments", "there have to be eight");
        take(&p, argv + i);
        multiply_all(&p);
        return 0;
}
