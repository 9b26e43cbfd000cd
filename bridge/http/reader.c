#include "bridge/http/reader.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "bridge/http/authority.h"
#include "json/utf8.h"

/* Where the reader is in a request. */
enum state {
        BEGIN, /* no byte of a request line has come */
        LINE,
        FIELDS,
        HEAD_DONE, /* HEAD was reported */
        BODY,
        CHUNK_SIZE,
        CHUNK_EXTENSION,
        CHUNK_SIZE_LF,
        CHUNK_DATA,
        CHUNK_CR,
        CHUNK_LF,
        TRAILER_BEGIN, /* a trailer, or the CRLF that ends the request */
        TRAILER_NAME,
        TRAILER_VALUE,
        TRAILER_LF,
        LAST_LF,
        DONE, /* END was reported */
        BAD,
};

/* Sixteen hexadecimal digits are a size of 64 bits. */
#define CHUNK_DIGITS_MAX 16u
/* A number with this many decimal digits is below 2^64. */
#define LENGTH_DIGITS_MAX 19u
#define TLS_HANDSHAKE     0x16

static const struct {
        const char *name;
        enum http_method method;
} methods[] = {
        { "GET", HTTP_GET },         { "HEAD", HTTP_HEAD },   { "POST", HTTP_POST },
        { "PUT", HTTP_PUT },         { "PATCH", HTTP_PATCH }, { "DELETE", HTTP_DELETE },
        { "OPTIONS", HTTP_OPTIONS },
};

/* Of these a request has at most one: a second one could be the one that a proxy has looked at. */
static const char *const single[] = { "host",          "content-length", "transfer-encoding",
                                      "content-type",  "expect",         "origin",
                                      "authorization", "x-api-key" };

#define bad(reader, ...) (http_problem_set(&(reader)->problem, __VA_ARGS__), HTTP_READER_BAD)

void http_reader_init(struct http_reader *reader, uint64_t body_limit)
{
        *reader = (struct http_reader){ .body_limit = body_limit };
}

void http_reader_reset(struct http_reader *reader, uint64_t body_limit)
{
        bytes_deinit(&reader->head);
        bytes_deinit(&reader->query);
        http_reader_init(reader, body_limit);
}

bool http_reader_has_begun(const struct http_reader *reader)
{
        return reader->state != BEGIN;
}

bool http_reader_has_head(const struct http_reader *reader)
{
        return reader->has_head;
}

bool http_reader_has_body(const struct http_reader *reader)
{
        return reader->chunked || reader->left;
}

