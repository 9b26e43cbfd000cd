/*
 * cuBLASLt, where it is installed.  This is the only file that uses it.
 *
 * The loader finds a library that is installed system-wide.  Otherwise the library is in CUDA's
 * own folder, or came with PyTorch as a Python package.  Then its path is the first of `places`
 * that opens.
 *
 * cuBLASLt stores matrices by columns, so our matrices appear transposed to it: rows of w times
 * columns of x make columns of y.  It allocates its own memory only while it chooses an algorithm,
 * and the workspace is ours, so a product can be captured in a graph.  Once loaded, the library
 * stays loaded: the driver knows its kernels until the process ends.
 */
#include "kernels/cuda/blas.h"

#include <assert.h>
#include <cublasLt.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device-cuda.h"

#define WORKSPACE_BYTES ((size_t)32 << 20)
#define ALIGNED         16u

/* The functions of the library that we call. */
struct functions {
        decltype(cublasLtGetVersion) *version;
        decltype(cublasLtCreate) *create;
        decltype(cublasLtDestroy) *destroy;
        decltype(cublasLtGetStatusString) *words;
        decltype(cublasLtMatmul) *multiply;
        decltype(cublasLtMatmulAlgoGetHeuristic) *choose;
        decltype(cublasLtMatmulDescCreate) *product_new;
        decltype(cublasLtMatmulDescDestroy) *product_delete;
        decltype(cublasLtMatmulDescSetAttribute) *product_set;
        decltype(cublasLtMatrixLayoutCreate) *layout_new;
        decltype(cublasLtMatrixLayoutDestroy) *layout_delete;
        decltype(cublasLtMatmulPreferenceCreate) *preference_new;
        decltype(cublasLtMatmulPreferenceDestroy) *preference_delete;
        decltype(cublasLtMatmulPreferenceSetAttribute) *preference_set;
};

struct chosen {
        blas_shape shape;
        bool serves;
        cublasLtMatmulDesc_t product;
        cublasLtMatrixLayout_t w, x, y;
        cublasLtMatmulAlgo_t way;
};

struct blas {
        struct device *device;
        void *library;
        functions call;
        cublasLtHandle_t handle;
        void *workspace;
        chosen *chosen;
        size_t count;
        char about[512];
};

static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12" };

/* Patterns of folders, each appended to the variable's value, if a variable is given and set. */
static const struct {
        const char *variable, *pattern;
} places[] = {
        { "CUDA_HOME", "/lib64" },
        { "CUDA_HOME", "/targets/x86_64-linux/lib" },
        { nullptr, "/usr/local/cuda*/lib64" },
        { nullptr, "/usr/local/cuda*/targets/x86_64-linux/lib" },
        { nullptr, "/opt/cuda*/lib64" },
        { "VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/*/lib" },
        { "CONDA_PREFIX", "/lib" },
        { "HOME", "/.local/lib/python3*/site-packages/nvidia/*/lib" },
        { nullptr, "/usr/local/lib/python3*/*-packages/nvidia/*/lib" },
        { nullptr, "/usr/lib/python3*/*-packages/nvidia/*/lib" },
        { nullptr, "/opt/*/lib/python3*/site-packages/nvidia/*/lib" },
        { nullptr, "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib" },
};

static thread_local char errtext[512];

/* ---- opening ---- */

static bool find_functions(void *library, functions *ret)
{
        const struct {
                void **to;
                const char *name;
        } all[] = {
                { (void **)&ret->version, "cublasLtGetVersion" },
                { (void **)&ret->create, "cublasLtCreate" },
                { (void **)&ret->destroy, "cublasLtDestroy" },
                { (void **)&ret->words, "cublasLtGetStatusString" },
                { (void **)&ret->multiply, "cublasLtMatmul" },
                { (void **)&ret->choose, "cublasLtMatmulAlgoGetHeuristic" },
                { (void **)&ret->product_new, "cublasLtMatmulDescCreate" },
                { (void **)&ret->product_delete, "cublasLtMatmulDescDestroy" },
                { (void **)&ret->product_set, "cublasLtMatmulDescSetAttribute" },
                { (void **)&ret->layout_new, "cublasLtMatrixLayoutCreate" },
                { (void **)&ret->layout_delete, "cublasLtMatrixLayoutDestroy" },
                { (void **)&ret->preference_new, "cublasLtMatmulPreferenceCreate" },
                { (void **)&ret->preference_delete, "cublasLtMatmulPreferenceDestroy" },
                { (void **)&ret->preference_set, "cublasLtMatmulPreferenceSetAttribute" },
        };

        for (const auto &one : all)
                if (!(*one.to = dlsym(library, one.name)))
                        return false;
        return true;
}

