/*
 * The shortest useful client: asks a question and prints the answer.
 *
 *      cc hello.c $(pkg-config --cflags --libs samovar) && ./a.out "What can I cook with rice?"
 */
#include <samovar/client.h>
#include <stdio.h>

int main(int argc, char **argv)
{
        char why[256] = "out of memory";
        struct smv_connect at = { SMV_SIZE(smv_connect), .message = why,
                                  .message_bytes = sizeof(why) };
        struct smv_message question = { .role = "user",
                                        .content = argc > 1 ? argv[1] : "What is a samovar?" };
        struct smv_generate ask = { SMV_SIZE(smv_generate), .messages = &question,
                                    .message_count = 1, .max_tokens = 200 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_client *client;
        uint32_t stream;

        if (smv_connect(&at, &client) < 0)
                return fprintf(stderr, "%s\n", why), 1;
        if (smv_generate(client, &ask, &stream) < 0) {
                smv_error(client, &problem);
                return fprintf(stderr, "%s: %s\n", problem.name, problem.message), 1;
        }
        while (smv_next(client, &event, -1) > 0 && event.kind != SMV_EVENT_END)
                fwrite(event.text, 1, event.text_bytes, stdout), fflush(stdout);
        printf("\n[%s]\n", smv_reason_name(event.reason));
        smv_close(client);
        return 0;
}
