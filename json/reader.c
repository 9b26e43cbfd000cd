/*
 * Open containers are a stack of levels, and `expected` says which token may come next, so nothing
 * recurses.
 *
 * The text is walked twice.  The first walk checks everything, and counts nodes and the bytes of
 * their strings.  The second writes both into memory of exactly that size.  All output goes through
 * put() and node_add(), which only count while p->json is NULL.  So both walks run the same code,
 * and the second needs no checks of its own.
 */
#include "json/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/shown.h"
#include "json/utf8.h"

enum json_expected {
        EXPECT_VALUE,
        EXPECT_FIRST, /* a value or a key, or the end of the container just opened */
        EXPECT_KEY,
        EXPECT_MORE, /* a comma, or the end of the open container */
        EXPECT_NOTHING,
};

struct json_level {
        uint32_t node, last; /* last: the newest child, or JSON_NONE */
        char end;
};

struct json_parser {
        const char *text;
        size_t bytes, at;
        struct json_document *json; /* NULL in the first pass, which only counts */
        uint32_t node_count, nodes_max, string_bytes;
        uint32_t key; /* key of the next value; at first JSON_NONE */
        enum json_expected expected;
        struct json_level levels[JSON_DEPTH_MAX];
        unsigned depth;
        bool python; /* Python's words for numbers are allowed */
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 4, 5))) static int say(char *why, size_t why_bytes, int r,
                                                     const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(why, why_bytes, format, args);
        va_end(args);
        return r;
}

/* -EINVAL; written literally at the end, so that a compiler sees that it is not 0. */
#define refuse(p, ...) (fault((p), __VA_ARGS__), -EINVAL)

__attribute__((format(printf, 2, 3))) static void fault(const struct json_parser *p,
                                                        const char *format, ...)
{
        int n = snprintf(p->why, p->why_bytes, "byte %zu: ", p->at);
        va_list args;

        if ((size_t)n < p->why_bytes) {
                va_start(args, format);
                vsnprintf(p->why + n, p->why_bytes - (size_t)n, format, args);
                va_end(args);
        }
}

static int peek(const struct json_parser *p)
{
        return p->at < p->bytes ? (unsigned char)p->text[p->at] : -1;
}

static bool is_digit(int c)
{
        return c >= '0' && c <= '9';
}

static void skip_blanks(struct json_parser *p)
{
        while (p->at < p->bytes && p->text[p->at] && strchr(" \t\n\r", p->text[p->at]))
                p->at++;
}

static void put(struct json_parser *p, const void *bytes, size_t count)
{
        if (p->json) {
                assert(count <= p->json->string_bytes - p->string_bytes);
                memcpy(p->json->strings + p->string_bytes, bytes, count);
        }
        p->string_bytes += (uint32_t)count;
}

/* Reserves space for the length, which is not known yet. */
static uint32_t put_start(struct json_parser *p)
{
        uint32_t start = p->string_bytes;

        put(p, &(uint32_t){ 0 }, sizeof(uint32_t));
        return start;
}

static void put_end(struct json_parser *p, uint32_t start)
{
        uint32_t count = p->string_bytes - start - (uint32_t)sizeof(count);

        if (p->json)
                memcpy(p->json->strings + start, &count, sizeof(count));
        put(p, "", 1);
}

static void put_point(struct json_parser *p, uint32_t point)
{
        static const uint8_t first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
        unsigned n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        char c[4];

        for (unsigned i = n; i-- > 1; point >>= 6)
                c[i] = (char)(0x80 | (point & 0x3f));
        c[0] = (char)(first[n] | point);
        put(p, c, n);
}

static int take_hex(struct json_parser *p, uint32_t *ret_unit)
{
        uint32_t unit = 0;

        for (unsigned i = 0; i < 4; i++, p->at++) {
                int c = peek(p);

                if (is_digit(c))
                        unit = unit << 4 | (uint32_t)(c - '0');
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        unit = unit << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
                else
                        return refuse(p, "\\u without four hexadecimal digits");
        }
        *ret_unit = unit;
        return 0;
}

