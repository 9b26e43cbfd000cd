/*
 * Makes the conversation that ask and template send: a system and a user message and the beginning
 * of the answer, or a JSON file.
 *
 * The file has an array of messages, or an object with `messages` and, as needed, `tools`,
 * `template_vars`, `add_generation_prompt` and `continue_final_message`.
 * It is converted to msgpack, value by value, in one pass and without a tree.  The number of
 * elements of an array is known only when the array ends; its place is reserved at the beginning.
 * The daemon checks what the values mean.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  (SMV_NESTING_MAX - 1) /* the frame itself is one more level, a map */
#define NUMBER_MAX 64u
#define ENDS       "ends too early"

struct level {
        size_t head; /* the offset of its count, which is set at the end */
        uint32_t count;
        char close;
};

struct reader {
        const char *text, *at, *end;
        struct bytes *to;
        const char *wrong; /* the first fault */
        struct level levels[DEPTH_MAX];
        unsigned depth;
};

static bool fail(struct reader *rd, const char *wrong)
{
        if (!rd->wrong)
                rd->wrong = wrong;
        return false;
}

static bool add(struct reader *rd, const void *bytes, size_t count)
{
        return !bytes_add(rd->to, bytes, count) || fail(rd, "needs more memory than there is");
}

static bool add_word(struct reader *rd, unsigned type, uint64_t word, unsigned bytes)
{
        unsigned char out[9] = { (unsigned char)type };

        for (unsigned i = 0; i < bytes; i++)
                out[1 + i] = (unsigned char)(word >> 8 * (bytes - 1 - i));
        return add(rd, out, 1 + bytes);
}

static void set_word(struct reader *rd, size_t at, size_t word)
{
        for (unsigned i = 0; i < 4; i++)
                rd->to->at[at + i] = (char)(word >> 8 * (3 - i));
}

/* Skips blanks; returns the next character.  At the end 0, which no value begins with. */
static char peek(struct reader *rd)
{
        while (rd->at < rd->end && strchr(" \t\r\n", *rd->at) && *rd->at)
                rd->at++;
        return rd->at < rd->end ? *rd->at : '\0';
}

static bool expect(struct reader *rd, char wanted, const char *wrong)
{
        if (peek(rd) != wanted)
                return fail(rd, rd->at == rd->end ? ENDS : wrong);
        rd->at++;
        return true;
}

/* ---- texts ---- */

static bool hex4(struct reader *rd, uint32_t *ret_unit)
{
        uint32_t unit = 0;

        for (int i = 0; i < 4; i++) {
                static const char digits[] = "0123456789abcdef";
                const char *digit = rd->at < rd->end ? memchr(digits, *rd->at | ' ', 16) : NULL;

                if (!digit || *rd->at < '0')
                        return fail(rd, "has a \\u without four digits");
                unit = unit << 4 | (uint32_t)(digit - digits);
                rd->at++;
        }
        *ret_unit = unit;
        return true;
}

static bool add_point(struct reader *rd, uint32_t p)
{
        unsigned char out[4];
        unsigned n = p < 0x80 ? 1 : p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;

        for (unsigned i = n; i-- > 1; p >>= 6)
                out[i] = 0x80 | (p & 0x3f);
        out[0] = (unsigned char)(n == 1 ? p : (0xf00u >> n & 0xf0) | p);
        return add(rd, out, n);
}

/* After \u: one UTF-16 unit, or a surrogate pair. */
static bool unicode_escape(struct reader *rd)
{
        uint32_t high, low;

        if (!hex4(rd, &high))
                return false;
        if (high < 0xd800 || high > 0xdfff)
                return add_point(rd, high);
        if (high > 0xdbff || rd->end - rd->at < 2 || rd->at[0] != '\\' || rd->at[1] != 'u')
                return fail(rd, "has half of a surrogate pair");
        rd->at += 2;
        if (!hex4(rd, &low))
                return false;
        if (low < 0xdc00 || low > 0xdfff)
                return fail(rd, "has half of a surrogate pair");
        return add_point(rd, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
}

static bool escape(struct reader *rd)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *found;

        if (rd->at == rd->end)
                return fail(rd, "ends within a text");
        if (*rd->at == 'u') {
                rd->at++;
                return unicode_escape(rd);
        }
        found = memchr(from, *rd->at, sizeof(from) - 1);
        if (!found)
                return fail(rd, "has an escape that JSON does not know");
        rd->at++;
        return add(rd, &to[found - from], 1);
}

