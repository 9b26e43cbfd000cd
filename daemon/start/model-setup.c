#include "daemon/start/model-setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/engine/publish.h"
#include "daemon/files/chat-source.h"
#include "daemon/files/generation-source.h"
#include "daemon/files/splitters.h"
#include "daemon/files/vocabulary.h"
#include "daemon/start/shipped.h"
#include "daemon/start/token-texts.h"
#include "daemon/text/chat.h"
#include "daemon/text/parts/probe.h"
#include "daemon/text/piece-order.h"
#include "daemon/text/tokenizer.h"
#include "base/sys.h"
#include "json/utf8.h"
#include "store/store.h"

static bool may_be_shown(const char *name, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++) {
                if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
                        return false;
        }
        return utf8_valid(name, bytes) == bytes;
}

static size_t name_length(const char *name)
{
        static const char *const suffixes[] = { ".gguf", ".safetensors" };
        size_t bytes = strlen(name);

        for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
                size_t suffix = strlen(suffixes[i]);

                if (bytes > suffix && !strcmp(name + bytes - suffix, suffixes[i]))
                        return bytes - suffix;
        }
        return bytes;
}

/* Names the folders where the name was looked up. */
static int refuse_name(struct model_setup *setup, const struct store *store)
{
        const char *name = setup->path;

        snprintf(setup->why, sizeof(setup->why),
                 "%.100s: there is no such file, and no model of this name in %.150s%s%.150s; "
                 "samovar pull fetches one, samovar models lists them",
                 name, store->places[0], store->place_count > 1 ? " or " : "",
                 store->place_count > 1 ? store->places[1] : "");
        return -ENOENT;
}

/* A word that is no file may be a name in the folder of models; then that is the path. */
static int look_up(struct model_setup *setup)
{
        struct store_model model;
        struct store store;
        uint64_t identity[2];
        int r;

        if (strchr(setup->path, '/') || !sys_identity(setup->path, identity) ||
            setup->path[name_length(setup->path)] || store_open(&store))
                return 0;
        r = store_find(&store, setup->path, &model);
        if (r)
                return r == -ENOENT ? refuse_name(setup, &store) : r;
        snprintf(setup->path, sizeof(setup->path), "%s", model.path);
        store_model_deinit(&model);
        return 0;
}

/* PATH or PATH=NAME.  Without a name, takes the last part of the path, without a suffix. */
static int split_model(struct model_setup *setup)
{
        const char *model = setup->config->model, *equals = strrchr(model, '='), *name, *slash;
        size_t bytes = equals ? (size_t)(equals - model) : strlen(model), name_bytes;
        char *path = setup->path;

        if (bytes >= sizeof(setup->path)) {
                snprintf(setup->why, sizeof(setup->why), "model: the path is too long");
                return -EINVAL;
        }
        memcpy(path, model, bytes);
        while (bytes > 1 && path[bytes - 1] == '/')
                bytes--;
        path[bytes] = '\0';

        slash = strrchr(path, '/');
        name = equals ? equals + 1 : slash ? slash + 1 : path;
        name_bytes = equals ? strlen(name) : name_length(name);
        if (name_bytes == 0 || name_bytes > SMV_NAME_BYTES_MAX || !may_be_shown(name, name_bytes)) {
                snprintf(setup->why, sizeof(setup->why),
                         "model: a name has 1 to %u bytes of printable UTF-8", SMV_NAME_BYTES_MAX);
                return -EINVAL;
        }
        memcpy(setup->served.name, name, name_bytes);
        return look_up(setup);
}

int model_setup_fail(struct model_setup *setup, const char *path, const char *what, int r)
{
        snprintf(setup->why, sizeof(setup->why), "%.200s: %s", path, what);
        return r;
}

/* The folder of a .safetensors file; any other path is the folder itself. */
static const char *folder_of(const char *path, char ret_folder[4096])
{
        size_t bytes = strlen(path), ending = strlen(".safetensors");
        const char *slash = strrchr(path, '/');

        if (bytes < ending || strcmp(path + bytes - ending, ".safetensors"))
                return path;
        if (!slash)
                return ".";
        snprintf(ret_folder, 4096, "%.*s", (int)(slash - path + 1), path);
        return ret_folder;
}

