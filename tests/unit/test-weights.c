/*
 * Loading weights, by every way of reading.  Files are made here, and their bytes are a
 * function of shard and place.  The backend keeps rows as they come and counts how often each
 * has come.  Two tensors are of eight bits with scales beside them, in the other shard; they
 * must become whole rows.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/engine/tensor-parts.h"
#include "daemon/engine/weights-reader.h"
#include "daemon/engine/weights-rows.h"
#include "daemon/engine/weights-transposed.h"
#include "daemon/engine/weights.h"
#include "base/sys.h"
#include "kernels/convert.h"
#include "tests/skip.h"

#define TENSORS 7u
#define SCALES  2u
#define LAYER   "model.layers.0."
#define SHARDS  2u

/* Large enough for several pieces, and with borders at odd places. */
static const struct {
        const char *name, *canonical, *type;
        uint32_t rows, columns, bytes; /* of a number */
        unsigned shard;
        uint32_t scales; /* which has them, 0: none; and of how many rows and columns */
        uint32_t over_rows, over_columns;
} made[TENSORS + SCALES] = {
        { "model.embed_tokens.weight", "token_embd.weight", "BF16", 3001, 4096, 2, 0 },
        { LAYER "mlp.up_proj.weight", "blk.0.ffn_up.weight", "F32", 33, 7, 4, 0 },
        { LAYER "mlp.down_proj.weight", "blk.0.ffn_down.weight", "F16", 1, 5, 2, 0 },
        { LAYER "mlp.gate_proj.weight", "blk.0.ffn_gate.weight", "F32", 1025, 2049, 4, 1 },
        { "lm_head.weight", "output.weight", "F16", 700, 1000, 2, 1 },
        { LAYER "self_attn.q_proj.weight", "blk.0.attn_q.weight", "F8_E4M3", 2100, 4096, 1, 0,
          TENSORS, 128, 128 },
        { LAYER "self_attn.o_proj.weight", "blk.0.attn_output.weight", "F8_E4M3", 777, 384, 1, 1,
          TENSORS + 1, 1, 384 },
        { LAYER "self_attn.q_proj.weight_scale_inv", NULL, "BF16", 17, 32, 2, 1 },
        { LAYER "self_attn.o_proj.weight_scale", NULL, "F32", 777, 1, 4, 0 },
};

static const char *const files[SHARDS] = { "one.safetensors", "two.safetensors" };
static const enum load_way ways[] = { LOAD_CACHED, LOAD_URING, LOAD_PLAIN };
#define WAYS (sizeof(ways) / sizeof(*ways))

static char folder[] = "/tmp/test-weights-XXXXXX";
static char path[96], why[256];
static bool has_uring;
static uint8_t *bytes_of[TENSORS + SCALES]; /* as the files have them */
static uint8_t *rows_of[TENSORS];           /* as they are to be taken; made once, compared often */

