#include "daemon/start/inspect.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/engine/tensors.h"
#include "daemon/files/scales.h"
#include "daemon/start/inspection.h"
#include "daemon/text/chat.h"
#include "kernels/cpu/cgroup-limits.h"

/* ---- the look ---- */

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

/* Of one sequence of so many blocks; layers with a window may see all of it. */
static uint64_t sequence_bytes(const struct sched_conf *conf, uint32_t blocks,
                               const struct model_bytes *bytes)
{
        uint32_t windows = conf->prefix.window ? sched_windows_of(conf, blocks) : blocks;

        return blocks * bytes->block + windows * bytes->window;
}

/* Sizes that people want to know of a model that cannot be served, too: which one could be? */
static void measure(struct inspection *inspection)
{
        struct model_setup *setup = inspection->setup;
        const struct traits *traits = &setup->served.traits;
        const struct config *config = setup->config;
        const struct model_conf conf = { .context = config->ctx,
                                         .rows_max = config->step_tokens,
                                         .wants_max = config->max_seqs + config_draft_rows(config),
                                         .blocks = 1,
                                         .windows = 1,
                                         .kv = config->kv };
        struct sched_conf sched = { 0 };
        bool own_head = !traits->tied || checkpoint_tensor(setup->checkpoint, "output.weight");
        struct model_bytes bytes;

        model_measure(setup->checkpoint, traits, &conf, &bytes);
        inspection->parameters = weight_parameters(traits, own_head);
        inspection->memory = cgroup_limits_memory();
        inspection->activations = bytes.activations;
        inspection->context =
                config->ctx && config->ctx < traits->context ? config->ctx : traits->context;
        inspection->drafts = model_setup_drafts(config, inspection->context);
        sched.prefix.window = traits_window(traits, inspection->context);
        inspection->sequence = sequence_bytes(&sched, blocks_for(inspection->context), &bytes);
        for (uint32_t i = 0; i < WEIGHT_RECIPES; i++)
                inspection->recipes[i] = weight_recipe_bytes(i, traits, own_head);
}

static void look(struct inspection *inspection)
{
        struct model_setup *setup = inspection->setup;
        int r = model_setup_checkpoint(setup);

        if (!r) {
                inspection->step = INSPECTED_FILES;
                r = model_setup_traits(setup);
        }
        if (!r) {
                inspection->step = INSPECTED_TRAITS;
                measure(inspection);
                r = check_tensors(setup);
        }
        if (!r)
                r = model_setup_tokenizer(setup);
        if (!r)
                r = model_setup_draft(setup);
        if (!r) {
                inspection->step = INSPECTED_TEXT;
                r = model_setup_plan(setup, NULL);
        }
        if (!r)
                inspection->step = INSPECTED_ALL;
        inspection->result = r;
}

/* ---- parts of both forms ---- */

const char *inspection_architecture(const struct model_setup *setup)
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

struct type_bytes inspection_types(const struct tensor_table *table)
{
        struct type_bytes types = { .other = NULL };

        for (uint32_t i = 0; i < table->count; i++) {
                const struct tensor *tensor = &table->tensors[i];

                if (!tensor->unserved) {
                        types.bytes[tensor->type] += tensor->bytes;
                        if (tensor->scales)
                                types.bytes[tensor->type] += tensor->scales->tensor.bytes;
                        continue;
                }
                types.other = types.other ? types.other : tensor;
                types.others++;
        }
        return types;
}

const char *const inspection_tokenizers[] = {
        [VOCABULARY_BYTES] = "bytes",
        [VOCABULARY_BYTE_LEVEL] = "byte-level BPE",
        [VOCABULARY_CHARACTERS] = "SentencePiece BPE",
        [VOCABULARY_UNIGRAM] = "unigram",
        [VOCABULARY_WORDPIECE] = "WordPiece",
};

const char *inspection_why(const struct inspection *inspection)
{
        return inspection->setup->why[0] ? inspection->setup->why : strerror(-inspection->result);
}

/* ---- the text ---- */

static void print_bytes(FILE *to, uint64_t bytes)
{
        static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
        double count = (double)bytes / 1024;
        unsigned unit = 0;

        for (; count >= 1000 && unit < 3; unit++)
                count /= 1024;
        fprintf(to, "%.1f %s", count, units[unit]);
}

/* Each type with its bytes, including scales; then tensors that no backend takes. */
static void print_files(const struct model_setup *setup, FILE *to)
{
        const struct tensor_table *table = checkpoint_tensors(setup->checkpoint);
        struct type_bytes types = inspection_types(table);
        const char *between = ": ";

        fprintf(to, "file        %s, %s, %" PRIu32 " tensors",
                checkpoint_gguf(setup->checkpoint) ? "GGUF" : "safetensors",
                shown(inspection_architecture(setup)).text, table->count);
        for (unsigned type = 0; type < ROW_TYPE_N; type++) {
                if (!types.bytes[type])
                        continue;
                fprintf(to, "%s%s ", between, row_type_name((enum row_type)type));
                print_bytes(to, types.bytes[type]);
                between = ", ";
        }
        if (types.others)
                fprintf(to, "%s%" PRIu32 " that are not taken (%s: %s)", between, types.others,
                        shown(types.other->name).text, types.other->unserved);
        fprintf(to, "\n");
}

static void print_count(FILE *to, uint64_t count)
{
        if (count >= 1000000000)
                fprintf(to, "%.2f billion", (double)count / 1e9);
        else if (count >= 1000000)
                fprintf(to, "%.2f million", (double)count / 1e6);
        else
                fprintf(to, "%" PRIu64, count);
}