/* Characters of a token: of methods and of the names of headers. */
static bool is_token_byte(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (!is_token_byte(text[i]))
                        return false;
        return bytes > 0;
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/*
 * Decodes %XX in place, of [from, to), and ends the result with a NUL; a query has '+' for a blank.
 * Returns its length, or -1: a '%' without two digits, a byte that is no UTF-8, or a control
 * character.  The result then ends before that.
 */
static ssize_t decode(char *text, size_t from, size_t to, bool is_query)
{
        size_t count = 0;
        char *out = text + from;
        bool whole = true;

        for (size_t i = from; i < to; i++) {
                char c = text[i];

                if (c == '%') {
                        int high = i + 2 < to ? hex_digit(text[i + 1]) : -1;
                        int low = i + 2 < to ? hex_digit(text[i + 2]) : -1;

                        if (high < 0 || low < 0) {
                                whole = false;
                                break;
                        }
                        c = (char)(high << 4 | low);
                        i += 2;
                } else if (c == '+' && is_query) {
                        c = ' ';
                }
                out[count++] = c;
        }
        for (size_t i = 0, length; i < count; i += length) {
                int32_t point = utf8_next(out + i, count - i, &length);

                if (point <= 0 || utf8_is_control(point) || (!is_query && point < ' ')) {
                        count = i;
                        whole = false;
                }
        }
        out[count] = '\0';
        return whole ? (ssize_t)count : -1;
}

/* "a=1&b" becomes "a\0" "1\0" "b\0" "\0".  As decode(), or -ENOMEM. */
static int decode_query(struct http_reader *reader, size_t from, size_t to)
{
        char *text = reader->head.at;

        while (from < to) {
                const char *and = memchr(text + from, '&', to - from);
                size_t pair_end = and? (size_t)(and-text) : to;
                const char *is = memchr(text + from, '=', pair_end - from);
                size_t name_end = is ? (size_t)(is - text) : pair_end;
                ssize_t name = decode(text, from, name_end, true);
                ssize_t value = is ? decode(text, name_end + 1, pair_end, true) : 0;

                if (name < 0 || value < 0)
                        return -1;
                if (bytes_add(&reader->query, text + from, (size_t)name + 1) ||
                    bytes_add(&reader->query, is ? is + 1 : "", (size_t)value + 1))
                        return -ENOMEM;
                from = pair_end + 1;
        }
        return 0;
}

/* A target is visible ASCII, and has no fragment: that is the client's own. */
static bool is_target(const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (text[i] <= ' ' || text[i] > '~' || text[i] == '#')
                        return false;
        return bytes > 0;
}

/* The length of "http://" or "https://" in front; 0: there is none. */
static size_t scheme_length(const char *text, size_t bytes)
{
        if (bytes >= 7 && !strncasecmp(text, "http://", 7))
                return 7;
        return bytes >= 8 && !strncasecmp(text, "https://", 8) ? 8 : 0;
}

/* The authority of an absolute target; *from moves behind it. */
static int read_authority(struct http_reader *reader, size_t *from, size_t to)
{
        const char *text = reader->head.at;
        size_t at = *from;

        reader->authority = (uint32_t)at;
        while (at < to && text[at] != '/' && text[at] != '?')
                at++;
        reader->authority_bytes = (uint32_t)(at - *from);
        *from = at;
        return reader->authority_bytes
                       ? HTTP_READER_MORE
                       : bad(reader, HTTP_BAD_REQUEST, "the request target names no host");
}

/*
 * The path and the query, [from, to).  An absolute target without a path means "/": that is written
 * over the method, which was read.
 */
static int read_path(struct http_reader *reader, size_t from, size_t to)
{
        char *text = reader->head.at;
        const char *query = memchr(text + from, '?', to - from);
        size_t end = query ? (size_t)(query - text) : to;
        int r;

        reader->path = from == end ? 0 : (uint32_t)from;
        reader->has_path = true;
        if (from == end) {
                memcpy(text, "/", 2);
        } else if (decode(text, from, end, false) < 0) {
                return bad(reader, HTTP_BAD_REQUEST,
                           "the path must be percent-encoded UTF-8 without control characters");
        }
        r = query ? decode_query(reader, end + 1, to) : 0;
        if (!r)
                return HTTP_READER_MORE;
        return r == -ENOMEM ? r
                            : bad(reader, HTTP_BAD_REQUEST,
                                  "the query must be percent-encoded UTF-8 without control "
                                  "characters");
}

static int read_target(struct http_reader *reader, size_t from, size_t to)
{
        char *text = reader->head.at;
        size_t scheme = scheme_length(text + from, to - from);

        if (!is_target(text + from, to - from))
                return bad(reader, HTTP_BAD_REQUEST,
                           "the request target has a character that must be percent-encoded");
        if (scheme) {
                from += scheme;
                if (read_authority(reader, &from, to) != HTTP_READER_MORE)
                        return HTTP_READER_BAD;
        } else if (text[from] == '*' && to - from == 1 && reader->method == HTTP_OPTIONS) {
                reader->path = (uint32_t)from;
                reader->has_path = true;
                text[to] = '\0';
                return HTTP_READER_MORE;
        } else if (text[from] != '/') {
                return bad(reader, HTTP_BAD_REQUEST,
                           "the request target must begin with '/' or http://");
        }
        return read_path(reader, from, to);
}

/* "HTTP/1.1" or "HTTP/1.0"; another version of the same form is a version that we do not speak. */
static int read_version(struct http_reader *reader, const char *text, size_t bytes)
{
        if (bytes != 8 || memcmp(text, "HTTP/", 5) || text[5] < '0' || text[5] > '9' ||
            text[6] != '.' || text[7] < '0' || text[7] > '9')
                return bad(reader, HTTP_BAD_REQUEST,
                           "the request line must be METHOD TARGET HTTP/1.1");
        if (text[5] != '1' || text[7] > '1')
                return bad(reader, HTTP_BAD_VERSION,
                           "HTTP/%c.%c is not spoken here, only HTTP/1.1 and HTTP/1.0", text[5],
                           text[7]);
        reader->minor = (uint32_t)(text[7] - '0');
        reader->keeps_alive = reader->minor > 0;
        return HTTP_READER_MORE;
}

static int read_method(struct http_reader *reader, const char *text, size_t bytes)
{
        if (!is_token(text, bytes))
                return bad(reader, HTTP_BAD_REQUEST, "the method is not a word");
        for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
                if (bytes == strlen(methods[i].name) && !memcmp(text, methods[i].name, bytes)) {
                        reader->method = methods[i].method;
                        return HTTP_READER_MORE;
                }
        }
        return bad(reader, HTTP_BAD_METHOD, "the method %.*s is not known here",
                   (int)(bytes < 20 ? bytes : 20), text);
}

