/*
 * How long a conversation takes to become a prompt:
 *
 *      bench-chat [-r ROUNDS] [-m MESSAGES] TEMPLATE ...
 *
 * A TEMPLATE is a file of Jinja.  The conversation has a message of the system, and then the user
 * and the assistant in turns, 300 letters each; a template that refuses it is named.  The values
 * are made before; what is measured is chat_render() with an arena of its own, as in the daemon.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "bench/table.h"
#include "daemon/text/chat.h"

#define MESSAGE_BYTES 300u
#define ARENA_BYTES   (64u << 20)
#define SAMPLES       200u

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench-chat: %s: %s\n", what, why);
        exit(1);
}

static char *read_whole(const char *path)
{
        static char text[TEMPLATE_BYTES_MAX + 2]; /* one that is too long is refused, not cut */
        FILE *in = fopen(path, "rb");
        size_t bytes;

        if (!in)
                die(path, "it cannot be read");
        bytes = fread(text, 1, TEMPLATE_BYTES_MAX + 1, in);
        text[bytes] = '\0';
        fclose(in);
        return text;
}

static struct value text_of(struct arena *arena, const char *text, size_t bytes)
{
        struct value string;

        if (value_string(arena, text, bytes, TEXT_GIVEN, &string))
                die("values", "no memory");
        return string;
}

static struct value message_of(struct arena *arena, const char *role, uint32_t number)
{
        char text[MESSAGE_BYTES + 1];
        struct value message;

        snprintf(text, sizeof(text), "%-*u", (int)MESSAGE_BYTES, number);
        for (uint32_t i = 10; i < MESSAGE_BYTES; i++)
                text[i] = i % 6 ? (char)('a' + (number + i) % 26) : ' ';
        if (value_map(arena, 2, &message) ||
            value_map_name(arena, &message, "role", text_of(arena, role, strlen(role))) ||
            value_map_name(arena, &message, "content", text_of(arena, text, MESSAGE_BYTES)) ||
            value_map_end(arena, &message))
                die("values", "no memory");
        return message;
}

static struct value messages_of(struct arena *arena, uint32_t count)
{
        struct value list;
        int r = value_list(arena, count, &list);

        for (uint32_t i = 0; !r && i < count; i++)
                r = value_list_add(&list, message_of(arena,
                                                     !i      ? "system"
                                                     : i % 2 ? "user"
                                                             : "assistant",
                                                     i));
        if (r)
                die("values", "no memory");
        return list;
}

/* False: the template refused it, and *why says why. */
static bool render(const struct chat *chat, struct conversation about, const struct tm *now,
                   char *why, size_t why_bytes)
{
        struct rendered rendered;
        struct arena *arena;
        int r;

        if (arena_new(ARENA_BYTES, &arena))
                die("values", "no memory");
        r = chat_render(chat, arena, &about, now, &rendered, why, why_bytes);
        if (!r)
                rendered_free(&rendered);
        arena_free(arena);
        return !r;
}

static void measure(const char *path, struct conversation about, const struct tm *now)
{
        const struct chat_conf conf = { .plain = read_whole(path), .bos = "<s>", .eos = "</s>" };
        static uint32_t samples[SAMPLES];
        struct chat *chat;
        char why[256];

        if (chat_open(&conf, &chat))
                die(path, "no memory");
        if (chat_refusal(chat))
                die(path, chat_refusal(chat));
        if (!render(chat, about, now, why, sizeof(why))) {
                printf("%s refuses the conversation: %s\n", path, why);
                chat_close(chat);
                return;
        }
        for (uint32_t i = 0; i < SAMPLES; i++) {
                uint64_t from = sys_clock_ns();

                render(chat, about, now, why, sizeof(why));
                samples[i] = (uint32_t)(sys_clock_ns() - from);
        }
        table_add("us for a conversation", path, "2000", samples, SAMPLES);
        chat_close(chat);
}

int main(int argc, char **argv)
{
        uint32_t rounds = 3, count = 100;
        time_t seconds = time(NULL);
        struct arena *arena;
        struct value messages;
        struct tm now;
        int option;

        while ((option = getopt(argc, argv, "r:m:")) >= 0) {
                if (option != 'r' && option != 'm') {
                        fprintf(stderr,
                                "usage: bench-chat [-r ROUNDS] [-m MESSAGES] TEMPLATE ...\n");
                        return 2;
                }
                *(option == 'r' ? &rounds : &count) = (uint32_t)strtoul(optarg, NULL, 10);
        }
        localtime_r(&seconds, &now);
        if (arena_new(ARENA_BYTES, &arena))
                die("values", "no memory");
        messages = messages_of(arena, count);
        for (uint32_t round = 0; round < rounds; round++)
                for (int i = optind; i < argc; i++)
                        measure(argv[i],
                                (struct conversation){ .messages = messages,
                                                       .add_generation_prompt = true,
                                                       .bytes = count * MESSAGE_BYTES },
                                &now);
        table_print();
        arena_free(arena);
        return 0;
}