static const char *in_folder(const char *name)
{
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static uint8_t byte_of(uint32_t tensor, uint64_t at)
{
        uint64_t x = (at / 7 + 1) * 0x9e3779b97f4a7c15u + tensor * 0xbf58476d1ce4e5b9u;

        return (uint8_t)(x >> 56 ^ at);
}

static size_t size_of(uint32_t tensor)
{
        return (size_t)made[tensor].rows * made[tensor].columns * made[tensor].bytes;
}

/* Of a row as it is taken. */
static size_t row_of(uint32_t tensor)
{
        if (made[tensor].scales)
                return made[tensor].columns / 128 * 132;
        return (size_t)made[tensor].columns * made[tensor].bytes;
}

/* A byte of the scale of a block of 128 numbers, as a float has it: a bfloat is its upper half. */
static uint8_t scale_byte(uint32_t tensor, uint32_t row, uint32_t block, uint32_t at)
{
        uint32_t scales = made[tensor].scales, bytes = made[scales].bytes;
        uint64_t number = (uint64_t)(row / made[tensor].over_rows) * made[scales].columns +
                          block * 128 / made[tensor].over_columns;

        return at < 4 - bytes ? 0 : byte_of(scales, number * bytes + at - (4 - bytes));
}

/* A byte of a row as it is taken. */
static uint8_t taken_byte(uint32_t tensor, uint32_t row, uint32_t at)
{
        if (!made[tensor].scales)
                return byte_of(tensor, row * row_of(tensor) + at);
        if (at % 132 < 4)
                return scale_byte(tensor, row, at / 132, at % 132);
        return byte_of(tensor,
                       (uint64_t)row * made[tensor].columns + at / 132 * 128 + at % 132 - 4);
}

static void make_bytes(void)
{
        for (uint32_t t = 0; t < TENSORS + SCALES; t++) {
                bytes_of[t] = malloc(size_of(t));
                assert_non_null(bytes_of[t]);
                for (size_t i = 0; i < size_of(t); i++)
                        bytes_of[t][i] = byte_of(t, i);
        }
        for (uint32_t t = 0; t < TENSORS; t++) {
                uint8_t *to = rows_of[t] = malloc(made[t].rows * row_of(t));

                assert_non_null(to);
                for (uint32_t row = 0; row < made[t].rows; row++)
                        for (uint32_t i = 0; i < row_of(t); i++)
                                *to++ = taken_byte(t, row, i);
        }
}

static void free_bytes(void)
{
        for (uint32_t t = 0; t < TENSORS + SCALES; t++)
                free(bytes_of[t]);
        for (uint32_t t = 0; t < TENSORS; t++)
                free(rows_of[t]);
}

static void write_text(const char *name, const char *text)
{
        FILE *out = fopen(in_folder(name), "wb");

        assert_non_null(out);
        fputs(text, out);
        assert_int_equal(fclose(out), 0);
}

static void write_shard(unsigned shard)
{
        char header[4096] = "{";
        size_t used = 1, data = 0;
        uint64_t length;
        FILE *out;

        for (uint32_t t = 0; t < TENSORS + SCALES; t++) {
                if (made[t].shard != shard)
                        continue;
                used += (size_t)snprintf(header + used, sizeof(header) - used,
                                         "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%u,%u],"
                                         "\"data_offsets\":[%zu,%zu]}",
                                         data ? "," : "", made[t].name, made[t].type, made[t].rows,
                                         made[t].columns, data, data + size_of(t));
                data += size_of(t);
        }
        header[used++] = '}';
        out = fopen(in_folder(files[shard]), "wb");
        assert_non_null(out);
        length = used;
        assert_int_equal(fwrite(&length, sizeof(length), 1, out), 1);
        assert_int_equal(fwrite(header, 1, used, out), used);
        for (uint32_t t = 0; t < TENSORS + SCALES; t++)
                if (made[t].shard == shard)
                        assert_int_equal(fwrite(bytes_of[t], 1, size_of(t), out), size_of(t));
        assert_int_equal(fclose(out), 0);
}

static void write_folder(void)
{
        char index[2048] = "{\"weight_map\":{";

        for (uint32_t t = 0; t < TENSORS + SCALES; t++)
                snprintf(index + strlen(index), sizeof(index) - strlen(index), "%s\"%s\":\"%s\"",
                         t ? "," : "", made[t].name, files[made[t].shard]);
        strcat(index, "}}");
        write_text("model.safetensors.index.json", index);
        write_text("config.json", "{}");
        for (unsigned s = 0; s < SHARDS; s++)
                write_shard(s);
}

/* ---- a backend that only keeps ---- */

struct matrix {
        uint32_t tensor;
        size_t row_bytes;
        uint8_t *rows;
        _Atomic uint8_t *times;
};

struct rig {
        struct checkpoint *checkpoint;
        struct kernels kernels;
        struct matrix matrices[TENSORS];
        struct weights_load loads[TENSORS];
        enum load_way way;
};

static int keep_rows(struct kernels *k, struct matrix *matrix, uint32_t part, uint32_t row,
                     uint32_t rows, const void *file_rows)
{
        (void)k;
        assert_int_equal(part, matrix->tensor % 3);
        memcpy(matrix->rows + row * matrix->row_bytes, file_rows, rows * matrix->row_bytes);
        for (uint32_t i = 0; i < rows; i++)
                atomic_fetch_add(&matrix->times[row + i], 1);
        return 0;
}

static void rig_open(struct rig *rig)
{
        int r;

        *rig = (struct rig){ .kernels = { .weights_put = keep_rows } };
        r = checkpoint_open(folder, &rig->checkpoint, why, sizeof(why));
        if (r)
                fail_msg("%d: %s", r, why);
        for (uint32_t t = 0; t < TENSORS; t++) {
                const struct tensor *tensor = checkpoint_tensor(rig->checkpoint, made[t].canonical);

                assert_non_null(tensor);
                rig->matrices[t] = (struct matrix){ .tensor = t,
                                                    .row_bytes = row_of(t),
                                                    .rows = calloc(made[t].rows, row_of(t)),
                                                    .times = calloc(made[t].rows, 1) };
                /* Not in the order of the files. */
                rig->loads[TENSORS - 1 - t] =
                        (struct weights_load){ tensor, &rig->kernels, &rig->matrices[t], t % 3 };
        }
}

static void rig_close(struct rig *rig)
{
        for (uint32_t t = 0; t < TENSORS; t++) {
                free(rig->matrices[t].rows);
                free(rig->matrices[t].times);
        }
        checkpoint_close(rig->checkpoint);
}

static int rig_read(struct rig *rig, const struct weights_conf *conf)
{
        why[0] = '\0';
        return weights_read(rig->checkpoint, rig->loads, TENSORS, conf, &rig->way, why,
                            sizeof(why));
}

static void assert_right(const struct rig *rig)
{
        for (uint32_t t = 0; t < TENSORS; t++) {
                for (uint32_t row = 0; row < made[t].rows; row++) {
                        const size_t at = row * row_of(t);

                        if (rig->matrices[t].times[row] != 1)
                                fail_msg("tensor %u, row %u: %u times", t, row,
                                         rig->matrices[t].times[row]);
                        if (memcmp(rig->matrices[t].rows + at, rows_of[t] + at, row_of(t)) != 0)
                                fail_msg("tensor %u, row %u", t, row);
                }
        }
}

static uint32_t threads_now(void)
{
        struct sys_resources holds;

        assert_int_equal(sys_resources(&holds), 0);
        return holds.threads;
}

/* ---- scenarios ---- */

static void every_load_way_loads_each_row_once_with_any_number_of_threads(void **state)
{
        static const uint32_t threads[] = { 0, 1, 2, 5, 16, 1000 };

        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                if (ways[w] == LOAD_URING && !has_uring)
                        continue;
                for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
                        const struct weights_conf conf = { ways[w], threads[i], NULL, NULL };
                        struct rig rig;
                        int r;

                        rig_open(&rig);
                        r = rig_read(&rig, &conf);
                        if (r)
                                fail_msg("%s: %d: %s", load_way_name(ways[w]), r, why);
                        assert_int_equal(rig.way, ways[w]);
                        assert_right(&rig);
                        rig_close(&rig);
                }
        }
}

