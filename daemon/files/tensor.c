#include "daemon/files/tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int tensor_table_init(struct tensor_table *table, uint32_t count)
{
        *table = (struct tensor_table){
                .tensors = calloc((size_t)count + 1, sizeof(*table->tensors)),
                .sorted = calloc((size_t)count + 1, sizeof(*table->sorted)),
                .count = count,
        };
        if (!table->tensors || !table->sorted) {
                tensor_table_deinit(table);
                return error_raise(-ENOMEM);
        }
        return 0;
}

void tensor_table_deinit(struct tensor_table *table)
{
        free(table->sorted);
        free(table->tensors);
        *table = (struct tensor_table){ 0 };
}

static int compare_places(const void *a, const void *b)
{
        const struct tensor *s = *(struct tensor *const *)a, *t = *(struct tensor *const *)b;

        if (s->file != t->file)
                return s->file < t->file ? -1 : 1;
        if (s->offset != t->offset)
                return s->offset < t->offset ? -1 : 1;
        return (s->bytes > t->bytes) - (s->bytes < t->bytes);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp((*(struct tensor *const *)a)->name, (*(struct tensor *const *)b)->name);
}

static void sort(struct tensor_table *table, int (*compare)(const void *, const void *))
{
        for (uint32_t i = 0; i < table->count; i++)
                table->sorted[i] = &table->tensors[i];
        qsort(table->sorted, table->count, sizeof(*table->sorted), compare);
}

void tensor_table_by_place(struct tensor_table *table)
{
        sort(table, compare_places);
}

const struct tensor *tensor_table_by_name(struct tensor_table *table)
{
        sort(table, compare_names);
        for (uint32_t i = 1; i < table->count; i++)
                if (!strcmp(table->sorted[i - 1]->name, table->sorted[i]->name))
                        return table->sorted[i];
        return NULL;
}

static int compare_with(const void *name, const void *tensor)
{
        return strcmp(name, (*(struct tensor *const *)tensor)->name);
}

const struct tensor *tensor_table_find(const struct tensor_table *table, const char *name)
{
        struct tensor **found =
                bsearch(name, table->sorted, table->count, sizeof(*found), compare_with);

        return found ? *found : NULL;
}

uint64_t tensor_table_taken_bytes(const struct tensor_table *table)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < table->count; i++)
                bytes += tensor_taken_bytes(&table->tensors[i]);
        return bytes;
}

uint64_t tensor_table_kept_bytes(const struct tensor_table *table)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < table->count; i++)
                bytes += tensor_kept_bytes(&table->tensors[i]);
        return bytes;
}

enum row_type tensor_table_main_type(const struct tensor_table *table)
{
        uint64_t numbers[ROW_TYPE_N] = { 0 };
        unsigned most = 0;

        for (uint32_t i = 0; i < table->count; i++) {
                const struct tensor *tensor = &table->tensors[i];

                if (!tensor->unserved)
                        numbers[tensor->type] += (uint64_t)tensor->rows * tensor->columns;
        }
        for (unsigned type = 1; type < ROW_TYPE_N; type++)
                if (numbers[type] > numbers[most])
                        most = type;
        return (enum row_type)most;
}
