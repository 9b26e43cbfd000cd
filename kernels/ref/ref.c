#include "kernels/ref/ref.h"

#include <errno.h>
#include <string.h>

#include "kernels/backends.h"
#include "kernels/convert.h"
#include "kernels/memory.h"

static int ref_floats_new(struct kernels *k, size_t count, float **ret_floats)
{
        float *floats = memory_new(count, sizeof(*floats));

        (void)k;
        if (!floats)
                return -ENOMEM;
        *ret_floats = floats;
        return 0;
}

static void ref_floats_free(struct kernels *k, float *floats)
{
        (void)k;
        memory_free(floats);
}

static int ref_put(struct kernels *k, float *to, const float *host, size_t count)
{
        (void)k;
        memcpy(to, host, count * sizeof(*to));
        return 0;
}

static void ref_get(struct kernels *k, float *host, const float *from, size_t count)
{
        (void)k;
        memcpy(host, from, count * sizeof(*host));
}

/* Replaces `*doubles` if it is too small. The old contents are lost: it is scratch memory. */
static int scratch_grow(double **doubles, size_t *max, size_t count)
{
        double *more;

        if (count <= *max)
                return 0;
        more = memory_new(count, sizeof(*more));
        if (!more)
                return -ENOMEM;
        memory_free(*doubles);
        *doubles = more;
        *max = count;
        return 0;
}

static void ref_matrix_free(struct kernels *k, struct matrix *matrix)
{
        (void)k;
        if (!matrix)
                return;
        memory_free(matrix->w);
        memory_free(matrix);
}

static int ref_matrix_new(struct kernels *k, const struct matrix_shape *shape,
                          struct matrix **ret_matrix)
{
        struct ref *ref = ref_of(k);
        struct matrix *matrix;
        uint64_t rows = 0;

        if (!shape->columns || !shape->parts || shape->parts > MATRIX_PARTS_MAX)
                return -EINVAL;
        for (uint32_t p = 0; p < shape->parts; p++) {
                if (!shape->rows[p] || !row_bytes(shape->type[p], shape->columns))
                        return -EINVAL;
                rows += shape->rows[p];
        }
        if (rows > UINT32_MAX)
                return -EINVAL;

        /* q and k without v: there is space for v, too */
        if (scratch_grow(&ref->in, &ref->columns_max, shape->columns) ||
            scratch_grow(&ref->sums, &ref->rows_max,
                         shape->parts == 2 ? rows + shape->rows[1] : rows))
                return -ENOMEM;
        matrix = memory_new(1, sizeof(*matrix));
        if (!matrix)
                return -ENOMEM;
        matrix->shape = *shape;
        matrix->rows = (uint32_t)rows;
        matrix->w = memory_new(rows, row_bytes(ROW_F32, shape->columns));
        if (!matrix->w) {
                ref_matrix_free(k, matrix);
                return -ENOMEM;
        }
        *ret_matrix = matrix;
        return 0;
}

static int ref_weights_put(struct kernels *k, struct matrix *matrix, uint32_t part, uint32_t row,
                           uint32_t rows, const void *file_rows)
{
        enum row_type type;
        size_t bytes;

        (void)k;
        assert(part < matrix->shape.parts && row <= matrix->shape.rows[part] &&
               rows <= matrix->shape.rows[part] - row);
        type = matrix->shape.type[part];
        bytes = row_bytes(type, matrix->shape.columns);
        for (uint32_t i = 0; i < rows; i++)
                row_to_floats(type, (const char *)file_rows + i * bytes, matrix->shape.columns,
                              matrix_row(matrix, part, row + i));
        return 0;
}

static int ref_kv_new(struct kernels *k, const struct kv_shape *shape, struct kv **ret_kv)
{
        (void)k;
        return kv_pool_new(shape, ret_kv);
}

static void ref_kv_free(struct kernels *k, struct kv *kv)
{
        (void)k;
        kv_pool_free(kv);
}

static uint64_t ref_kv_copy_ns(struct kernels *k, struct kv *kv)
{
        (void)k;
        return kv_copy_time(kv);
}

static int ref_step_begin(struct kernels *k, struct kv *const *pools, const struct step *step)
{
        steps_begin(&ref_of(k)->steps, step);
        kv_copy(pools, step->copies, step->copy_count);
        return 0;
}

static int ref_step_end(struct kernels *k)
{
        steps_end(&ref_of(k)->steps);
        return 0;
}

static void ref_logprobs(struct kernels *k, uint64_t number, uint32_t want,
                         struct logprob *ret_logprobs)
{
        steps_logprobs(&ref_of(k)->steps, number, want, ret_logprobs);
}

static const float *ref_row(struct kernels *k, uint64_t number, uint32_t want)
{
        return steps_row(&ref_of(k)->steps, number, want);
}

static int ref_collect(struct kernels *k, uint64_t number, uint32_t *ret_tokens)
{
        steps_collect(&ref_of(k)->steps, number, ret_tokens);
        return 0;
}

/* All memory is the host's and nothing runs asynchronously, so this backend cannot be lost. */
static const char *ref_lost(const struct kernels *k)
{
        (void)k;
        return NULL;
}

static void ref_close(struct kernels *k)
{
        struct ref *ref = ref_of(k);

        if (!ref)
                return;
        steps_deinit(&ref->steps);
        memory_free(ref->in);
        memory_free(ref->sums);
        memory_free(ref->scores);
        memory_free(ref->ids);
        memory_free(ref->chances);
        memory_free(ref->edited);
        memory_free(ref);
}

static const struct kernels ref_table = {
        .name = "ref",
        .layout = KV_LAYOUT_NATURAL,
        .kv_types = (1u << KV_TYPES) - 1,
        .close = ref_close,
        .floats_new = ref_floats_new,
        .floats_free = ref_floats_free,
        .put = ref_put,
        .get = ref_get,
        .matrix_new = ref_matrix_new,
        .matrix_free = ref_matrix_free,
        .weights_put = ref_weights_put,
        .kv_new = ref_kv_new,
        .kv_free = ref_kv_free,
        .kv_copy_ns = ref_kv_copy_ns,
        .step_begin = ref_step_begin,
        .embed = ref_embed,
        .qkv = ref_qkv,
        .attend = ref_attend,
        .project = ref_project,
        .renorm = ref_renorm,
        .gate = ref_gate,
        .head = ref_head,
        .pick = ref_pick,
        .step_end = ref_step_end,
        .collect = ref_collect,
        .logprobs = ref_logprobs,
        .row = ref_row,
        .lost = ref_lost,
};

int ref_open(const struct kernels_conf *conf, struct kernels **ret_kernels)
{
        struct ref *ref = memory_new(1, sizeof(*ref));

        if (!ref)
                return -ENOMEM;
        ref->table = ref_table;
        ref->vocab_max = conf->vocab_max;
        ref->scores = memory_new((size_t)conf->pages_max * PAGE_POSITIONS, sizeof(*ref->scores));
        ref->ids = memory_new(conf->vocab_max, sizeof(*ref->ids));
        ref->chances = memory_new(conf->vocab_max, sizeof(*ref->chances));
        ref->edited = memory_new(conf->vocab_max, sizeof(*ref->edited));
        if (!ref->scores || !ref->ids || !ref->chances || !ref->edited ||
            steps_init(&ref->steps, conf)) {
                ref_close(&ref->table);
                return -ENOMEM;
        }
        *ret_kernels = &ref->table;
        return 0;
}