/* Rows of a part that does not follow itself: 80 rows of each 240 of the embedding. */
static void rows_in_groups_are_picked_out_of_several_pieces(void **state)
{
        const uint32_t group = 80, stride = 240, first = 160, periods = 12;

        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                const struct weights_conf conf = { ways[w], 5, NULL, NULL };
                struct tensor part;
                struct rig rig;
                int r;

                if (ways[w] == LOAD_URING && !has_uring)
                        continue;
                rig_open(&rig);
                part = *checkpoint_tensor(rig.checkpoint, made[0].canonical);
                part.offset += first * row_of(0);
                part.rows = group * periods;
                part.bytes = part.rows * row_of(0);
                part.group = group;
                part.stride = stride;
                rig.loads[0] = (struct weights_load){ &part, &rig.kernels, &rig.matrices[0], 0 };
                r = weights_read(rig.checkpoint, rig.loads, 1, &conf, &rig.way, why, sizeof(why));
                if (r)
                        fail_msg("%s: %d: %s", load_way_name(ways[w]), r, why);
                for (uint32_t row = 0; row < part.rows; row++) {
                        uint32_t from = first + row / group * stride + row % group;

                        assert_int_equal(rig.matrices[0].times[row], 1);
                        assert_memory_equal(rig.matrices[0].rows + row * row_of(0),
                                            rows_of[0] + from * row_of(0), row_of(0));
                }
                rig_close(&rig);
        }
}