static bool read_text(struct reader *rd)
{
        size_t head = rd->to->count;

        if (!expect(rd, '"', "has something else where a text must be") ||
            !add_word(rd, 0xdb, 0, 4))
                return false;
        while (rd->at < rd->end && *rd->at != '"') {
                const char *from = rd->at;

                if ((unsigned char)*from < ' ')
                        return fail(rd, "has a control character in a text");
                rd->at++;
                if (*from == '\\' ? !escape(rd) : !add(rd, from, 1))
                        return false;
        }
        if (rd->at == rd->end)
                return fail(rd, "ends within a text");
        rd->at++;
        set_word(rd, head + 1, rd->to->count - head - 5);
        return true;
}

/* ---- other scalars ---- */

static bool read_number(struct reader *rd)
{
        size_t left = (size_t)(rd->end - rd->at), bytes = 0;
        char text[NUMBER_MAX + 1], *end;
        uint64_t word;
        double real;

        while (bytes < left && bytes < NUMBER_MAX && strchr("+-.0123456789eE", rd->at[bytes]) &&
               rd->at[bytes])
                bytes++;
        if (!left)
                return fail(rd, ENDS);
        memcpy(text, rd->at, bytes);
        text[bytes] = '\0';
        rd->at += bytes;
        errno = 0;
        if (bytes && !text[strcspn(text, ".eE")]) {
                word = *text == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
                return (!*end && !errno) ? add_word(rd, *text == '-' ? 0xd3 : 0xcf, word, 8)
                                         : fail(rd, "has an integer that does not fit 64 bits");
        }
        real = strtod(text, &end);
        if (!bytes || *end || errno)
                return fail(rd, "has something that is not a JSON value");
        memcpy(&word, &real, sizeof(word));
        return add_word(rd, 0xcb, word, 8);
}

static bool read_word(struct reader *rd)
{
        static const struct {
                const char *word;
                unsigned char type;
        } words[] = { { "null", 0xc0 }, { "false", 0xc2 }, { "true", 0xc3 } };

        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
                size_t bytes = strlen(words[i].word);

                if ((size_t)(rd->end - rd->at) >= bytes && !memcmp(rd->at, words[i].word, bytes)) {
                        rd->at += bytes;
                        return add(rd, &words[i].type, 1);
                }
        }
        return read_number(rd);
}

/* ---- arrays and objects ---- */

static bool open_level(struct reader *rd, char open)
{
        if (rd->depth == DEPTH_MAX)
                return fail(rd, "is nested too deep");
        rd->at++;
        rd->levels[rd->depth++] =
                (struct level){ .head = rd->to->count + 1, .close = open == '{' ? '}' : ']' };
        return add_word(rd, open == '{' ? 0xdf : 0xdd, 0, 4);
}

/* Closes all arrays and objects that end here.  False: another one is still open. */
static bool close_levels(struct reader *rd)
{
        while (rd->depth && peek(rd) == rd->levels[rd->depth - 1].close) {
                struct level *level = &rd->levels[--rd->depth];

                rd->at++;
                set_word(rd, level->head, level->count);
        }
        return !rd->depth;
}

/* Reads up to the next value of the open array or object: a comma, and in an object the key. */
static bool next_member(struct reader *rd)
{
        struct level *level = &rd->levels[rd->depth - 1];

        if (level->count++ && !expect(rd, ',', "lacks a comma, or a bracket"))
                return false;
        return level->close == ']' || (read_text(rd) && expect(rd, ':', "lacks a colon"));
}

static bool read_value(struct reader *rd)
{
        do {
                char c;

                if (rd->depth && !next_member(rd))
                        return false;
                c = peek(rd);
                if (c == '{' || c == '[' ? !open_level(rd, c)
                    : c == '"'           ? !read_text(rd)
                                         : !read_word(rd))
                        return false;
        } while (!close_levels(rd));
        return true;
}

/* ---- the file ---- */

/* The members that the outermost object may have. */
enum { MESSAGES, TOOLS, VARS, ADD_PROMPT, CONTINUE, MEMBER_N };

/* Where the value of a member begins and ends in the msgpack; an end of 0: it is not there. */
struct member {
        size_t begin, end;
};

/* Reads a member of the outermost object. */
static bool read_member(struct reader *rd, struct member members[MEMBER_N])
{
        static const char *const names[MEMBER_N] = {
                [MESSAGES] = "messages",
                [TOOLS] = "tools",
                [VARS] = "template_vars",
                [ADD_PROMPT] = "add_generation_prompt",
                [CONTINUE] = "continue_final_message",
        };
        size_t key = rd->to->count, i = 0, bytes;

        if (!read_text(rd) || !expect(rd, ':', "lacks a colon"))
                return false;
        bytes = rd->to->count - key - 5;
        while (i < MEMBER_N &&
               (bytes != strlen(names[i]) || memcmp(rd->to->at + key + 5, names[i], bytes)))
                i++;
        if (i == MEMBER_N || members[i].end)
                return fail(rd, "has more than messages, tools, template_vars, "
                                "add_generation_prompt and continue_final_message, or one of them "
                                "twice");
        members[i].begin = rd->to->count;
        if (!read_value(rd))
                return false;
        members[i].end = rd->to->count;
        return true;
}