/*
 * Reads the vocabulary from --tokenizer (PATH or PATH=SPLITTER), or from the model's own file, or
 * from the files beside it.
 */
static int open_vocabulary(struct model_setup *setup, struct vocabulary **ret_vocabulary)
{
        const char *given = setup->config->tokenizer, *equals = given ? strrchr(given, '=') : NULL;
        const struct gguf *gguf = checkpoint_gguf(setup->checkpoint);
        char path[4096], what[256];
        int r;

        if (!given) {
                r = gguf ? vocabulary_from_gguf(gguf, NULL, ret_vocabulary, what, sizeof(what))
                         : vocabulary_open(folder_of(setup->path, path), NULL, ret_vocabulary, what,
                                           sizeof(what));
                return r ? model_setup_fail(setup, setup->path, what, r) : 0;
        }
        snprintf(path, sizeof(path), "%.*s", equals ? (int)(equals - given) : (int)strlen(given),
                 given);
        r = vocabulary_open(path, equals ? equals + 1 : NULL, ret_vocabulary, what, sizeof(what));
        return r ? model_setup_fail(setup, path, what, r) : 0;
}

/* The smallest ring must hold many records of the largest size (publish.c relies on it). */
static int check_records(struct model_setup *setup)
{
        size_t piece = tokenizer_piece_max(setup->served.tokenizer);
        size_t record = publish_record_bytes_max(piece, SMV_STOP_BYTES_MAX, 0);

        if (record <= SMV_RING_BYTES_MIN / 64)
                return 0;
        snprintf(setup->why, sizeof(setup->why),
                 "model: its longest token has %zu bytes, too many for a record", piece);
        return -EINVAL;
}

/* The text of a token, for a template: NUL-ended, or NULL. */
static const char *spelling(const struct vocabulary *v, uint32_t id, char to[])
{
        const struct entry *entry;

        if (id >= v->entry_count)
                return NULL;
        entry = &v->entries[id];
        if (!entry->count || entry->count > VOCABULARY_ENTRY_BYTES_MAX ||
            memchr(entry->bytes, '\0', entry->count))
                return NULL;
        memcpy(to, entry->bytes, entry->count);
        to[entry->count] = '\0';
        return to;
}

/* A dialect whose signs deceive is as good as none. */
static int choose_dialect(struct model_setup *setup)
{
        struct dialect *dialect = &setup->dialect;
        int r = probe_dialect(setup->served.chat, dialect);

        if (r == PROBE_E_WRONG)
                dialect_drop_calls(dialect);
        if (dialect_has_calls(dialect))
                setup->served.dialect_by = r ? "signs" : "template";
        return r < 0 ? error_pass(r) : 0;
}

static int open_dialect(struct model_setup *setup, const struct chat_conf *conf)
{
        const char *name = setup->config->tool_dialect;
        char what[128];

        if (name && strcmp(name, "none") && !dialect_is_known(name)) {
                snprintf(what, sizeof(what),
                         "tool_dialect is %.60s, which is not known; protocol.md lists the names",
                         name);
                return model_setup_fail(setup, setup->path, what, -EINVAL);
        }
        dialect_open(&(struct dialect_conf){ .tokenizer = setup->served.tokenizer,
                                             .templates = { conf->plain, conf->tools },
                                             .name = name },
                     &setup->dialect);
        setup->served.dialect = &setup->dialect;
        setup->served.dialect_by = name ? "setting" : "";
        return name ? 0 : error_pass(choose_dialect(setup));
}

/*
 * If the files do not have the texts of bos and eos, the vocabulary gives them.  If the vocabulary
 * does not name these tokens, the traits do.
 */
