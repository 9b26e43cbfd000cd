#include "daemon/start/model-setup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/engine/draft-model.h"
#include "daemon/start/shipped.h"
#include "daemon/text/tokenizer.h"

/*
 * A smaller model is computed by one thread: waiting for others would take longer.  A step of pinch
 * takes 14 us by one thread and 23 by two.
 */
#define ALONE_BYTES (UINT64_C(1) << 20)

static int fail(struct model_setup *setup, const char *what, int r)
{
        return errtext_set(setup->why, sizeof(setup->why), r, "draft_model: %s",
                           what[0] ? what : strerror(-r));
}

/* A control token, or one that is not used: no text becomes it. */
static bool is_no_text(const struct tokenizer *tokenizer, uint32_t id)
{
        enum entry_kind kind = tokenizer_kind(tokenizer, id);

        return kind == ENTRY_UNUSED || kind == ENTRY_CONTROL;
}

/*
 * Both write it in the same way.  Models of one family give other names to tokens that are no text,
 * and files disagree about the kinds of some.
 */
static bool same_token(const struct tokenizer *a, const struct tokenizer *b, uint32_t id)
{
        size_t a_bytes, b_bytes;
        const char *a_text = tokenizer_spelling(a, id, &a_bytes);
        const char *b_text = tokenizer_spelling(b, id, &b_bytes);

        if (is_no_text(a, id) && is_no_text(b, id))
                return true;
        return a_bytes == b_bytes && (!a_bytes || !memcmp(a_text, b_text, a_bytes));
}

/* Some files have more ids than tokens, for the sake of a round number. */
static bool all_no_text(const struct tokenizer *tokenizer, uint32_t from)
{
        for (uint32_t id = from; id < tokenizer_vocab(tokenizer); id++)
                if (!is_no_text(tokenizer, id))
                        return false;
        return true;
}

#define SAME                                                                                       \
        "; both must have the same vocabulary: name a smaller model of the same family, or leave " \
        "draft_model out"

/* The beginning of how it is written; bytes that are not printed are \xNN. */
static void spell(const struct tokenizer *tokenizer, uint32_t id, char *to, size_t size)
{
        size_t count, at = 0;
        const char *spelling = tokenizer_spelling(tokenizer, id, &count);

        to[0] = '\0';
        for (size_t i = 0; i < count && at + 5 < size; i++) {
                unsigned char byte = (unsigned char)spelling[i];
                bool printed = byte >= ' ' && byte != 0x7f;

                at += (size_t)snprintf(to + at, size - at, printed ? "%c" : "\\x%02x", byte);
        }
}

/* Says which token differs, as both write it. */
static int refuse_token(struct model_setup *setup, uint32_t id)
{
        const struct model_setup *draft = &setup->draft->setup;
        char own[48], other[48];

        spell(setup->served.tokenizer, id, own, sizeof(own));
        spell(draft->served.tokenizer, id, other, sizeof(other));
        return error_raise(errtext_set(setup->why, sizeof(setup->why), -EINVAL,
                                       "draft_model is %.60s, whose token %" PRIu32
                                       " is '%s'; that of %.60s is '%s'" SAME,
                                       draft->served.name, id, other, setup->served.name, own));
}

static int compare_vocabularies(struct model_setup *setup)
{
        const struct model_setup *draft = &setup->draft->setup;
        const struct tokenizer *own = setup->served.tokenizer, *other = draft->served.tokenizer;
        uint32_t own_count = tokenizer_vocab(own), other_count = tokenizer_vocab(other);
        uint32_t both = own_count < other_count ? own_count : other_count;

        for (uint32_t id = 0; id < both; id++)
                if (!same_token(own, other, id))
                        return refuse_token(setup, id);
        if (all_no_text(own, both) && all_no_text(other, both))
                return 0;
        return error_raise(errtext_set(
                setup->why, sizeof(setup->why), -EINVAL,
                "draft_model is %.60s with %" PRIu32 " tokens, and %.60s has %" PRIu32 SAME,
                draft->served.name, other_count, setup->served.name, own_count));
}

/* PATH, PATH=NAME, or a name; the draft model that comes with samovar has one, too. */
static int set_model(struct model_setup *setup, struct draft_setup *draft)
{
        const char *model = setup->config->draft_model;
        size_t bytes = strlen(model) + 1;
        char path[4096];
        int r;

        draft->config = *setup->config;
        draft->config.model = draft->model;
        draft->config.tokenizer = NULL;
        draft->config.tool_dialect = NULL;
        if (bytes > sizeof(draft->model))
                return fail(setup, "the path is too long", -EINVAL);
        memcpy(draft->model, model, bytes);
        if (strcmp(model, SHIPPED_DRAFT_NAME))
                return 0;
        r = shipped_draft(path, sizeof(path), draft->setup.why, sizeof(draft->setup.why));
        if (r)
                return fail(setup, draft->setup.why, r);
        snprintf(draft->model, sizeof(draft->model), "%s=%s", path, SHIPPED_DRAFT_NAME);
        return 0;
}