/* The size, or the two sizes, of layers' heads. */
static void print_heads(const struct traits *t, FILE *to)
{
        const struct layer_traits *other = NULL;

        for (uint32_t i = 0; !other && i < t->layers; i++)
                if (t->layer[i].head_dim != t->layer[0].head_dim ||
                    t->layer[i].kv_heads != t->layer[0].kv_heads)
                        other = &t->layer[i];
        fprintf(to, "%" PRIu32 " heads of %" PRIu32 " (%" PRIu32 " of K and V)", t->heads,
                t->layer[0].head_dim, t->layer[0].kv_heads);
        if (other)
                fprintf(to, ", in some layers of %" PRIu32 " (%" PRIu32 ")", other->head_dim,
                        other->kv_heads);
}

static void print_model(const struct inspection *inspection, FILE *to)
{
        const struct traits *t = &inspection->setup->served.traits;

        fprintf(to, "model       %" PRIu32 " layers, width %" PRIu32 ", ", t->layers, t->width);
        print_heads(t, to);
        fprintf(to, ", ffn %" PRIu32 ", vocabulary %" PRIu32 ", context %" PRIu32 "%s, ", t->ffn,
                t->vocab, t->context, t->tied ? ", head tied" : "");
        print_count(to, inspection->parameters);
        fprintf(to, " parameters\n");
}

static void print_tokenizer(const struct model_setup *setup, FILE *to)
{
        fprintf(to, "tokenizer   %s%s%s", inspection_tokenizers[setup->kind],
                *setup->split ? ", split as " : "", setup->split);
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
        if (dialect_has_calls(&setup->dialect))
                fprintf(to, "tool calls  as %s, by %s\n", setup->dialect.name,
                        setup->served.dialect_by);
}

uint64_t inspection_drafts(const struct model_setup *setup)
{
        if (!setup->draft)
                return setup->drafts;
        return setup->drafts + model_setup_draft_bytes(setup) +
               setup->sched.blocks * setup->draft->setup.bytes.block;
}

static void print_memory(const struct inspection *inspection, FILE *to)
{
        const struct model_setup *setup = inspection->setup;
        const struct model_bytes *bytes = &setup->bytes;
        uint64_t rings = setup->config->ring_bytes * setup->config->connections;
        uint64_t drafts = inspection_drafts(setup);
        uint64_t fixed = bytes->weights + bytes->activations + drafts;

        fprintf(to, "memory      ");
        print_bytes(to, fixed + bytes->kv);
        fprintf(to, ": weights ");
        print_bytes(to, bytes->weights);
        fprintf(to, ", activations ");
        print_bytes(to, bytes->activations);
        if (drafts) {
                fprintf(to, ", drafts ");
                print_bytes(to, drafts);
        }
        fprintf(to, ", KV ");
        print_bytes(to, bytes->kv);
        if (setup->host.swap) {
                fprintf(to, "; for the swap of a GPU's pool, ");
                print_bytes(to, setup->host.swap);
        }
        fprintf(to, "; and rings, at most ");
        print_bytes(to, rings);
        fprintf(to, "\nsequences   %.1f of %" PRIu32 " positions in that KV; the ",
                (double)bytes->kv / (double)inspection->sequence, setup->served.context);
        print_bytes(to, inspection->memory);
        if (fixed > inspection->memory)
                fprintf(to, " we may have cannot hold the weights\n");
        else
                fprintf(to, " we may have could hold %.0f (--kv-bytes)\n",
                        (double)((inspection->memory - fixed) / inspection->sequence));
}

/* The quantisations that fit, then those that do not; each with all that it needs. */
static void print_recipes(const struct inspection *inspection, FILE *to)
{
        const char *between = " ";

        fprintf(to, "quantised   with KV of %" PRIu32 " positions, in the ", inspection->context);
        print_bytes(to, inspection->memory);
        fprintf(to, " we may have:");
        for (uint32_t i = 0; i < WEIGHT_RECIPES; i++, between = ", ") {
                fprintf(to, "%s%s ", between, weight_recipe_name(i));
                print_bytes(to, inspection_needs(inspection, i));
                if (inspection_fits(inspection, i))
                        continue;
                if (inspection_positions(inspection, i))
                        fprintf(to, " (only %" PRIu64 " positions fit)",
                                inspection_positions(inspection, i));
                else
                        fprintf(to, " (does not fit)");
        }
        fprintf(to, "\n");
}

static void print_text(const struct inspection *inspection, FILE *to)
{
        const struct model_setup *setup = inspection->setup;

        if (inspection->step >= INSPECTED_FILES)
                print_files(setup, to);
        if (inspection->step >= INSPECTED_TRAITS)
                print_model(inspection, to);
        if (inspection->step >= INSPECTED_TEXT) {
                print_tokenizer(setup, to);
                print_chat(setup, to);
        }
        if (inspection->step >= INSPECTED_ALL)
                print_memory(inspection, to);
        if (inspection->step >= INSPECTED_TRAITS)
                print_recipes(inspection, to);
        if (!inspection->result)
                fprintf(to, "served      yes\n");
        else
                fprintf(to, "served      no: %s\n", inspection_why(inspection));
}

int inspect(struct model_setup *setup, FILE *to)
{
        struct inspection inspection = { .setup = setup };
        int r = 0;

        look(&inspection);
        if (setup->config->json)
                r = inspection_print_json(&inspection, to);
        else
                print_text(&inspection, to);
        if (r)
                return error_pass(r);
        return inspection.result ? INSPECT_E_UNSERVED : 0;
}