/* Our rows are columns of the file; here, the last two of each three groups of 64. */
static void transposed_rows_are_read_from_the_columns_of_the_file(void **state)
{
        const uint32_t group = 128, stride = 192, first = 64;
        const struct weights_conf conf = { LOAD_AUTO, 1, NULL, NULL };
        const struct tensor *whole;
        struct tensor part;
        uint32_t count = 1;
        struct rig rig;

        (void)state;
        rig_open(&rig);
        whole = checkpoint_tensor(rig.checkpoint, made[3].canonical);
        part = *whole;
        part.rows = 10 * group;
        part.columns = whole->rows;
        part.group = group;
        part.stride = stride;
        part.transposed = whole->columns;
        part.transposed_first = first;
        free(rig.matrices[3].rows);
        rig.matrices[3].row_bytes = part.columns * sizeof(float);
        rig.matrices[3].rows = malloc(part.rows * rig.matrices[3].row_bytes);
        free(rig.matrices[3].times);
        rig.matrices[3].times = calloc(part.rows, 1);
        rig.loads[0] = (struct weights_load){ &part, &rig.kernels, &rig.matrices[3], 0 };
        assert_int_equal(
                weights_read_transposed(rig.checkpoint, rig.loads, &count, &conf, why, sizeof(why)),
                0);
        assert_int_equal(count, 0);
        for (uint32_t row = 0; row < part.rows; row++) {
                uint32_t from = first + row / group * stride + row % group;

                assert_int_equal(rig.matrices[3].times[row], 1);
                for (uint32_t i = 0; i < part.columns; i++)
                        assert_memory_equal(
                                rig.matrices[3].rows + row * rig.matrices[3].row_bytes + 4 * i,
                                bytes_of[3] + 4 * ((size_t)i * whole->columns + from), 4);
        }
        rig_close(&rig);
}

static void check_unit_rows(enum row_type stored)
{
        enum { ROWS = 5, COLUMNS = 64 };
        struct tensor tensor = {
                .name = "head",
                .type = stored,
                .rows = ROWS,
                .columns = COLUMNS,
                .bytes = ROWS * row_bytes(stored, COLUMNS),
        };
        const struct tensor unit = tensor_unit_rows(&tensor);
        const struct rows rows = { &unit, 0, ROWS };
        size_t bytes = row_bytes(stored, COLUMNS);
        float numbers[COLUMNS], scratch[COLUMNS], taken[COLUMNS];
        uint8_t file[ROWS * COLUMNS * sizeof(float)], buffer[sizeof(file)];

        /* No byte is large, so that no half and no float is infinite; the last row is of zeros. */
        for (size_t i = 0; i < ROWS * bytes; i++)
                file[i] = i < (ROWS - 1) * bytes ? (uint8_t)(byte_of(1, i) % 61) : 0;
        assert_true(rows_buffer(&rows) <= sizeof(buffer));
        assert_true(rows_scratch(&rows) <= sizeof(scratch));
        memcpy(buffer + rows_buffer(&rows) - rows_span(&rows), file, rows_span(&rows));
        assert_int_equal(rows_finish(NULL, &rows, buffer, scratch, why, sizeof(why)), 0);
        for (uint32_t row = 0; row < ROWS; row++) {
                double length = 0;

                row_to_floats(stored, file + row * bytes, COLUMNS, numbers);
                row_to_floats(unit.type, buffer + row * row_bytes(unit.type, COLUMNS), COLUMNS,
                              taken);
                for (uint32_t i = 0; i < COLUMNS; i++)
                        length += (double)numbers[i] * numbers[i];
                for (uint32_t i = 0; i < COLUMNS; i++) {
                        double wanted = length > 0 ? numbers[i] / sqrt(length) : 0;

                        assert_true(fabs(taken[i] - wanted) <= 0.004 * fabs(wanted) + 1e-7);
                }
        }
}