/* METHOD SP TARGET SP VERSION, with exactly one blank each. */
static int read_request_line(struct http_reader *reader, size_t from, size_t to)
{
        const char *text = reader->head.at, *first = memchr(text + from, ' ', to - from);
        size_t target = first ? (size_t)(first - text) + 1 : to;
        const char *second = memchr(text + target, ' ', to - target);
        size_t version = second ? (size_t)(second - text) + 1 : to;
        int event;

        if (!first || !second)
                return bad(reader, HTTP_BAD_REQUEST,
                           "the request line must be METHOD TARGET HTTP/1.1");
        event = read_version(reader, text + version, to - version);
        if (event == HTTP_READER_MORE)
                event = read_method(reader, text + from, target - 1 - from);
        if (event == HTTP_READER_MORE)
                event = read_target(reader, target, version - 1);
        return event;
}

static bool is_value_byte(char c)
{
        return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

/*
 * NAME ':' value, with blanks around the value.  Checks the form, and gives where the name ends and
 * where the value lies.
 */
static int split_field(struct http_reader *reader, size_t from, size_t to, size_t *ret_colon,
                       size_t *ret_value, size_t *ret_end)
{
        const char *text = reader->head.at, *colon = memchr(text + from, ':', to - from);
        size_t value = colon ? (size_t)(colon - text) + 1 : to, end = to;

        if (text[from] == ' ' || text[from] == '\t')
                return bad(reader, HTTP_BAD_REQUEST,
                           "a header begins with a blank; folded lines are not allowed");
        if (!colon || !is_token(text + from, value - 1 - from))
                return bad(reader, HTTP_BAD_REQUEST,
                           "a header must be NAME: VALUE, without a blank before the colon");
        for (size_t i = value; i < to; i++)
                if (!is_value_byte(text[i]))
                        return bad(reader, HTTP_BAD_REQUEST,
                                   "a header has a control character in its value");
        while (value < end && (text[value] == ' ' || text[value] == '\t'))
                value++;
        while (end > value && (text[end - 1] == ' ' || text[end - 1] == '\t'))
                end--;
        *ret_colon = (size_t)(colon - text);
        *ret_value = value;
        *ret_end = end;
        return HTTP_READER_MORE;
}

static int read_field(struct http_reader *reader, size_t from, size_t to)
{
        size_t colon = 0, value = 0, end = 0;
        int event;

        if (reader->field_count == HTTP_FIELDS_MAX)
                return bad(reader, HTTP_HEADERS_TOO_LARGE, "there are more than %u headers",
                           HTTP_FIELDS_MAX);
        event = split_field(reader, from, to, &colon, &value, &end);
        if (event != HTTP_READER_MORE)
                return event;
        reader->head.at[colon] = reader->head.at[end] = '\0';
        reader->fields[reader->field_count++] =
                (struct http_field){ .name = (uint32_t)from, .value = (uint32_t)value };
        return HTTP_READER_MORE;
}

const char *http_reader_path(const struct http_reader *reader)
{
        return reader->has_path ? reader->head.at + reader->path : "";
}

bool http_reader_query(const struct http_reader *reader, const char *name, const char **ret_value)
{
        for (size_t at = 0; at < reader->query.count;) {
                const char *here = reader->query.at + at, *value = here + strlen(here) + 1;

                if (!strcmp(here, name)) {
                        *ret_value = value;
                        return true;
                }
                at += (size_t)(value - here) + strlen(value) + 1;
        }
        return false;
}

bool http_reader_field(const struct http_reader *reader, uint32_t i, const char **ret_name,
                       const char **ret_value)
{
        if (i >= reader->field_count)
                return false;
        *ret_name = reader->head.at + reader->fields[i].name;
        *ret_value = reader->head.at + reader->fields[i].value;
        return true;
}

const char *http_reader_header(const struct http_reader *reader, const char *name)
{
        for (uint32_t i = 0; i < reader->field_count; i++)
                if (!strcasecmp(reader->head.at + reader->fields[i].name, name))
                        return reader->head.at + reader->fields[i].value;
        return NULL;
}

const char *http_reader_host(const struct http_reader *reader, size_t *ret_bytes)
{
        const char *host = http_reader_header(reader, "host");

        if (reader->authority_bytes) {
                *ret_bytes = reader->authority_bytes;
                return reader->head.at + reader->authority;
        }
        if (host)
                *ret_bytes = strlen(host);
        return host;
}

static int check_single(struct http_reader *reader)
{
        for (size_t s = 0; s < sizeof(single) / sizeof(*single); s++) {
                uint32_t count = 0;

                for (uint32_t i = 0; i < reader->field_count; i++)
                        count += !strcasecmp(reader->head.at + reader->fields[i].name, single[s]);
                if (count > 1)
                        return bad(reader, HTTP_BAD_REQUEST, "there is more than one header %s",
                                   single[s]);
        }
        return HTTP_READER_MORE;
}

static int check_host(struct http_reader *reader)
{
        const char *host = http_reader_header(reader, "host");
        struct http_authority named = { 0 }, target;

        if (!host && reader->minor)
                return bad(reader, HTTP_BAD_REQUEST, "HTTP/1.1 needs a header Host");
        if (host && !http_authority_read(host, strlen(host), &named))
                return bad(reader, HTTP_BAD_REQUEST, "the header Host is not HOST or HOST:PORT");
        if (!reader->authority_bytes)
                return HTTP_READER_MORE;
        if (!http_authority_read(reader->head.at + reader->authority, reader->authority_bytes,
                                 &target))
                return bad(reader, HTTP_BAD_REQUEST,
                           "the request target has no HOST or HOST:PORT behind its scheme");
        if (host && !http_authority_is(&named, &target, 80))
                return bad(reader, HTTP_BAD_REQUEST,
                           "the request target and the header Host name different hosts");
        return HTTP_READER_MORE;
}

static bool read_length(const char *text, uint64_t *ret_length)
{
        size_t digits = strspn(text, "0123456789");

        *ret_length = 0;
        if (!digits || digits > LENGTH_DIGITS_MAX || text[digits])
                return false;
        for (; *text; text++)
                *ret_length = *ret_length * 10 + (uint64_t)(*text - '0');
        return true;
}

/* How the body is delimited: this is what decides where the next request begins. */
static int check_framing(struct http_reader *reader)
{
        const char *length = http_reader_header(reader, "content-length");
        const char *coding = http_reader_header(reader, "transfer-encoding");

        if (length && coding)
                return bad(reader, HTTP_BAD_REQUEST,
                           "there are both Content-Length and Transfer-Encoding");
        if (coding && !reader->minor)
                return bad(reader, HTTP_BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding");
        if (coding && strcasecmp(coding, "chunked"))
                return bad(reader, HTTP_BAD_REQUEST,
                           "the only Transfer-Encoding that is known here is chunked");
        if (length && !read_length(length, &reader->left))
                return bad(reader, HTTP_BAD_REQUEST, "Content-Length is not a number of bytes");
        reader->chunked = coding;
        return HTTP_READER_MORE;
}

static int check_expectation(struct http_reader *reader)
{
        const char *expect = http_reader_header(reader, "expect");

        if (!expect || !reader->minor)
                return HTTP_READER_MORE;
        if (strcasecmp(expect, "100-continue"))
                return bad(reader, HTTP_BAD_EXPECTATION,
                           "the only Expect that is known here is 100-continue");
        reader->expects_continue = true;
        return HTTP_READER_MORE;
}

/* Is this word in a list that is separated by commas? */
static bool lists(const char *list, const char *word)
{
        size_t bytes = strlen(word);

        while (*list) {
                size_t length;

                list += strspn(list, ", \t");
                length = strcspn(list, ", \t");
                if (length == bytes && !strncasecmp(list, word, bytes))
                        return true;
                list += length;
        }
        return false;
}

/* Any of several lines may say it; "close" wins. */
static void read_connection(struct http_reader *reader)
{
        bool close = false, keep = reader->keeps_alive;

        for (uint32_t i = 0; i < reader->field_count; i++) {
                const char *value = reader->head.at + reader->fields[i].value;

                if (strcasecmp(reader->head.at + reader->fields[i].name, "connection"))
                        continue;
                close = close || lists(value, "close");
                keep = keep || lists(value, "keep-alive");
        }
        reader->keeps_alive = keep && !close;
}

static int finish_head(struct http_reader *reader)
{
        static int (*const checks[])(struct http_reader *) = { check_single, check_host,
                                                               check_framing, check_expectation };

        for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
                int event = checks[i](reader);

                if (event != HTTP_READER_MORE)
                        return event;
        }
        read_connection(reader);
        reader->has_head = true;
        reader->state = HEAD_DONE;
        return HTTP_READER_HEAD;
}

static int skip_blank_line(struct http_reader *reader)
{
        reader->head.count = reader->line = 0;
        reader->state = BEGIN;
        if (++reader->blank_lines > HTTP_BLANK_LINES_MAX)
                return bad(reader, HTTP_BAD_REQUEST,
                           "there are more than %u blank lines before the request",
                           HTTP_BLANK_LINES_MAX);
        return HTTP_READER_MORE;
}

/* The head ends with a line feed: the line is whole. */
static int take_line(struct http_reader *reader)
{
        size_t from = reader->line, to = reader->head.count - 2;

        if (reader->head.count - from < 2 || reader->head.at[to] != '\r')
                return bad(reader, HTTP_BAD_REQUEST, "a line ends without a carriage return");
        reader->line = (uint32_t)reader->head.count;
        if (reader->state == FIELDS)
                return from == to ? finish_head(reader) : read_field(reader, from, to);
        if (from == to)
                return skip_blank_line(reader);
        reader->state = FIELDS;
        reader->fields_from = reader->line;
        return read_request_line(reader, from, to);
}

static int check_head_size(struct http_reader *reader)
{
        if (reader->state != FIELDS && reader->head.count > HTTP_LINE_MAX + 2)
                return bad(reader, HTTP_LINE_TOO_LONG, "the request line has more than %u bytes",
                           HTTP_LINE_MAX);
        if (reader->state == FIELDS && reader->head.count - reader->fields_from > HTTP_HEADERS_MAX)
                return bad(reader, HTTP_HEADERS_TOO_LARGE, "the headers have more than %u bytes",
                           HTTP_HEADERS_MAX);
        return HTTP_READER_MORE;
}

/* At most what the limits allow, so that the head never grows beyond them. */
static size_t head_share(const struct http_reader *reader, size_t count)
{
        size_t most = reader->state == FIELDS
                              ? HTTP_HEADERS_MAX + 1 - (reader->head.count - reader->fields_from)
                              : HTTP_LINE_MAX + 3 - reader->head.count;

        return count < most ? count : most;
}

/* Adds bytes up to the next line feed to the head; takes the line if it is whole. */
static int read_head(struct http_reader *reader, const char **at, size_t *count)
{
        const char *end;
        size_t used;

        if (reader->state == BEGIN && !is_token_byte(**at) && **at != '\r')
                return bad(reader, HTTP_BAD_REQUEST, "%s",
                           **at == TLS_HANDSHAKE
                                   ? "this is TLS, and this port speaks plain HTTP: use http://"
                                   : "a request begins with a method");
        if (reader->state == BEGIN)
                reader->state = LINE;
        used = head_share(reader, *count);
        end = memchr(*at, '\n', used);
        if (end)
                used = (size_t)(end - *at) + 1;
        if (bytes_add(&reader->head, *at, used))
                return -ENOMEM;
        *at += used;
        *count -= used;
        if (check_head_size(reader) != HTTP_READER_MORE)
                return HTTP_READER_BAD;
        if (!end)
                return HTTP_READER_MORE;
        return take_line(reader);
}

bool http_reader_body_fits(struct http_reader *reader)
{
        if (reader->count <= reader->body_limit &&
            reader->left <= reader->body_limit - reader->count)
                return true;
        http_problem_set(&reader->problem, HTTP_BODY_TOO_LARGE, "the body has more than %llu bytes",
                         (unsigned long long)reader->body_limit);
        return false;
}

static int begin_body(struct http_reader *reader)
{
        if (!http_reader_body_fits(reader))
                return HTTP_READER_BAD;
        reader->state = reader->chunked ? CHUNK_SIZE : reader->left ? BODY : DONE;
        return reader->state == DONE ? HTTP_READER_END : HTTP_READER_MORE;
}

static int read_body(struct http_reader *reader, const char **at, size_t *count,
                     const char **ret_body, size_t *ret_bytes)
{
        size_t used = *count < reader->left ? *count : (size_t)reader->left;

        if (!reader->left) {
                reader->state = DONE;
                return HTTP_READER_END;
        }
        *ret_body = *at;
        *ret_bytes = used;
        *at += used;
        *count -= used;
        reader->left -= used;
        reader->count += used;
        if (!reader->left && reader->state == CHUNK_DATA)
                reader->state = CHUNK_CR;
        return HTTP_READER_BODY;
}

/* Behind the line feed of the line with a chunk's size. */
static int begin_chunk(struct http_reader *reader)
{
        reader->digits = 0;
        if (!http_reader_body_fits(reader))
                return HTTP_READER_BAD;
        reader->state = reader->left ? CHUNK_DATA : TRAILER_BEGIN;
        return HTTP_READER_MORE;
}

static int read_chunk_size(struct http_reader *reader, char c)
{
        int digit = hex_digit(c);

        if (digit >= 0 && reader->digits < CHUNK_DIGITS_MAX) {
                reader->left = reader->left << 4 | (uint64_t)digit;
                reader->digits++;
                return HTTP_READER_MORE;
        }
        if (digit >= 0)
                return bad(reader, HTTP_BODY_TOO_LARGE, "a chunk's size has more than %u digits",
                           CHUNK_DIGITS_MAX);
        if (!reader->digits || (c != ';' && c != '\r'))
                return bad(reader, HTTP_BAD_REQUEST, "a chunk's size is not hexadecimal");
        reader->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
        return HTTP_READER_MORE;
}

static int read_extension(struct http_reader *reader, char c)
{
        if (++reader->extension_bytes > HTTP_EXTENSIONS_MAX)
                return bad(reader, HTTP_BAD_REQUEST,
                           "the extensions of chunks have more than %u bytes", HTTP_EXTENSIONS_MAX);
        if (c == '\r')
                reader->state = CHUNK_SIZE_LF;
        else if (!is_value_byte(c))
                return bad(reader, HTTP_BAD_REQUEST,
                           "an extension of a chunk has a control character");
        return HTTP_READER_MORE;
}

/* Only the begin of a name is kept: that is enough to tell it from those of framing. */
static int read_trailer_name(struct http_reader *reader, char c)
{
        if (reader->state == TRAILER_BEGIN)
                reader->trailer_name_bytes = 0;
        reader->state = TRAILER_NAME;
        if (reader->trailer_name_bytes < sizeof(reader->trailer_name) - 1)
                reader->trailer_name[reader->trailer_name_bytes++] = c;
        reader->trailer_name[reader->trailer_name_bytes] = '\0';
        return HTTP_READER_MORE;
}

static int end_trailer_name(struct http_reader *reader)
{
        reader->state = TRAILER_VALUE;
        if (strcasecmp(reader->trailer_name, "content-length") &&
            strcasecmp(reader->trailer_name, "transfer-encoding"))
                return HTTP_READER_MORE;
        return bad(reader, HTTP_BAD_REQUEST, "a trailer must not be about the length of the body");
}

/* Trailers are checked like headers, byte by byte, and forgotten. */
static int read_trailer(struct http_reader *reader, char c)
{
        bool begins = reader->state == TRAILER_BEGIN;

        if (++reader->trailer_bytes > HTTP_TRAILERS_MAX)
                return bad(reader, HTTP_HEADERS_TOO_LARGE, "the trailers have more than %u bytes",
                           HTTP_TRAILERS_MAX);
        if (begins && ++reader->trailer_lines > HTTP_FIELDS_MAX + 1)
                return bad(reader, HTTP_HEADERS_TOO_LARGE, "there are more than %u trailers",
                           HTTP_FIELDS_MAX);
        if (reader->state != TRAILER_VALUE && is_token_byte(c))
                return read_trailer_name(reader, c);
        if (reader->state == TRAILER_NAME && c == ':')
                return end_trailer_name(reader);
        if (reader->state != TRAILER_NAME && c == '\r') {
                reader->state = begins ? LAST_LF : TRAILER_LF;
                return HTTP_READER_MORE;
        }
        if (reader->state == TRAILER_VALUE && is_value_byte(c))
                return HTTP_READER_MORE;
        return bad(reader, HTTP_BAD_REQUEST, "a trailer must be NAME: VALUE");
}

static int read_line_feed(struct http_reader *reader, char c)
{
        if (c != '\n')
                return bad(reader, HTTP_BAD_REQUEST,
                           "a carriage return is not followed by a line feed");
        if (reader->state == CHUNK_SIZE_LF)
                return begin_chunk(reader);
        if (reader->state == LAST_LF) {
                reader->state = DONE;
                return HTTP_READER_END;
        }
        reader->state = reader->state == CHUNK_LF ? CHUNK_SIZE : TRAILER_BEGIN;
        return HTTP_READER_MORE;
}

/* One byte of what surrounds the data of chunks. */
static int read_framing(struct http_reader *reader, char c)
{
        switch (reader->state) {
        case CHUNK_SIZE:
                return read_chunk_size(reader, c);
        case CHUNK_EXTENSION:
                return read_extension(reader, c);
        case CHUNK_CR:
                reader->state = CHUNK_LF;
                return c == '\r' ? HTTP_READER_MORE
                                 : bad(reader, HTTP_BAD_REQUEST,
                                       "a chunk's data does not end with CRLF");
        case CHUNK_SIZE_LF:
        case CHUNK_LF:
        case TRAILER_LF:
        case LAST_LF:
                return read_line_feed(reader, c);
        default:
                return read_trailer(reader, c);
        }
}

static int step(struct http_reader *reader, const char **at, size_t *count, const char **ret_body,
                size_t *ret_bytes)
{
        if (reader->state <= FIELDS)
                return read_head(reader, at, count);
        if (reader->state == BODY || reader->state == CHUNK_DATA)
                return read_body(reader, at, count, ret_body, ret_bytes);
        ++*at;
        --*count;
        return read_framing(reader, (*at)[-1]);
}

int http_reader_next(struct http_reader *reader, const char **at, size_t *count,
                     const char **ret_body, size_t *ret_bytes)
{
        int event = HTTP_READER_MORE;

        assert(reader->state != DONE);
        if (reader->state == BAD)
                return HTTP_READER_BAD;
        if (reader->state == HEAD_DONE)
                event = begin_body(reader);
        if (reader->state == BODY && !reader->left)
                event = read_body(reader, at, count, ret_body, ret_bytes);
        while (event == HTTP_READER_MORE && *count)
                event = step(reader, at, count, ret_body, ret_bytes);
        if (event == HTTP_READER_BAD)
                reader->state = BAD;
        return event;
}
