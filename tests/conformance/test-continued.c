/*
 * The last message, continued: compared with transformers, over the templates of real models
 * (contrib/reference/continued.py).
 *
 * Ours differs from transformers in two ways:
 *
 *      - A template that trims the text of messages loses the blanks at its end in transformers.
 *        Ours keeps them, because the client gave them and the model goes on behind them.
 *      - transformers refuses a message that the template shows changed, such as reasoning that is
 *        taken out of the text.  Ours continues behind what the template shows of it.
 *
 * Templates that we do not open are no matter of this test.  SAMOVAR_DATA says where the templates
 * are; without it there is nothing to test.
 */
#include "daemon/text/chat.h"
#include "tests/unit/template-rig.h"

struct counts {
        unsigned same, refused, blanks, shown, unknown, wrong;
};

static struct value member(struct value map, const char *name)
{
        const struct value *found = value_member(map, name);

        return found ? *found : value_none();
}

static struct chat *open_chat_of(struct value name)
{
        char path[1024];
        size_t bytes;
        char *source;
        struct chat *chat;

        snprintf(path, sizeof(path), "%s/real/templates/%.*s", getenv("SAMOVAR_DATA"),
                 (int)name.text->count, name.text->bytes);
        source = rig_read(path, &bytes);
        assert_int_equal(chat_open(&(struct chat_conf){ source, NULL, "<s>", "</s>", NULL }, &chat),
                         0);
        free(source);
        return chat;
}

/* The bytes of blanks at the end of a text. */
static size_t blanks(const char *text, size_t bytes)
{
        size_t count = 0;

        while (count < bytes && strchr(" \n", text[bytes - 1 - count]))
                count++;
        return count;
}

static bool ends_as(const char *text, size_t bytes, struct value end, struct value before)
{
        size_t count = end.text->count;

        return bytes == count + (size_t)before.integer &&
               !memcmp(text + bytes - count, end.text->bytes, count);
}

static void compare(struct value one, int r, const struct rendered *ours, const char *why,
                    struct counts *counts)
{
        const struct value *item = one.list->items;
        struct value end = item[2], before = item[3];

        if (end.kind == VALUE_NONE && r)
                counts->refused++;
        else if (end.kind == VALUE_NONE)
                counts->shown++;
        else if (!r && ends_as(ours->text, ours->bytes, end, before))
                counts->same++;
        else if (!r &&
                 ends_as(ours->text, ours->bytes - blanks(ours->text, ours->bytes), end, before))
                counts->blanks++;
        else {
                counts->wrong++;
                print_message("# %.*s, %.*s: %s\n", (int)item[0].text->count, item[0].text->bytes,
                              (int)item[1].text->count, item[1].text->bytes, r ? why : ours->text);
        }
}

static void run(struct value one, struct value conversations, struct counts *counts)
{
        const struct value *item = one.list->items;
        struct conversation about = { .continue_final_message = true,
                                      .nonce = 0x0123456789abcdef,
                                      .bytes = 1u << 16 };
        struct rendered rendered = { 0 };
        struct chat *chat = open_chat_of(item[0]);
        struct value asked = value_map_find(conversations.map, item[1])->value;
        char why[512] = "";
        struct arena *arena;
        int r;

        if (chat_refusal(chat)) {
                counts->unknown++;
                chat_close(chat);
                return;
        }
        assert_int_equal(arena_new(4u << 20, &arena), 0);
        about.messages = member(asked, "messages");
        about.tools = member(asked, "tools");
        r = chat_render(chat, arena, &about, &rig_day, &rendered, why, sizeof(why));
        compare(one, r, &rendered, why, counts);
        rendered_free(&rendered);
        arena_free(arena);
        chat_close(chat);
}

static void the_prompt_ends_where_transformers_ends_it(void **state)
{
        struct counts counts = { 0 };
        struct value all, results;
        struct arena *arena;
        char path[1024];
        size_t bytes;
        char *text;

        (void)state;
        snprintf(path, sizeof(path), "%s/tests/golden/continued.json", getenv("SOURCES"));
        text = rig_read(path, &bytes);
        assert_int_equal(arena_new(64u << 20, &arena), 0);
        rig_values(arena, text, bytes, &all);
        free(text);
        results = member(all, "results");
        for (uint32_t i = 0; i < results.list->count; i++)
                run(results.list->items[i], member(all, "conversations"), &counts);
        arena_free(arena);
        print_message("# %u same, %u refused by both, %u with blanks that transformers trims, %u "
                      "that only transformers refuses, %u of templates that we do not open\n",
                      counts.same, counts.refused, counts.blanks, counts.shown, counts.unknown);
        assert_int_equal(counts.wrong, 0);
        assert_int_equal(counts.same, 773);
        assert_int_equal(counts.refused, 49);
        assert_int_equal(counts.blanks, 95);
        assert_int_equal(counts.shown, 12);
        assert_int_equal(counts.unknown, 10);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_prompt_ends_where_transformers_ends_it),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("1..0 # SKIP SAMOVAR_DATA is not set");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