/* The rows of the file are shorter than ours. */
static void rows_are_multiplied_with_a_matrix(void **state)
{
        static const enum row_type types[] = { ROW_F32, ROW_BF16, ROW_Q8_0 };
        enum { ROWS = 3, INNER = 32, COLUMNS = 48 };
        float matrix[INNER * COLUMNS], numbers[INNER], scratch[INNER], buffer[ROWS * COLUMNS];

        (void)state;
        for (uint32_t i = 0; i < INNER * COLUMNS; i++)
                matrix[i] = (float)(byte_of(2, i) % 9) - 4;
        for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++) {
                struct tensor tensor = { .type = types[t], .rows = ROWS, .columns = INNER };
                size_t bytes = row_bytes(types[t], INNER);
                uint8_t file[ROWS * INNER * sizeof(float)];
                struct tensor product;
                struct rows rows;

                tensor.bytes = ROWS * bytes;
                product = tensor_times(&tensor, matrix, COLUMNS);
                rows = (struct rows){ &product, 0, ROWS };
                for (size_t i = 0; i < ROWS * bytes; i++)
                        file[i] = (uint8_t)(byte_of(1, i) % 61);
                assert_int_equal(rows_buffer(&rows), sizeof(buffer));
                assert_int_equal(rows_scratch(&rows), sizeof(scratch));
                memcpy((char *)buffer + sizeof(buffer) - rows_span(&rows), file, ROWS * bytes);
                assert_int_equal(rows_finish(NULL, &rows, buffer, scratch, why, sizeof(why)), 0);
                for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
                        double wanted = 0, most = 0;

                        row_to_floats(types[t], file + i / COLUMNS * bytes, INNER, numbers);
                        for (uint32_t j = 0; j < INNER; j++) {
                                double part =
                                        (double)numbers[j] * matrix[j * COLUMNS + i % COLUMNS];

                                wanted += part;
                                most += fabs(part);
                        }
                        assert_true(fabs(buffer[i] - wanted) <= 1e-6 * most);
                }
        }
}

static void rows_of_any_type_are_divided_by_their_lengths(void **state)
{
        static const enum row_type types[] = { ROW_F32,  ROW_F16,  ROW_BF16,
                                               ROW_Q4_0, ROW_Q8_0, ROW_IQ4_NL };

        (void)state;
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
                check_unit_rows(types[i]);
}

static void drop_from_cache(void)
{
        for (unsigned s = 0; s < SHARDS; s++) {
                int fd = open(in_folder(files[s]), O_RDONLY);

                assert_int_equal(fsync(fd), 0);
                assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
                close(fd);
        }
}

static void chooses_the_load_way_by_whether_the_files_are_cached(void **state)
{
        const struct weights_conf conf = { .threads = 2 };
        struct rig rig;
        char byte;

        (void)state;
        rig_open(&rig);
        assert_int_equal(rig_read(&rig, &conf), 0);
        assert_int_equal(rig_read(&rig, &conf), 0);
        assert_int_equal(rig.way, LOAD_CACHED);
        rig_close(&rig);

        drop_from_cache();
        rig_open(&rig);
        if (sys_pread_cached(checkpoint_fd(rig.checkpoint, rig.loads[0].tensor), &byte, 1,
                             5 << 20) == 1) {
                rig_close(&rig);
                skip_because("the file system keeps all files in memory");
        }
        assert_int_equal(rig_read(&rig, &conf), 0);
        assert_int_equal(rig.way, has_uring ? LOAD_URING : LOAD_PLAIN);
        assert_right(&rig);
        rig_close(&rig);
}

static int forbid_uring(const char *call, void *arg)
{
        (void)arg;
        /* as if it were not in memory */
        if (!strcmp(call, "preadv2"))
                return -EAGAIN;
        return strcmp(call, "io_uring_setup") ? 0 : -EPERM;
}

static void falls_back_to_plain_reads_if_io_uring_is_forbidden(void **state)
{
        struct weights_conf conf = { .threads = 2 };
        struct rig rig;

        (void)state;
        if (!has_uring)
                skip_because("there is no io_uring here");
        sys_set_fault(forbid_uring, NULL);
        rig_open(&rig);
        assert_int_equal(rig_read(&rig, &conf), 0);
        assert_int_equal(rig.way, LOAD_PLAIN);
        assert_right(&rig);
        conf.way = LOAD_URING;
        assert_int_equal(rig_read(&rig, &conf), -EPERM);
        assert_non_null(strstr(why, "io_uring"));
        sys_set_fault(NULL, NULL);
        rig_close(&rig);
}

/* Between opening and reading: cut, grown, written to, all in the second shard. */
static void spoil(int how)
{
        struct timespec earlier[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000000000 } };
        int fd = open(in_folder(files[1]), O_WRONLY);

        if (how == 0)
                assert_int_equal(ftruncate(fd, 5000000), 0);
        else if (how == 1)
                assert_int_equal(pwrite(fd, "x", 1, 1000000), 1);
        else if (how == 2)
                assert_int_equal(lseek(fd, 0, SEEK_END) > 0 && write(fd, "x", 1) == 1, 1);
        else
                assert_int_equal(futimens(fd, earlier), 0);
        close(fd);
}