static int open_chat(struct model_setup *setup, const struct vocabulary *v)
{
        char bos[VOCABULARY_ENTRY_BYTES_MAX + 1], eos[VOCABULARY_ENTRY_BYTES_MAX + 1], what[256];
        const struct traits *traits = &setup->served.traits;
        uint32_t bos_id = v->bos != VOCABULARY_NONE ? v->bos : traits->bos;
        uint32_t eos_id = v->eos != VOCABULARY_NONE ? v->eos
                          : traits->eos_count       ? traits->eos[0]
                                                    : VOCABULARY_NONE;
        struct chat_source source;
        struct chat_conf conf = { 0 };
        int r = chat_source_read(setup->checkpoint, &source, what, sizeof(what));

        if (r == -ENOMEM)
                return error_pass(r);
        if (r)
                conf.fault = what;
        conf.plain = source.plain;
        conf.tools = source.tools;
        conf.bos = source.bos ? source.bos : spelling(v, bos_id, bos);
        conf.eos = source.eos ? source.eos : spelling(v, eos_id, eos);
        r = chat_open(&conf, &setup->served.chat);
        if (!r)
                r = open_dialect(setup, &conf);
        chat_source_deinit(&source);
        return error_pass(r);
}

/* How texts are split, for --inspect. */
static void note_split(struct model_setup *setup, const struct vocabulary *v)
{
        const char *name = splitter_name_of(v->cuts, v->cut_count);

        if (!v->cut_count)
                return;
        snprintf(setup->split, sizeof(setup->split), "%s", name ? name : "its own expressions say");
}

int model_setup_tokenizer(struct model_setup *setup)
{
        struct served *served = &setup->served;
        struct vocabulary *vocabulary;
        char what[256];
        int r;

        r = open_vocabulary(setup, &vocabulary);
        if (r)
                return r;
        r = tokenizer_open(vocabulary, served->traits.vocab, &served->tokenizer, what,
                           sizeof(what));
        if (r)
                model_setup_fail(setup,
                                 setup->config->tokenizer ? setup->config->tokenizer : setup->path,
                                 what, r);
        /* The vocabulary decides whether a text begins with the bos token. */
        else if (!setup->config->tokenizer && vocabulary->kind != VOCABULARY_BYTES)
                served->traits.bos = vocabulary->add_bos ? vocabulary->bos : TRAITS_NO_TOKEN;
        if (!r)
                r = open_chat(setup, vocabulary);
        setup->kind = vocabulary->kind;
        note_split(setup, vocabulary);
        setup->entries = vocabulary->entry_count;
        vocabulary_close(vocabulary);
        return r ? error_pass(r) : check_records(setup);
}

int model_setup_texts(struct model_setup *setup)
{
        struct served *served = &setup->served;
        int r = token_texts_trie(served->tokenizer, served->traits.vocab, &setup->trie);

        served->trie = setup->trie;
        if (!r)
                r = piece_order_new(served->tokenizer, &served->piece_order);
        return error_pass(r);
}

static int take_shipped(struct model_setup *setup)
{
        snprintf(setup->served.name, sizeof(setup->served.name), "%s", SHIPPED_NAME);
        return error_pass(
                shipped_model(setup->path, sizeof(setup->path), setup->why, sizeof(setup->why)));
}

int model_setup_path(struct model_setup *setup)
{
        return error_pass(setup->config->model ? split_model(setup) : take_shipped(setup));
}

static void note_weights(const struct tensor_table *table, struct served *served)
{
        snprintf(served->quantisation, sizeof(served->quantisation), "%s",
                 row_type_name(tensor_table_main_type(table)));
        served->weight_bytes = tensor_table_taken_bytes(table);
}

int model_setup_checkpoint(struct model_setup *setup)
{
        char what[256];
        int r;

        r = model_setup_path(setup);
        if (r)
                return r;
        r = checkpoint_open(setup->path, &setup->checkpoint, what, sizeof(what));
        if (r)
                return model_setup_fail(setup, setup->path, what, r);
        note_weights(checkpoint_tensors(setup->checkpoint), &setup->served);
        r = checkpoint_facts(setup->checkpoint, &setup->served.facts, what, sizeof(what));
        if (r)
                return model_setup_fail(setup, setup->path, what, r);
        return 0;
}

int model_setup_traits(struct model_setup *setup)
{
        char what[256];
        int r = checkpoint_traits(setup->checkpoint, &setup->served.traits, what, sizeof(what));

        if (r)
                return model_setup_fail(setup, setup->path, what, r);
        setup->served.defaults = SAMPLING_DEFAULTS_PLAIN;
        if (generation_source_read(setup->checkpoint, &setup->served.defaults,
                                   &setup->served.traits, what, sizeof(what)))
                log_warn("generation_defaults_left_out model=%s keys=%s", setup->served.name, what);
        return 0;
}

