/*
 * How fast one thread packs rows of a file into a backend's layout: bench-pack [-r ROUNDS]
 *
 * Figures are gigabytes of the file per second of the thread's own CPU time, so other load on
 * the machine does not count.  The cpu's panels and a GPU's rows, which are packed on the host,
 * are measured in turns.  Rows have 4096 numbers, and 64 are packed at a time: from the cache
 * and into it, so that only the work of packing is measured.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern "C" {
#include "bench/table.h"
}
#include "kernels/cuda/linear.h"
#include "kernels/kernels.h"

#define COLUMNS 4096u
#define ROWS    64u /* two panels */
#define TIMES   16u

static uint8_t file_rows[ROWS * COLUMNS * sizeof(float)];
alignas(64) static uint8_t laid[ROWS * COLUMNS * sizeof(float)];
static uint16_t scales[COLUMNS];
static kernels *cpu;
static matrix *matrices[ROW_TYPE_N];

static void must(bool holds, const char *what)
{
        if (holds)
                return;
        fprintf(stderr, "bench-pack: %s\n", what);
        exit(1);
}

static void make_matrices(void)
{
        kernels_conf conf = {};

        conf.threads = 1;
        conf.rows_max = conf.slots_max = conf.pages_max = conf.wants_max = conf.vocab_max = 1;
        must(!kernels_open("cpu", &conf, &cpu), "no cpu backend");
        for (uint32_t type = 0; type < ROW_TYPE_N; type++) {
                matrix_shape shape = { COLUMNS, 1, { ROWS }, { (row_type)type } };

                must(!cpu->matrix_new(cpu, &shape, &matrices[type]), "no memory");
        }
}

static double thread_seconds(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void to_panels(row_type type)
{
        must(!cpu->weights_put(cpu, matrices[type], 0, 0, ROWS, file_rows), "no weights");
}

static void to_gpu_rows(row_type type)
{
        linear_format format = linear_format_of(type);
        size_t bytes = linear_row_bytes(format, COLUMNS);

        for (uint32_t row = 0; row < ROWS; row++)
                linear_pack_row(format, type, file_rows + row * row_bytes(type, COLUMNS), COLUMNS,
                                laid + row * bytes, scales);
}

static void measure(const char *group, row_type type, void (*lay)(row_type type))
{
        double began, seconds;

        lay(type);
        began = thread_seconds();
        for (uint32_t i = 0; i < TIMES; i++)
                lay(type);
        seconds = thread_seconds() - began;
        table_add_one(group, row_type_name(type), "",
                      (double)(TIMES * ROWS * row_bytes(type, COLUMNS)) / seconds / 1e9);
}

int main(int argc, char **argv)
{
        unsigned long rounds = 9;
        uint32_t random = 1;
        int option;

        while ((option = getopt(argc, argv, "r:")) >= 0) {
                if (option == 'r')
                        rounds = strtoul(optarg, NULL, 10);
                if (option != 'r' || !rounds) {
                        fprintf(stderr, "usage: bench-pack [-r ROUNDS]\n");
                        return 2;
                }
        }
        for (uint8_t &byte : file_rows) {
                random = random * 1664525 + 1013904223;
                byte = (uint8_t)(random >> 24);
        }
        make_matrices();
        for (unsigned long round = 0; round < rounds; round++)
                for (uint32_t type = 0; type < ROW_TYPE_N; type++) {
                        measure("panels of the cpu, GB/s", (row_type)type, to_panels);
                        measure("rows of a GPU, GB/s", (row_type)type, to_gpu_rows);
                }
        table_print();
        for (matrix *matrix : matrices)
                cpu->matrix_free(cpu, matrix);
        cpu->close(cpu);
        return 0;
}