static void refuses_a_file_that_changed_during_the_load_by_name(void **state)
{
        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                for (int how = 0; how < 4; how++) {
                        const struct weights_conf conf = { ways[w], 2, NULL, NULL };
                        struct rig rig;

                        if (ways[w] == LOAD_URING && !has_uring)
                                continue;
                        rig_open(&rig);
                        spoil(how);
                        assert_int_equal(rig_read(&rig, &conf), -EIO);
                        assert_non_null(strstr(why, "two.safetensors: "));
                        assert_non_null(strstr(why, how ? "was changed" : "became shorter"));
                        rig_close(&rig);
                        write_shard(1);
                }
        }
}

/* They end the second shard, and nothing else is missing. */
static void a_failed_read_of_scales_names_the_scales(void **state)
{
        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                const struct weights_conf conf = { ways[w], 2, NULL, NULL };
                struct stat now;
                struct rig rig;

                if (ways[w] == LOAD_URING && !has_uring)
                        continue;
                rig_open(&rig);
                assert_int_equal(stat(in_folder(files[1]), &now), 0);
                assert_int_equal(truncate(in_folder(files[1]), now.st_size - 10), 0);
                assert_int_equal(rig_read(&rig, &conf), -EIO);
                assert_string_equal(why, "two.safetensors: tensor 'blk.0.attn_q.weight_scale_inv': "
                                         "the file became shorter while it was read");
                rig_close(&rig);
                write_shard(1);
        }
}

/* A backend that takes the first rows of a tensor, and no others. */
static int lose_rows(struct kernels *k, struct matrix *matrix, uint32_t part, uint32_t row,
                     uint32_t rows, const void *file_rows)
{
        return row ? -EIO : keep_rows(k, matrix, part, row, rows, file_rows);
}

static void a_failed_put_into_the_backend_names_the_tensor(void **state)
{
        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                const struct weights_conf conf = { ways[w], 2, NULL, NULL };
                struct rig rig;

                if (ways[w] == LOAD_URING && !has_uring)
                        continue;
                rig_open(&rig);
                rig.kernels.weights_put = lose_rows;
                assert_int_equal(rig_read(&rig, &conf), -EIO);
                if (!strstr(why, "the backend did not take its rows: Input/output error") ||
                    !strstr(why, ".safetensors: "))
                        fail_msg("%s", why);
                rig_close(&rig);
        }
}

struct nth {
        _Atomic int left;
        int error;
        bool failed;
};

static int fail_nth(const char *call, void *arg)
{
        struct nth *nth = arg;

        (void)call;
        if (atomic_fetch_sub(&nth->left, 1) != 0)
                return 0;
        nth->failed = true;
        return nth->error;
}

/* It either does without, or says why. */
static void any_failed_call_is_handled_and_leaves_no_thread(void **state)
{
        static const int errors[] = { -EIO, -ENOMEM };
        uint32_t before = threads_now();
        struct rig rig;

        (void)state;
        for (size_t w = 0; w < WAYS * 2; w++) {
                const struct weights_conf conf = { ways[w / 2], 2, NULL, NULL };
                struct nth nth = { .failed = true };

                if (ways[w / 2] == LOAD_URING && !has_uring)
                        continue;
                rig_open(&rig);
                for (int n = 0; nth.failed; n += n < 12 ? 1 : 7) {
                        int r;

                        for (uint32_t t = 0; t < TENSORS; t++)
                                memset((void *)rig.matrices[t].times, 0, made[t].rows);
                        nth = (struct nth){ .left = n, .error = errors[w % 2] };
                        sys_set_fault(fail_nth, &nth);
                        r = rig_read(&rig, &conf);
                        sys_set_fault(NULL, NULL);
                        if (r)
                                assert_true(nth.failed && strlen(why) > 8 &&
                                            (r == nth.error || r == -ENOMEM)); /* of a mapping */
                        else
                                assert_right(&rig);
                }
                rig_close(&rig);
        }
        assert_int_equal(threads_now(), before);
}

static int no_threads(const char *call, void *arg)
{
        (void)arg;
        return strcmp(call, "thread") ? 0 : -EAGAIN;
}

