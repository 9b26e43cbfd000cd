#include "daemon/engine/stage-matrices.h"

#include <assert.h>

#include "base/error.h"
#include "base/errtext.h"

int stage_matrix_make(struct stage *s, const struct tensor *const *parts, uint32_t part_count,
                      struct load_list *list, struct matrix **ret_matrix, char *why,
                      size_t why_bytes)
{
        const struct matrix_shape shape = matrix_shape(parts, part_count);
        struct kernels *k = s->kernels;
        struct matrix *matrix;
        int r;

        r = k->matrix_new(k, &shape, &matrix);
        if (r)
                return error_raise(errtext_set(why, why_bytes, r,
                                               "no memory for the matrix of tensor '%s'",
                                               shown(parts[0]->name).text));
        assert(part_count <= list->max - list->count);
        for (uint32_t i = 0; i < part_count; i++)
                list->loads[list->count++] = (struct weights_load){ parts[i], k, matrix, i };
        *ret_matrix = matrix;
        return 0;
}

int stage_matrix_open(struct building *b, const struct tensor *const *parts, uint32_t part_count,
                      struct matrix **ret_matrix)
{
        return stage_matrix_make(b->stage, parts, part_count, b->conf->list, ret_matrix,
                                 b->conf->why, b->conf->why_bytes);
}