static struct smv_packed packed_of(const struct reader *rd, const struct member *member)
{
        return member->end ? (struct smv_packed){ rd->to->at + member->begin,
                                                  member->end - member->begin }
                           : (struct smv_packed){ 0 };
}

/* Reads a member that is true or false; it stays as it is if the member is not there. */
static bool read_switch(struct reader *rd, const struct member *member, int *to)
{
        unsigned char byte = member->end ? (unsigned char)rd->to->at[member->begin] : 0;

        if (!member->end)
                return true;
        if (byte != 0xc2 && byte != 0xc3)
                return fail(rd, "has an add_generation_prompt or a continue_final_message that is "
                                "neither true nor false");
        *to = byte == 0xc3;
        return true;
}

static bool read_document(struct reader *rd, struct cli *cli)
{
        struct member members[MEMBER_N] = { 0 };
        bool more = peek(rd) == '{';

        if (!more) {
                if (!read_value(rd))
                        return false;
                members[MESSAGES].end = rd->to->count;
        }
        for (char before = '{'; more; before = ',')
                if (!expect(rd, before, "lacks a comma, or a bracket") || !read_member(rd, members))
                        return false;
                else if (peek(rd) == '}')
                        more = !expect(rd, '}', "");
        if (peek(rd) || rd->at != rd->end)
                return fail(rd, "has something after its end");
        if (!members[MESSAGES].end)
                return fail(rd, "has no messages");
        cli->generate.packed_messages = packed_of(rd, &members[MESSAGES]);
        cli->generate.packed_tools = packed_of(rd, &members[TOOLS]);
        cli->generate.packed_vars = packed_of(rd, &members[VARS]);
        if (members[ADD_PROMPT].end)
                cli->generate.set |= SMV_SET_ADD_GENERATION_PROMPT;
        return read_switch(rd, &members[ADD_PROMPT], &cli->generate.add_generation_prompt) &&
               read_switch(rd, &members[CONTINUE], &cli->generate.continue_final_message);
}

/* --tools: the whole file is a list. */
static bool read_tools(struct reader *rd, struct cli *cli)
{
        size_t begin = rd->to->count;

        if (peek(rd) != '[')
                return fail(rd, "is not a list of tools");
        if (!read_value(rd))
                return false;
        if (peek(rd) || rd->at != rd->end)
                return fail(rd, "has something after its end");
        cli->generate.packed_tools =
                (struct smv_packed){ rd->to->at + begin, rd->to->count - begin };
        return true;
}

int cli_pack_json(const char *text, size_t bytes, struct bytes *to, const char **ret_wrong)
{
        struct reader rd = { .text = text, .at = text, .end = text + bytes, .to = to };

        if (read_value(&rd) && (peek(&rd) || rd.at != rd.end))
                fail(&rd, "has something after its end");
        *ret_wrong = rd.wrong;
        return rd.wrong ? CLI_FAILED : 0;
}

static int read_file(struct cli *cli, const char *path,
                     bool (*read_it)(struct reader *rd, struct cli *cli))
{
        struct bytes text = { 0 };
        struct reader rd = { .to = &cli->packed };
        int r = input_file(path, &text);

        if (r) {
                bytes_deinit(&text);
                return r;
        }
        rd.text = rd.at = text.at;
        rd.end = text.at + text.count;
        if (!read_it(&rd, cli)) {
                say("%s: it %s, at byte %zu", path, rd.wrong, (size_t)(rd.at - rd.text));
                r = CLI_FAILED;
        }
        bytes_deinit(&text);
        return r;
}

int cli_conversation(struct cli *cli)
{
        struct smv_message *message = cli->own_messages;

        if (cli->messages)
                return read_file(cli, cli->messages, read_document);
        if (cli->tools && read_file(cli, cli->tools, read_tools))
                return CLI_FAILED;
        if (cli->system)
                *message++ = (struct smv_message){ "system", cli->system, 0 };
        *message++ = (struct smv_message){ "user", cli->input.at, cli->input.count };
        if (cli->answer)
                *message++ = (struct smv_message){ "assistant", cli->answer, 0 };
        cli->generate.continue_final_message = cli->answer != NULL;
        cli->generate.messages = cli->own_messages;
        cli->generate.message_count = (size_t)(message - cli->own_messages);
        return 0;
}