struct looks {
        uint64_t bytes;
        uint32_t count, most;
};

static bool look(void *arg, const struct weights_progress *progress)
{
        struct looks *looks = arg;

        assert_true(progress->bytes >= looks->bytes);
        looks->bytes = progress->bytes;
        return ++looks->count <= looks->most;
}

static void loads_in_the_calling_thread_if_no_thread_can_start(void **state)
{
        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                struct looks looks = { .most = UINT32_MAX };
                const struct weights_conf conf = { ways[w], 4, look, &looks };
                struct rig rig;

                if (ways[w] == LOAD_URING && !has_uring)
                        continue;
                rig_open(&rig);
                sys_set_fault(no_threads, NULL);
                assert_int_equal(rig_read(&rig, &conf), 0);
                sys_set_fault(NULL, NULL);
                assert_right(&rig);
                assert_true(looks.count > 1);
                rig_close(&rig);
        }
}

static int slow_reads(const char *call, void *arg)
{
        (void)arg;
        if (!strcmp(call, "pread") || !strcmp(call, "io_uring_read"))
                usleep(20000);
        return 0;
}

static void a_callback_can_cancel_the_load(void **state)
{
        uint32_t before = threads_now();

        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                struct looks looks = { .most = 1 };
                const struct weights_conf conf = { ways[w], 2, look, &looks };
                struct rig rig;

                if (ways[w] == LOAD_URING && !has_uring)
                        continue;
                rig_open(&rig);
                sys_set_fault(slow_reads, NULL);
                assert_int_equal(rig_read(&rig, &conf), -ECANCELED);
                sys_set_fault(NULL, NULL);
                assert_int_equal(threads_now(), before);
                rig_close(&rig);
        }
}

static int count_maps(const char *call, void *arg)
{
        atomic_fetch_add((_Atomic uint32_t *)arg, !strcmp(call, "mmap"));
        return 0;
}

static void allocates_its_buffers_once_and_frees_them(void **state)
{
        (void)state;
        for (size_t w = 0; w < WAYS; w++) {
                const struct weights_conf conf = { ways[w], 16, NULL, NULL };
                _Atomic uint32_t maps = 0;
                struct rig rig;

                if (ways[w] == LOAD_URING && !has_uring)
                        continue;
                rig_open(&rig);
                sys_set_fault(count_maps, &maps);
                assert_int_equal(rig_read(&rig, &conf), 0);
                sys_set_fault(NULL, NULL);
                assert_int_equal(maps, 1);
                rig_close(&rig);
        }
}

static int set_up(void **state)
{
        struct reader *reader;

        (void)state;
        if (!mkdtemp(folder))
                return -1;
        make_bytes();
        write_folder();
        has_uring = !reader_open_uring(1, &reader);
        if (has_uring)
                reader->close(reader);
        else
                printf("# io_uring is not to be had here\n");
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        for (unsigned s = 0; s < SHARDS; s++)
                unlink(in_folder(files[s]));
        unlink(in_folder("config.json"));
        unlink(in_folder("model.safetensors.index.json"));
        free_bytes();
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_load_way_loads_each_row_once_with_any_number_of_threads),
                cmocka_unit_test(rows_in_groups_are_picked_out_of_several_pieces),
                cmocka_unit_test(rows_of_any_type_are_divided_by_their_lengths),
                cmocka_unit_test(rows_are_multiplied_with_a_matrix),
                cmocka_unit_test(transposed_rows_are_read_from_the_columns_of_the_file),
                cmocka_unit_test(chooses_the_load_way_by_whether_the_files_are_cached),
                cmocka_unit_test(falls_back_to_plain_reads_if_io_uring_is_forbidden),
                cmocka_unit_test(refuses_a_file_that_changed_during_the_load_by_name),
                cmocka_unit_test(a_failed_read_of_scales_names_the_scales),
                cmocka_unit_test(a_failed_put_into_the_backend_names_the_tensor),
                cmocka_unit_test(any_failed_call_is_handled_and_leaves_no_thread),
                cmocka_unit_test(loads_in_the_calling_thread_if_no_thread_can_start),
                cmocka_unit_test(a_callback_can_cancel_the_load),
                cmocka_unit_test(allocates_its_buffers_once_and_frees_them),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