/*
 * Prints that the shipped model is served, if no model was asked for.  Then prints one line with
 * the sums of memory, before it is allocated.
 */
/* How many sequences of the whole context the pool can hold at once. */
static double full_sequences(const struct model_setup *setup)
{
        const struct sched_conf *conf = &setup->sched;
        uint32_t each = blocks_for(conf->context);
        double blocks = (double)conf->blocks / each;
        double windows = (double)sched_windows_max(conf) / sched_windows_of(conf, each);

        return conf->prefix.window && windows < blocks ? windows : blocks;
}

void model_setup_print(const struct model_setup *setup, FILE *to)
{
        const struct model_bytes *bytes = &setup->bytes, *host = &setup->host;
        const struct served *served = &setup->served;
        uint64_t rings = setup->config->ring_bytes * setup->config->connections;
        const char *file = setup->config->file;
        double mib = 1 << 20;
        char drafts[64] = "", model[256] = "", memory[128] = "", beside[128] = "", swap[96] = "",
             windows[96] = "";

        if (bytes->left != MODEL_BYTES_HOST)
                snprintf(memory, sizeof(memory),
                         "scratch %.1f MiB, of %.1f MiB that the backend has left; ",
                         (double)bytes->scratch / mib, (double)bytes->left / mib);
        if (setup->model_conf.host_layers)
                snprintf(beside, sizeof(beside),
                         "on the host: layers %u, weights %.1f MiB, activations %.1f MiB, KV "
                         "%.1f MiB; ",
                         setup->model_conf.host_layers, (double)host->weights / mib,
                         (double)host->activations / mib, (double)host->kv / mib);
        if (setup->drafts)
                snprintf(drafts, sizeof(drafts), "drafts %.1f MiB, ", (double)setup->drafts / mib);
        if (setup->draft)
                snprintf(model, sizeof(model), "draft model %.100s %.1f MiB, its KV %.1f MiB; ",
                         served->draft, (double)model_setup_draft_bytes(setup) / mib,
                         (double)(setup->sched.blocks * setup->draft->setup.bytes.block) / mib);
        if (setup->model_conf.windows)
                snprintf(windows, sizeof(windows), ", %u window pages of %llu bytes",
                         setup->model_conf.windows, (unsigned long long)bytes->window);
        if (host->swap)
                snprintf(swap, sizeof(swap), "swap on the host %.1f MiB (%u blocks); ",
                         (double)host->swap / mib, setup->model_conf.swap_blocks);
        if (!setup->config->model)
                fprintf(to,
                        "samovard: serving %s, the model that comes with samovar (%s); "
                        "%s%s serves another\n",
                        served->name, setup->path, file ? "model = PATH in " : "--model",
                        file ? file : "");
        fprintf(to,
                "samovard: model %s, %u layers, vocabulary %u, context %u; weights %.1f MiB "
                "(%.1f MiB more while they are read), "
                "activations %.1f MiB, KV %.1f MiB (%u blocks of %llu bytes%s, %.1f full "
                "sequences), "
                "%s%s%s%s%srings at most %.1f MiB; sequences at once %u, rows a step %u, requests "
                "%u\n",
                served->name, served->traits.layers, served->traits.vocab, served->context,
                (double)bytes->weights / mib, (double)bytes->loading / mib,
                (double)bytes->activations / mib, (double)bytes->kv / mib, setup->sched.blocks,
                (unsigned long long)bytes->block, windows, full_sequences(setup), memory, beside,
                swap, model, drafts, (double)rings / mib, setup->sched.slots, setup->sched.rows,
                setup->sched.requests_max);
}

void model_setup_close_texts(struct model_setup *setup)
{
        setup->trie = token_trie_free(setup->trie);
        setup->served.chat = chat_close(setup->served.chat);
        setup->served.piece_order = piece_order_free(setup->served.piece_order);
        setup->served.tokenizer = tokenizer_close(setup->served.tokenizer);
}

void model_setup_close(struct model_setup *setup)
{
        model_setup_close_texts(setup);
        setup->checkpoint = checkpoint_close(setup->checkpoint);
}