static int read_files(struct model_setup *setup)
{
        struct model_setup *draft = &setup->draft->setup;
        int r = model_setup_checkpoint(draft);

        if (!r)
                r = model_setup_traits(draft);
        if (!r)
                r = model_setup_tokenizer(draft);
        return r ? fail(setup, draft->why, r) : 0;
}

int model_setup_draft(struct model_setup *setup)
{
        int r;

        if (!setup->config->draft_model || !config_draft_rows(setup->config))
                return 0;
        setup->draft = calloc(1, sizeof(*setup->draft));
        if (!setup->draft)
                return error_raise(-ENOMEM);
        setup->draft->setup.config = &setup->draft->config;
        r = set_model(setup, setup->draft);
        if (!r)
                r = read_files(setup);
        if (!r)
                r = compare_vocabularies(setup);
        if (r)
                return error_pass(r);
        snprintf(setup->served.draft, sizeof(setup->served.draft), "%s",
                 setup->draft->setup.served.name);
        /* Nothing else is read or written by its vocabulary. */
        model_setup_close_texts(&setup->draft->setup);
        return 0;
}

/* ---- its memory ---- */

/* The scheduler's sizes that it depends on, with so many blocks. */
static struct sched_conf sizes_of(const struct model_setup *setup, uint32_t blocks)
{
        return (struct sched_conf){ .blocks = blocks,
                                    .slots = setup->config->max_seqs,
                                    .context = setup->served.context };
}

static uint32_t context_of(const struct model_setup *setup)
{
        uint32_t own = setup->served.context, other = setup->draft->setup.served.traits.context;

        return own < other ? own : other;
}

int model_setup_draft_measure(struct model_setup *setup, struct kernels *kernels)
{
        struct model_setup *draft = &setup->draft->setup;
        struct sched_conf sizes = sizes_of(setup, 1);
        char what[256] = "";
        int r = 0;

        draft->served.context = context_of(setup);
        draft->model_conf = draft_model_sizes(&sizes, draft->served.context, setup->config->kv);
        if (kernels)
                r = model_measure_in(draft->checkpoint, &draft->served.traits, kernels,
                                     &draft->model_conf, &draft->bytes, &draft->host, what,
                                     sizeof(what));
        else
                model_measure(draft->checkpoint, &draft->served.traits, &draft->model_conf,
                              &draft->bytes);
        return r ? fail(setup, what, r) : 0;
}

uint64_t model_setup_draft_bytes(const struct model_setup *setup)
{
        const struct model_bytes *bytes = &setup->draft->setup.bytes;
        struct sched_conf none = sizes_of(setup, 0);
        uint64_t pages =
                draft_model_sizes(&none, setup->draft->setup.served.context, setup->config->kv)
                        .blocks;

        return bytes->weights + bytes->activations + bytes->scratch + pages * bytes->block;
}

/* ---- the model ---- */

int model_setup_draft_open(struct model_setup *setup, const struct kernels_conf *conf,
                           struct kernels *beside)
{
        struct draft_setup *own = setup->draft;
        struct model_setup *draft = &own->setup;
        struct kernels_conf its = *conf;
        const char *kind = beside->memory ? "cuda" : !strcmp(beside->name, "ref") ? "ref" : "cpu";
        char what[256] = "";
        int r;

        draft->model_conf =
                draft_model_sizes(&setup->sched, draft->served.context, setup->config->kv);
        its.rows_max = draft->model_conf.rows_max;
        its.wants_max = draft->model_conf.wants_max;
        its.groups = 1;
        its.vocab_max = draft->served.traits.vocab;
        its.row_copies_max = 0;
        if (draft->bytes.weights < ALONE_BYTES)
                its.threads = 1;
        else
                its.beside = beside;
        r = kernels_open(kind, &its, &own->kernels);
        if (r)
                return fail(setup, kernels_errtext(), r);
        r = model_open(draft->checkpoint, &draft->served.traits, own->kernels, &draft->model_conf,
                       &draft->served.model, what, sizeof(what));
        return r ? fail(setup, what, r) : 0;
}

int model_setup_draft_load(struct model_setup *setup, const struct weights_conf *conf)
{
        enum load_way way;
        char what[256] = "";
        int r = model_load(setup->draft->setup.served.model, conf, &way, what, sizeof(what));

        return r ? fail(setup, what, r) : 0;
}

void model_setup_draft_close(struct model_setup *setup)
{
        struct draft_setup *draft = setup->draft;

        if (!draft)
                return;
        model_close(draft->setup.served.model);
        if (draft->kernels)
                draft->kernels->close(draft->kernels);
        model_setup_close(&draft->setup);
        free(draft);
        setup->draft = NULL;
}