static int judge(blas *blas, cublasStatus_t status, const char *doing)
{
        if (status == CUBLAS_STATUS_SUCCESS)
                return 0;
        return device_cuda_lose(blas->device, doing, blas->call.words(status));
}

static int start(blas *blas)
{
        void *stream; /* this call also selects the device */
        int r = device_cuda_stream(blas->device, STREAM_STEPS, &stream);

        if (!r)
                r = judge(blas, blas->call.create(&blas->handle), "start cuBLASLt");
        return r ? r : device_new(blas->device, WORKSPACE_BYTES, &blas->workspace);
}

const char *blas_errtext(void)
{
        return errtext;
}

const char *blas_about(const blas *blas)
{
        return blas->about;
}

static void *open_file(const char *path)
{
        return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Tries the folders that match a pattern, from the last name to the first: the newest first. */
static void *open_in(const char *pattern, const char *name)
{
        void *library = nullptr;
        char path[1024];
        glob_t found;

        if (glob(pattern, 0, nullptr, &found))
                return nullptr;
        for (size_t i = found.gl_pathc; i-- && !library;) {
                snprintf(path, sizeof(path), "%s/%s", found.gl_pathv[i], name);
                library = open_file(path);
        }
        globfree(&found);
        return library;
}

static void *open_somewhere(void)
{
        char pattern[1024];
        void *library = nullptr;

        for (const char *name : names)
                if (!library)
                        library = open_file(name);
        for (const auto &place : places) {
                const char *base = place.variable ? getenv(place.variable) : "";

                if (!base || (place.variable && !*base))
                        continue;
                snprintf(pattern, sizeof(pattern), "%s%s", base, place.pattern);
                for (const char *name : names)
                        if (!library)
                                library = open_in(pattern, name);
        }
        if (!library)
                snprintf(errtext, sizeof(errtext),
                         "cuBLASLt was not found: neither %s nor %s is in the loader's path, in "
                         "CUDA's folders or in PyTorch's",
                         names[0], names[1]);
        return library;
}

static void *open_library(void)
{
        const char *file = getenv("SMV_CUBLASLT");
        void *library = file && *file ? open_file(file) : open_somewhere();

        if (!library && file && *file)
                snprintf(errtext, sizeof(errtext), "cannot open SMV_CUBLASLT=%s: %s", file,
                         dlerror());
        return library;
}

static void write_about(blas *blas)
{
        Dl_info info = {};
        size_t version = blas->call.version();

        (void)dladdr((void *)blas->call.create, &info);
        snprintf(blas->about, sizeof(blas->about), "cuBLASLt %zu.%zu.%zu (%s)", version / 10000,
                 version / 100 % 100, version % 100, info.dli_fname ? info.dli_fname : "?");
}

int blas_open(device *device, blas **ret_blas)
{
        blas *blas = (struct blas *)calloc(1, sizeof(*blas));
        int r = -ENOENT;

        if (!blas)
                return -ENOMEM;
        blas->device = device;
        blas->library = open_library();
        if (blas->library && !find_functions(blas->library, &blas->call))
                snprintf(errtext, sizeof(errtext),
                         "cuBLASLt lacks a function that samovar needs: %s", dlerror());
        else if (blas->library)
                r = start(blas);
        if (r) {
                blas_close(blas);
                return r;
        }
        write_about(blas);
        *ret_blas = blas;
        return 0;
}

static void forget(const functions *call, const chosen *one)
{
        if (one->product)
                (void)call->product_delete(one->product);
        for (cublasLtMatrixLayout_t layout : { one->w, one->x, one->y })
                if (layout)
                        (void)call->layout_delete(layout);
}

void blas_close(blas *blas)
{
        if (!blas)
                return;
        device_delete(blas->device, blas->workspace); /* waits until no kernel uses it */
        for (size_t i = 0; i < blas->count; i++)
                forget(&blas->call, &blas->chosen[i]);
        if (blas->handle)
                (void)blas->call.destroy(blas->handle);
        if (blas->library)
                (void)dlclose(blas->library);
        free(blas->chosen);
        free(blas);
}

/* ---- choosing ---- */

/* Describes the product to the library. */
static cublasStatus_t describe(const functions *call, chosen *one)
{
        const blas_shape *s = &one->shape;
        cublasOperation_t turned = CUBLAS_OP_T;
        cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;
        cublasStatus_t status;

        if ((status = call->product_new(&one->product, CUBLAS_COMPUTE_32F, CUDA_R_32F)) ||
            (status = call->product_set(one->product, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                        sizeof(turned))) ||
            (s->biased && (status = call->product_set(one->product, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                      &bias, sizeof(bias)))) ||
            (status = call->layout_new(&one->w, CUDA_R_16BF, s->k, s->n, s->w_columns)) ||
            (status = call->layout_new(&one->x, CUDA_R_16BF, s->k, s->rows, s->x_columns)))
                return status;
        return call->layout_new(&one->y, CUDA_R_32F, s->n, s->rows, s->y_columns);
}

static cublasStatus_t prefer(const functions *call, cublasLtMatmulPreference_t preference)
{
        static const cublasLtMatmulPreferenceAttributes_t sides[] = {
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        };
        const size_t workspace = WORKSPACE_BYTES;
        const uint32_t aligned = ALIGNED;
        cublasStatus_t status =
                call->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                     &workspace, sizeof(workspace));

        for (cublasLtMatmulPreferenceAttributes_t side : sides)
                if (!status)
                        status = call->preference_set(preference, side, &aligned, sizeof(aligned));
        return status;
}

