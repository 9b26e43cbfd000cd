/*
 * A chat in the terminal.  The daemon keeps the conversation in a handle, so each turn sends only
 * what is new.
 *
 *      cc chat.c $(pkg-config --cflags --libs samovar) && ./a.out
 */
#include <samovar/client.h>
#include <stdio.h>
#include <string.h>

static int fail(const struct smv_client *client)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(client, &problem);
        return fprintf(stderr, "%s: %s\n", problem.name, problem.message), 1;
}

/* Opens the handle with the first question, and appends the later ones to it. */
static int add_turn(struct smv_client *client, const char *question, uint64_t *handle)
{
        struct smv_message message = { .role = "user", .content = question };
        struct smv_generate turn = { SMV_SIZE(smv_generate), .messages = &message,
                                     .message_count = 1 };

        return *handle ? smv_handle_append_messages(client, *handle, &turn, NULL)
                       : smv_handle_open(client, &turn, handle, NULL);
}

static int print_answer(struct smv_client *client, uint64_t handle)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .handle = handle, .max_tokens = 400 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;
        int r;

        r = smv_generate(client, &ask, &stream);
        while (!r && smv_next(client, &event, -1) > 0 && event.kind != SMV_EVENT_END)
                fwrite(event.text, 1, event.text_bytes, stdout), fflush(stdout);
        return r;
}

int main(void)
{
        char line[4096], why[256] = "out of memory";
        struct smv_connect at = { SMV_SIZE(smv_connect), .message = why,
                                  .message_bytes = sizeof(why) };
        struct smv_client *client;
        uint64_t handle = 0;

        if (smv_connect(&at, &client) < 0)
                return fprintf(stderr, "%s\n", why), 1;
        while (printf("> "), fflush(stdout), fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = '\0';
                if (!*line)
                        continue;
                if (add_turn(client, line, &handle) < 0 || print_answer(client, handle) < 0)
                        return fail(client);
                printf("\n");
        }
        smv_close(client);
        return 0;
}