/* After "\u": one UTF-16 unit, or the two of a surrogate pair. */
static int take_point(struct json_parser *p)
{
        uint32_t point, low;
        int r = take_hex(p, &point);

        if (r)
                return r;
        if (point >= 0xdc00 && point < 0xe000)
                return refuse(p, "the second half of a surrogate pair without the first");
        if (point >= 0xd800 && point < 0xdc00) {
                if (p->bytes - p->at < 2 || memcmp(p->text + p->at, "\\u", 2))
                        return refuse(p, "the first half of a surrogate pair without the second");
                p->at += 2;
                if ((r = take_hex(p, &low)))
                        return r;
                if (low < 0xdc00 || low >= 0xe000)
                        return refuse(p, "the first half of a surrogate pair without the second");
                point = 0x10000 + ((point & 0x3ff) << 10 | (low & 0x3ff));
        }
        put_point(p, point);
        return 0;
}

static int take_escape(struct json_parser *p)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        int c;
        const char *found;

        p->at++;
        c = peek(p);
        if (c == 'u') {
                p->at++;
                return take_point(p);
        }
        found = c > 0 ? strchr(from, c) : NULL;
        if (!found)
                return refuse(p, "an unknown escape in a string");
        put(p, &to[found - from], 1);
        p->at++;
        return 0;
}

