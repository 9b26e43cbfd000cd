/*
 * Writes without a letter (a capital one is another one): before each token, the daemon asks this
 * program which tokens are legal.
 *
 *      cc lipogram.c $(pkg-config --cflags --libs samovar) && ./a.out e "Tell me about the sea."
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct smv_client *client)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(client, &problem);
        return fprintf(stderr, "%s: %s\n", problem.name, problem.message), 1;
}

static void set(uint32_t *mask, uint32_t token)
{
        mask[token / 32] |= UINT32_C(1) << token % 32;
}

/* The tokens whose text does not contain this letter, and those that end the answer; or NULL. */
static uint32_t *make_mask(struct smv_client *client, char letter, size_t *ret_count)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        const struct smv_piece *pieces;
        size_t at = 0, count, vocab = 1;
        uint32_t *mask = NULL;

        for (; at < vocab; at += count) {
                if (smv_vocabulary(client, NULL, (uint32_t)at, 0, &pieces, &count, &vocab) < 0)
                        return free(mask), NULL;
                *ret_count = (vocab + 31) / 32;
                if (!mask && !(mask = calloc(*ret_count, sizeof(*mask))))
                        return NULL;
                for (size_t i = 0; i < count; i++)
                        if (pieces[i].kind == SMV_PIECE_TEXT &&
                            !memchr(pieces[i].bytes, letter, pieces[i].count))
                                set(mask, (uint32_t)(at + i));
        }
        smv_model(client, 0, &model);
        for (size_t i = 0; i < model.end_token_count; i++)
                set(mask, model.end_tokens[i]);
        return mask;
}

static int write_answer(struct smv_client *client, const char *question, const uint32_t *mask,
                        size_t count)
{
        struct smv_message message = { .role = "user", .content = question };
        struct smv_generate ask = { SMV_SIZE(smv_generate), .messages = &message,
                                    .message_count = 1, .max_tokens = 200, .ask = SMV_ASK_MASK };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;

        if (smv_generate(client, &ask, &stream) < 0)
                return fail(client);
        while (smv_next(client, &event, -1) > 0 && event.kind != SMV_EVENT_END) {
                if (event.kind == SMV_EVENT_ASK)
                        smv_answer_mask(client, stream, mask, count);
                else
                        fwrite(event.text, 1, event.text_bytes, stdout), fflush(stdout);
        }
        printf("\n");
        if (event.code != SMV_OK)
                fprintf(stderr, "%s: %s\n", smv_code_name(event.code), smv_code_text(event.code));
        return event.code != SMV_OK;
}

int main(int argc, char **argv)
{
        char why[256] = "out of memory";
        struct smv_connect at = { SMV_SIZE(smv_connect), .message = why,
                                  .message_bytes = sizeof(why), .ask_slots = 1 };
        const char *question = argc > 2 ? argv[2] : "What is a samovar?";
        struct smv_client *client;
        uint32_t *mask;
        size_t count;
        int r;

        if (smv_connect(&at, &client) < 0)
                return fprintf(stderr, "%s\n", why), 1;
        mask = make_mask(client, argc > 1 ? argv[1][0] : 'e', &count);
        r = mask ? write_answer(client, question, mask, count) : fail(client);
        free(mask);
        smv_close(client);
        return r;
}
