/*
 * A served model: weights, tokenizer, chat template and traits in one reference-counted object.
 * Every request refers to it.
 *
 * It is opened before the threads start.  From then on its parts are read-only, so any thread may
 * read them while a reference is held.  Only the loop thread changes the reference count, because
 * requests are made and freed there.
 */
#ifndef DAEMON_MODEL_SERVED_H
#define DAEMON_MODEL_SERVED_H

#include <samovar/protocol.h>

#include "daemon/model/facts.h"
#include "daemon/model/sampling-defaults.h"
#include "daemon/model/traits.h"

struct tokenizer;   /* daemon/text/tokenizer.h */
struct chat;        /* daemon/text/chat.h */
struct piece_order; /* daemon/text/piece-order.h */
struct dialect;     /* daemon/text/parts/dialect.h */
struct model;       /* daemon/engine/model.h */
struct token_trie;  /* daemon/constraint/token-trie.h */

struct served {
        char name[SMV_NAME_BYTES_MAX + 1];
        /* the backends that compute it and their shares of the layers, for people */
        char backend[96];
        char draft[SMV_NAME_BYTES_MAX + 1]; /* the name of its draft model; "": it has none */
        uint32_t gpu_layers;                /* how many of the layers are in a GPU's memory */
        char quantisation[16];              /* the type of most weights, for people */
        struct model_facts facts;
        uint64_t weight_bytes; /* of all weights, as a backend takes them */
        uint32_t references;
        uint32_t context; /* positions that a sequence may have here: traits.context or --ctx */
        struct traits traits;
        struct sampling_defaults defaults; /* of requests that give no sampling parameters */
        struct tokenizer *tokenizer;
        struct piece_order *piece_order; /* of the tokenizer */
        struct chat *chat;               /* NULL: the model has no template */
        /* how it writes reasoning and calls; NULL: nobody has looked, and texts have no parts */
        const struct dialect *dialect;
        const struct token_trie *trie; /* the texts of the tokens, for masks */
        /* how the dialect of calls was found: "setting", "template", "signs", or "" for none */
        const char *dialect_by;
        struct model *model;
};

#endif
