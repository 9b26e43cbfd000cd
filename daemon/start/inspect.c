#include "daemon/start/inspect.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/base/error.h"
#include "daemon/base/errtext.h"
#include "daemon/engine/tensors.h"
#include "daemon/files/scales.h"
#include "daemon/text/chat.h"
#include "kernels/cpu/cgroup-limits.h"

static void print_bytes(FILE *to, uint64_t bytes)
{
        static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
        double count = (double)bytes / 1024;
        unsigned unit = 0;

        for (; count >= 1000 && unit < 3; unit++)
                count /= 1024;
        fprintf(to, "%.1f %s", count, units[unit]);
}

/* ---- the files ---- */

static const char *architecture_of(const struct model_setup *setup)
{
        const struct gguf *gguf = checkpoint_gguf(setup->checkpoint);
        const struct json_document *config = checkpoint_config(setup->checkpoint);
        const char *name = NULL;
        size_t bytes;

        if (gguf)
                name = gguf_string(gguf, "general.architecture");
        else if (config)
                name = json_string(config,
                                   json_first(config, json_member(config, 0, "architectures")),
                                   &bytes);
        return name ? name : "an architecture without a name";
}

/* Each type with its bytes, including scales; then tensors that no backend takes. */
static void print_types(const struct tensor_table *table, FILE *to)
{
        uint64_t bytes[ROW_TYPE_N] = { 0 };
        const struct tensor *unserved = NULL;
        uint32_t others = 0;
        const char *between = ": ";

        for (uint32_t i = 0; i < table->count; i++) {
                const struct tensor *tensor = &table->tensors[i];

                if (!tensor->unserved) {
                        bytes[tensor->type] += tensor->bytes;
                        if (tensor->scales)
                                bytes[tensor->type] += tensor->scales->tensor.bytes;
                        continue;
                }
                unserved = unserved ? unserved : tensor;
                others++;
        }
        for (unsigned type = 0; type < ROW_TYPE_N; type++) {
                if (!bytes[type])
                        continue;
                fprintf(to, "%s%s ", between, row_type_name((enum row_type)type));
                print_bytes(to, bytes[type]);
                between = ", ";
        }
        if (others)
                fprintf(to, "%s%" PRIu32 " that are not taken (%s: %s)", between, others,
                        shown(unserved->name).text, unserved->unserved);
}

static void print_files(const struct model_setup *setup, FILE *to)
{
        const struct tensor_table *table = checkpoint_tensors(setup->checkpoint);

        fprintf(to, "file        %s, %s, %" PRIu32 " tensors",
                checkpoint_gguf(setup->checkpoint) ? "GGUF" : "safetensors",
                shown(architecture_of(setup)).text, table->count);
        print_types(table, to);
        fprintf(to, "\n");
}

/* ---- the model ---- */

static void print_model(const struct traits *t, FILE *to)
{
        fprintf(to,
                "model       %" PRIu32 " layers, width %" PRIu32 ", %" PRIu32 " heads of %" PRIu32
                " (%" PRIu32 " of K and V), ffn %" PRIu32 ", vocabulary %" PRIu32
                ", context %" PRIu32 "%s\n",
                t->layers, t->width, t->heads, t->head_dim, t->kv_heads, t->ffn, t->vocab,
                t->context, t->tied ? ", head tied" : "");
}

static void print_tokenizer(const struct model_setup *setup, FILE *to)
{
        static const char *const kinds[] = {
                [VOCABULARY_BYTES] = "bytes",
                [VOCABULARY_BYTE_LEVEL] = "byte-level BPE",
                [VOCABULARY_CHARACTERS] = "SentencePiece BPE",
        };
        static const char *const splitters[SPLITTER_N] = {
                [SPLITTER_NONE] = "",
                [SPLITTER_GPT2] = ", split as GPT-2 does",
                [SPLITTER_LLAMA3] = ", split as Llama-3 does",
                [SPLITTER_QWEN2] = ", split as Qwen2 does",
        };

        fprintf(to, "tokenizer   %s%s", kinds[setup->kind], splitters[setup->splitter]);
        if (setup->kind != VOCABULARY_BYTES)
                fprintf(to, ", %" PRIu32 " entries", setup->entries);
        fprintf(to, "\n");
}

static void print_chat(const struct model_setup *setup, FILE *to)
{
        const char *missing = chat_refusal(setup->served.chat);

        if (!missing)
                fprintf(to, "chat        by its template\n");
        else
                fprintf(to, "chat        no: %s\n", missing);
}

/* Every needed tensor exists with the right shape and a served type, and no others exist. */
static int check_tensors(struct model_setup *setup)
{
        struct tensors tensors;
        char what[256];
        int r = tensors_find(setup->checkpoint, &setup->served.traits, &tensors, what,
                             sizeof(what));

        if (r)
                return model_setup_fail(setup, setup->path, what, r);
        tensors_deinit(&tensors);
        return 0;
}

/* ---- the memory ---- */

static void print_memory(const struct model_setup *setup, FILE *to)
{
        const struct model_bytes *bytes = &setup->bytes;
        uint64_t rings = setup->config->ring_bytes * setup->config->connections;
        uint64_t needed = bytes->weights + bytes->activations + bytes->kv;
        uint64_t memory = cgroup_limits_memory();
        uint64_t sequence = blocks_for(setup->served.context) * bytes->block;
        uint64_t fixed = bytes->weights + bytes->activations;

        fprintf(to, "memory      ");
        print_bytes(to, needed);
        fprintf(to, ": weights ");
        print_bytes(to, bytes->weights);
        fprintf(to, ", activations ");
        print_bytes(to, bytes->activations);
        fprintf(to, ", KV ");
        print_bytes(to, bytes->kv);
        fprintf(to, "; and rings, at most ");
        print_bytes(to, rings);
        fprintf(to, "\nsequences   %.1f of %" PRIu32 " positions in that KV; the ",
                (double)setup->sched.blocks * (double)bytes->block / (double)sequence,
                setup->served.context);
        print_bytes(to, memory);
        if (fixed > memory)
                fprintf(to, " we may have cannot hold the weights\n");
        else
                fprintf(to, " we may have could hold %.0f (--kv-bytes)\n",
                        (double)((memory - fixed) / sequence));
}

static int look(struct model_setup *setup, FILE *to)
{
        int r = model_setup_checkpoint(setup);

        if (r)
                return r;
        print_files(setup, to);
        r = model_setup_traits(setup);
        if (r)
                return r;
        print_model(&setup->served.traits, to);
        r = check_tensors(setup);
        if (!r)
                r = model_setup_tokenizer(setup);
        if (r)
                return r;
        print_tokenizer(setup, to);
        print_chat(setup, to);
        r = model_setup_plan(setup, NULL);
        if (r)
                return r;
        print_memory(setup, to);
        return 0;
}

int inspect(struct model_setup *setup, FILE *to)
{
        int r = look(setup, to);

        if (!r)
                fprintf(to, "served      yes\n");
        else
                fprintf(to, "served      no: %s\n", setup->why[0] ? setup->why : strerror(-r));
        return r ? INSPECT_E_UNSERVED : 0;
}
