#include "bench/table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX   256u
#define ROUNDS_MAX 64u

struct row {
        const char *group, *name, *target;
        double middle[ROUNDS_MAX], high[ROUNDS_MAX]; /* us, unless it is said otherwise */
        uint32_t rounds;
        enum row_kind { SAMPLES, SINGLE, SHARE } kind;
};

static const struct {
        const char *middle, *high, *target;
} headings[] = {
        [SAMPLES] = { "p50 (least-most of rounds)", "p99", "target" },
        [SINGLE] = { "(least-most of rounds)", "", "target" },
        [SHARE] = { "(least-most of rounds)", "% (least-most of rounds)", "ceiling" },
};

static struct row rows[ROWS_MAX];
static uint32_t row_count;

static struct row *find(const char *group, const char *name, const char *target)
{
        struct row *row = rows;

        while (row < rows + row_count && (strcmp(row->group, group) || strcmp(row->name, name)))
                row++;
        if (row == rows + row_count) {
                assert(row_count < ROWS_MAX);
                *row = (struct row){ .group = group, .name = name, .target = target };
                row_count++;
        }
        assert(row->rounds < ROUNDS_MAX);
        return row;
}

static int by_size(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

void table_add(const char *group, const char *name, const char *target, uint32_t *samples,
               size_t count)
{
        struct row *row = find(group, name, target);

        samples += count / 20;
        count -= count / 20;
        if (!count)
                return;
        qsort(samples, count, sizeof(*samples), by_size);
        row->middle[row->rounds] = samples[count / 2] / 1e3;
        row->high[row->rounds++] = samples[count * 99 / 100] / 1e3;
}

void table_add_one(const char *group, const char *name, const char *target, double value)
{
        struct row *row = find(group, name, target);

        row->kind = SINGLE;
        row->middle[row->rounds++] = value;
}

void table_add_share(const char *group, const char *name, const char *ceiling, double value,
                     double percent)
{
        struct row *row = find(group, name, ceiling);

        row->kind = SHARE;
        row->middle[row->rounds] = value;
        row->high[row->rounds++] = percent;
}

static void print_values(double *values, uint32_t count)
{
        char span[32];

        qsort(values, count, sizeof(*values), by_value);
        snprintf(span, sizeof(span), "(%.2f-%.2f)", values[0], values[count - 1]);
        printf(" | %8.2f %-19s", values[count / 2], span);
}

static void print_row(struct row *row)
{
        printf("%-40s", row->name);
        print_values(row->middle, row->rounds);
        if (row->kind == SINGLE)
                printf(" | %-28s", "");
        else
                print_values(row->high, row->rounds);
        printf(" | %s\n", row->target);
        row->rounds = 0; /* it was printed */
}

void table_print(void)
{
        for (struct row *first = rows; first < rows + row_count; first++) {
                if (!first->rounds)
                        continue;
                printf("\n%s\n%-40s | %-28s | %-28s | %s\n", first->group, "",
                       headings[first->kind].middle, headings[first->kind].high,
                       headings[first->kind].target);
                for (struct row *row = first; row < rows + row_count; row++)
                        if (row->rounds && !strcmp(row->group, first->group))
                                print_row(row);
        }
}
