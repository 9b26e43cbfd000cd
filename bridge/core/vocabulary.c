#include "bridge/core/vocabulary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/core/context.h"

/*
 * Each call that needs the vocabulary asks for the next part itself, until all are there.  If two
 * calls ask for the same part, the second answer is skipped.
 */
struct vocabulary {
        char digest[65]; /* of the model */
        struct bytes bytes;
        struct bytes ends; /* uint64_t for each token: where its bytes end */
        bool whole;
};

static uint32_t count_of(const struct vocabulary *vocabulary)
{
        return (uint32_t)(vocabulary->ends.count / sizeof(uint64_t));
}

struct vocabulary *vocabulary_new(void)
{
        return calloc(1, sizeof(struct vocabulary));
}

struct vocabulary *vocabulary_free(struct vocabulary *vocabulary)
{
        if (!vocabulary)
                return NULL;
        bytes_deinit(&vocabulary->bytes);
        bytes_deinit(&vocabulary->ends);
        free(vocabulary);
        return NULL;
}

static int add(struct vocabulary *vocabulary, const struct smv_piece *pieces, size_t count)
{
        uint64_t end;
        int r = 0;

        for (size_t i = 0; !r && i < count; i++) {
                r = bytes_add(&vocabulary->bytes, pieces[i].bytes, pieces[i].count);
                end = vocabulary->bytes.count;
                if (!r)
                        r = bytes_add(&vocabulary->ends, &end, sizeof(end));
        }
        return r;
}

static void ask(struct call *call);

static void on_answer(struct call *call, const struct smv_event *reply)
{
        struct vocabulary *vocabulary = call->bridge->vocabulary;

        if (call->asked_from == count_of(vocabulary) && !vocabulary->whole) {
                if (add(vocabulary, reply->pieces, reply->piece_count)) {
                        call_no_memory(call);
                        return;
                }
                vocabulary->whole = count_of(vocabulary) >= reply->number;
        }
        if (vocabulary->whole)
                call->go(call);
        else
                ask(call);
}

static void ask(struct call *call)
{
        struct vocabulary *vocabulary = call->bridge->vocabulary;
        struct smv_client *client = link_client(call->link);
        uint32_t request = 0;
        int r = -ENOTCONN;

        call->asked_from = count_of(vocabulary);
        if (client)
                r = smv_ask_vocabulary(client, NULL, count_of(vocabulary), 0, &request);
        call_ask(call, r, request, on_answer);
}

static void on_connected(struct call *call)
{
        struct vocabulary *vocabulary = call->bridge->vocabulary;
        struct smv_model model = { SMV_SIZE(smv_model) };

        call->go = call->next;
        if (!smv_model(link_client(call->link), 0, &model) && model.digest &&
            strcmp(model.digest, vocabulary->digest)) {
                snprintf(vocabulary->digest, sizeof(vocabulary->digest), "%s", model.digest);
                vocabulary->bytes.count = vocabulary->ends.count = 0;
                vocabulary->whole = false;
        }
        if (vocabulary->whole)
                call->go(call);
        else
                ask(call);
}

void call_with_vocabulary(struct call *call, void (*go)(struct call *call))
{
        call->next = go;
        call_with_daemon(call, on_connected);
}

struct text vocabulary_piece(const struct vocabulary *vocabulary, uint32_t token)
{
        const uint64_t *ends = (const void *)vocabulary->ends.at;
        uint64_t from;

        if (token >= count_of(vocabulary))
                return (struct text){ "", 0 };
        from = token ? ends[token - 1] : 0;
        return (struct text){ vocabulary->bytes.at + from, (size_t)(ends[token] - from) };
}