/* The first suggestion is the one that the library expects to be quickest. */
static cublasStatus_t choose(const blas *blas, chosen *one)
{
        const functions *call = &blas->call;
        cublasLtMatmulHeuristicResult_t best = {};
        cublasLtMatmulPreference_t preference = nullptr;
        cublasStatus_t status = call->preference_new(&preference);
        int found = 0;

        if (!status)
                status = prefer(call, preference);
        if (!status)
                status = call->choose(blas->handle, one->product, one->w, one->x, one->y, one->y,
                                      preference, 1, &best, &found);
        if (preference)
                (void)call->preference_delete(preference);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
                /* With these it reports that it cannot multiply this shape. */
                return CUBLAS_STATUS_SUCCESS;
        one->serves = !status && found && best.state == CUBLAS_STATUS_SUCCESS;
        one->way = best.algo;
        return status;
}

static const chosen *find_chosen(const blas *blas, const blas_shape *shape)
{
        for (size_t i = 0; i < blas->count; i++)
                if (!memcmp(&blas->chosen[i].shape, shape, sizeof(*shape)))
                        return &blas->chosen[i];
        return nullptr;
}

int blas_serves(blas *blas, const blas_shape *shape)
{
        const chosen *before = find_chosen(blas, shape);
        chosen *more, *one;
        void *stream;
        int r;

        if (before)
                return before->serves;
        assert(!device_is_capturing(blas->device, STREAM_STEPS));
        r = device_cuda_stream(blas->device, STREAM_STEPS, &stream);
        if (r)
                return r;
        more = (chosen *)realloc(blas->chosen, (blas->count + 1) * sizeof(*more));
        if (!more)
                return -ENOMEM;
        blas->chosen = more;
        one = &more[blas->count++];
        *one = {};
        one->shape = *shape;
        r = judge(blas, describe(&blas->call, one), "describe a product to cuBLASLt");
        if (!r)
                r = judge(blas, choose(blas, one), "choose an algorithm of cuBLASLt");
        return r ? r : one->serves;
}

/* ---- multiplying ---- */

int blas_multiply(blas *blas, const blas_shape *shape, float scale, float *y, const uint16_t *x,
                  const uint16_t *w, const float *bias)
{
        const chosen *one = find_chosen(blas, shape);
        const float was = shape->add;
        void *stream;
        int r = device_cuda_stream(blas->device, STREAM_STEPS, &stream);

        assert(one && one->serves && !shape->biased == !bias);
        if (!r && bias)
                r = judge(blas,
                          blas->call.product_set(one->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                 &bias, sizeof(bias)),
                          "set the bias of a cuBLASLt product");
        if (r)
                return r;
        return judge(blas,
                     blas->call.multiply(blas->handle, one->product, &scale, w, one->w, x, one->x,
                                         &was, y, one->y, y, one->y, &one->way, blas->workspace,
                                         WORKSPACE_BYTES, (cudaStream_t)stream),
                     "multiply with cuBLASLt");
}