static bool is_plain(int c)
{
        return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Starts at the opening quote and ends after the closing quote. */
static int take_string(struct json_parser *p, uint32_t *ret_start)
{
        uint32_t start = put_start(p);
        size_t from;
        int c, n, r;

        for (p->at++; (c = peek(p)) != '"';) {
                from = p->at;
                if (c < 0)
                        return refuse(p, "the text ends inside a string");
                if (c < 0x20)
                        return refuse(p, "a control character in a string");
                if (c == '\\') {
                        if ((r = take_escape(p)))
                                return r;
                        continue;
                }
                if (c >= 0x80) {
                        n = utf8_character(p->text + from, p->bytes - from);
                        if (n <= 0)
                                return refuse(p, "a string is not valid UTF-8");
                        p->at += (size_t)n;
                }
                while (is_plain(peek(p)))
                        p->at++;
                put(p, p->text + from, p->at - from);
        }
        p->at++;
        put_end(p, start);
        *ret_start = start;
        return 0;
}

static int take_digits(struct json_parser *p)
{
        if (!is_digit(peek(p)))
                return refuse(p, "a digit is missing in a number");
        while (is_digit(peek(p)))
                p->at++;
        return 0;
}

/* Numbers are kept as text: the caller decides how to convert them. */
static int take_number(struct json_parser *p, uint32_t *ret_start)
{
        uint32_t start = put_start(p);
        size_t from = p->at;
        int r = 0;

        if (peek(p) == '-')
                p->at++;
        if (peek(p) == '0')
                p->at++;
        else
                r = take_digits(p);
        if (!r && peek(p) == '.') {
                p->at++;
                r = take_digits(p);
        }
        if (!r && (peek(p) == 'e' || peek(p) == 'E')) {
                p->at++;
                if (peek(p) == '+' || peek(p) == '-')
                        p->at++;
                r = take_digits(p);
        }
        if (r)
                return r;
        put(p, p->text + from, p->at - from);
        put_end(p, start);
        *ret_start = start;
        return 0;
}

static bool take_word(struct json_parser *p, const char *word)
{
        size_t n = strlen(word);

        if (p->bytes - p->at < n || memcmp(p->text + p->at, word, n))
                return false;
        p->at += n;
        return true;
}

static bool take_python_number(struct json_parser *p, uint32_t *ret_start)
{
        static const char *const words[] = { "NaN", "Infinity", "-Infinity" };

        for (size_t i = 0; p->python && i < sizeof(words) / sizeof(*words); i++)
                if (take_word(p, words[i])) {
                        *ret_start = put_start(p);
                        put(p, words[i], strlen(words[i]));
                        put_end(p, *ret_start);
                        return true;
                }
        return false;
}

static int node_add(struct json_parser *p, enum json_kind kind, uint32_t value)
{
        uint32_t node = p->node_count;

        if (node == p->nodes_max)
                return refuse(p, "more than %u values", p->nodes_max);
        p->node_count++;
        if (p->json)
                p->json->nodes[node] =
                        (struct json_node){ JSON_NONE, p->key, value, (uint8_t)kind };
        p->key = JSON_NONE;
        if (p->depth) {
                struct json_level *l = &p->levels[p->depth - 1];

                if (p->json && l->last != JSON_NONE)
                        p->json->nodes[l->last].next = node;
                if (p->json)
                        p->json->nodes[l->node].value++;
                l->last = node;
        }
        p->expected = p->depth ? EXPECT_MORE : EXPECT_NOTHING;
        return 0;
}

static int open_level(struct json_parser *p, char end)
{
        int r;

        if (p->depth == JSON_DEPTH_MAX)
                return refuse(p, "nested deeper than %u levels", JSON_DEPTH_MAX);
        if ((r = node_add(p, end == ']' ? JSON_ARRAY : JSON_OBJECT, 0)))
                return r;
        p->levels[p->depth++] = (struct json_level){ p->node_count - 1, JSON_NONE, end };
        p->expected = EXPECT_FIRST;
        p->at++;
        return 0;
}

static int take_value(struct json_parser *p)
{
        int c = peek(p), r;
        uint32_t start;

        if (c == '{' || c == '[')
                return open_level(p, c == '{' ? '}' : ']');
        if (take_python_number(p, &start))
                return node_add(p, JSON_NUMBER, start);
        if (c == '"' || c == '-' || is_digit(c)) {
                r = c == '"' ? take_string(p, &start) : take_number(p, &start);
                return r ? r : node_add(p, c == '"' ? JSON_STRING : JSON_NUMBER, start);
        }
        if (take_word(p, "null"))
                return node_add(p, JSON_NULL, 0);
        if (take_word(p, "true"))
                return node_add(p, JSON_BOOL, 1);
        if (take_word(p, "false"))
                return node_add(p, JSON_BOOL, 0);
        return refuse(p, "expected a value");
}

static int take_key(struct json_parser *p)
{
        int r;

        if (peek(p) != '"')
                return refuse(p, "expected a key");
        if ((r = take_string(p, &p->key)))
                return r;
        skip_blanks(p);
        if (peek(p) != ':')
                return refuse(p, "expected ':' after a key");
        p->at++;
        p->expected = EXPECT_VALUE;
        return 0;
}

static int take_first_or_more(struct json_parser *p)
{
        char end = p->levels[p->depth - 1].end;

        if (peek(p) == end) {
                p->at++;
                p->depth--;
                p->expected = p->depth ? EXPECT_MORE : EXPECT_NOTHING;
                return 0;
        }
        if (p->expected == EXPECT_MORE) {
                if (peek(p) != ',')
                        return refuse(p, "expected ',' or '%c' after a value", end);
                p->at++;
        }
        p->expected = end == ']' ? EXPECT_VALUE : EXPECT_KEY;
        return 0;
}

/* 0, or -EINVAL and *p->why.  On success node_count and string_bytes have the totals. */
static int walk(struct json_parser *p)
{
        int r = 0;

        for (skip_blanks(p); !r && p->expected != EXPECT_NOTHING; skip_blanks(p)) {
                if (p->expected == EXPECT_VALUE)
                        r = take_value(p);
                else if (p->expected == EXPECT_KEY)
                        r = take_key(p);
                else
                        r = take_first_or_more(p);
        }
        if (!r && p->at < p->bytes)
                return refuse(p, "unexpected text after the value");
        return r;
}

/* ---- duplicate keys ---- */

/* Compares two texts, each with its length in front; any consistent order will do. */
static int text_compare(const void *a, const void *b)
{
        const char *s = *(const char *const *)a, *t = *(const char *const *)b;
        uint32_t m, n;

        memcpy(&m, s, sizeof(m));
        memcpy(&n, t, sizeof(n));
        return m != n ? (m < n ? -1 : 1) : memcmp(s + sizeof(m), t + sizeof(n), n);
}

static bool is_named(const struct json_document *json, uint32_t node, const char *name)
{
        const char *key;
        size_t bytes;

        if (!name || json->nodes[node].key == JSON_NONE)
                return false;
        key = json_key(json, node, &bytes);
        return bytes == strlen(name) && !memcmp(key, name, bytes);
}

/* Sorts each object's keys in `keys`, so that equal keys are neighbours. */
static int check_keys(const struct json_document *json, const char *repeating, const char **keys,
                      char *why, size_t why_bytes)
{
        for (uint32_t i = 0; i < json->node_count; i++) {
                uint32_t n = 0;

                if (json->nodes[i].kind != JSON_OBJECT || is_named(json, i, repeating))
                        continue;
                for (uint32_t c = json_first(json, i); c != JSON_NONE; c = json_next(json, c))
                        keys[n++] = json->strings + json->nodes[c].key;
                qsort(keys, n, sizeof(*keys), text_compare);
                for (uint32_t k = 1; k < n; k++)
                        if (!text_compare(&keys[k - 1], &keys[k]))
                                return say(why, why_bytes, -EINVAL, "duplicate key '%s'",
                                           shown(keys[k] + sizeof(uint32_t)).text);
        }
        return 0;
}

static int check_objects(const struct json_document *json, const char *repeating, char *why,
                         size_t why_bytes)
{
        uint32_t most = 0;
        const char **keys;
        int r;

        for (uint32_t i = 0; i < json->node_count; i++)
                if (json->nodes[i].kind == JSON_OBJECT && json->nodes[i].value > most)
                        most = json->nodes[i].value;
        keys = calloc((size_t)most + 1, sizeof(*keys));
        if (!keys)
                return say(why, why_bytes, -ENOMEM, "out of memory for the keys of a JSON object");
        r = check_keys(json, repeating, keys, why, why_bytes);
        free(keys);
        return r;
}

static int parse(const struct json_parser *start, const char *repeating,
                 struct json_document **ret_json)
{
        struct json_parser p = *start;
        struct json_document *json;
        int r;

        if (p.bytes > JSON_BYTES_MAX)
                return say(p.why, p.why_bytes, -EINVAL, "the text has %zu bytes, the limit is %lu",
                           p.bytes, JSON_BYTES_MAX);
        if ((r = walk(&p)))
                return r;
        json = json_new(p.node_count, p.string_bytes);
        if (!json)
                return say(p.why, p.why_bytes, -ENOMEM,
                           "out of memory for the values of the JSON text");
        p = *start;
        p.json = json;
        r = walk(&p);
        assert(!r && p.node_count == json->node_count && p.string_bytes == json->string_bytes);
        if ((r = check_objects(json, repeating, p.why, p.why_bytes))) {
                json_free(json);
                return r;
        }
        *ret_json = json;
        return 0;
}

static struct json_parser parser_of(const char *text, size_t bytes, uint32_t nodes_max, char *why,
                                    size_t why_bytes)
{
        return (struct json_parser){
                .text = text,
                .bytes = bytes,
                .nodes_max = nodes_max,
                .key = JSON_NONE,
                .why = why,
                .why_bytes = why_bytes,
        };
}

int json_parse_repeating(const char *text, size_t bytes, const char *name, uint32_t nodes_max,
                         struct json_document **ret_json, char *why, size_t why_bytes)
{
        const struct json_parser start = parser_of(text, bytes, nodes_max, why, why_bytes);

        return parse(&start, name, ret_json);
}

int json_parse_python(const char *text, size_t bytes, uint32_t nodes_max,
                      struct json_document **ret_json, char *why, size_t why_bytes)
{
        struct json_parser start = parser_of(text, bytes, nodes_max, why, why_bytes);

        start.python = true;
        return parse(&start, NULL, ret_json);
}

int json_parse(const char *text, size_t bytes, uint32_t nodes_max, struct json_document **ret_json,
               char *why, size_t why_bytes)
{
        return json_parse_repeating(text, bytes, NULL, nodes_max, ret_json, why, why_bytes);
}
