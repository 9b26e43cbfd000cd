#include "kernels/cuda/cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/features.h"
#include "kernels/library.h"

int cuda_check(struct cuda *cuda, int r)
{
        if (!r)
                return 0;
        pthread_mutex_lock(&cuda->lost_lock);
        if (!cuda->lost) {
                cuda->lost = r;
                snprintf(cuda->lost_errtext, sizeof(cuda->lost_errtext), "the GPU failed: %s",
                         *device_errtext() ? device_errtext() : strerror(-r));
        }
        pthread_mutex_unlock(&cuda->lost_lock);
        return r;
}

int cuda_check_object(struct cuda *cuda, int r)
{
        return r == -EIO ? cuda_check(cuda, r) : r;
}

static const char *cuda_lost(const struct kernels *k)
{
        const struct cuda *cuda = (const struct cuda *)k;

        return cuda->lost ? cuda->lost_errtext : NULL;
}

int cuda_grow(struct cuda *cuda, void **memory, size_t *have, size_t want, size_t bytes)
{
        void *more;
        int r;

        if (want <= *have)
                return 0;
        r = device_new(cuda->device, want * bytes, &more);
        if (r)
                return r;
        device_delete(cuda->device, *memory);
        *memory = more;
        *have = want;
        return 0;
}

static void cuda_close(struct kernels *k)
{
        struct cuda *cuda = cuda_of(k);

        if (!cuda)
                return;
        while (cuda->buffers)
                cuda_floats_free(k, (float *)cuda->buffers->at);
        cuda_graphs_deinit(cuda);
        cuda_operators_deinit(cuda);
        cuda_steps_deinit(cuda);
        staging_free(cuda->staging);
        pthread_mutex_destroy(&cuda->lost_lock);
        device_close(cuda->device);
        free(cuda);
}

static const struct kernels cuda_table = {
        "cuda",           KV_LAYOUT_NATURAL, KV_SERVED,     cuda_close,      cuda_floats_new,
        cuda_floats_free, cuda_put,          cuda_get,      cuda_matrix_new, cuda_matrix_free,
        cuda_weights_put, cuda_kv_new,       cuda_kv_free,  nullptr,         cuda_kv_copy_ns,
        cuda_step_begin,  cuda_embed,        cuda_qkv,      cuda_attend,     cuda_project,
        cuda_gate,        cuda_renorm,       cuda_head,     cuda_pick,       cuda_step_end,
        cuda_warm_up,     cuda_collect,      cuda_logprobs, cuda_row,        cuda_lost,
        cuda_memory,
};

static int open_all(struct cuda *cuda)
{
        int r;

        if ((r = device_open(cuda->conf.device, &cuda->device)) ||
            (r = staging_new(cuda->device, STAGING_PIECES, STAGING_BYTES, &cuda->staging)) ||
            (r = cuda_steps_init(cuda)))
                return r;
        return cuda_operators_init(cuda);
}

static void describe_backend(struct cuda *cuda)
{
        snprintf(cuda->about, sizeof(cuda->about), "%s%s%s", device_name(cuda->device),
                 cuda->library ? ", " : "", cuda->library ? blas_about(cuda->library) : "");
        cuda->table.about = cuda->about;
        if (*cuda->missing)
                cuda->table.missing = cuda->missing;
}

extern "C" __attribute__((visibility("default"))) int
samovar_backend_open(uint32_t version, const kernels_conf *conf, struct kernels **ret_kernels,
                     char *errtext, size_t errtext_bytes)
{
        struct cuda *cuda;
        int r;

        if (version != LIBRARY_VERSION) {
                snprintf(errtext, errtext_bytes,
                         "the backend library has interface version %u, and the daemon needs %u: "
                         "install both from one build of samovar",
                         LIBRARY_VERSION, version);
                return -ELIBBAD;
        }
        if (!features_are_known(errtext, errtext_bytes))
                return -EINVAL;
        cuda = (struct cuda *)calloc(1, sizeof(*cuda));
        if (!cuda)
                return -ENOMEM;
        cuda->table = cuda_table;
        if (feature_is_disabled(FEATURE_GRAPH))
                cuda->table.warm_up = nullptr;
        cuda->conf = *conf;
        pthread_mutex_init(&cuda->lost_lock, nullptr);
        r = open_all(cuda);
        if (r) {
                snprintf(errtext, errtext_bytes, "%s", device_errtext());
                cuda_close(&cuda->table);
                return r;
        }
        describe_backend(cuda);
        *ret_kernels = &cuda->table;
        return 0;
}
