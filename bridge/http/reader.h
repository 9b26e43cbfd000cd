/*
 * The reader: bytes of a connection become requests, HTTP/1.1 and 1.0.  It knows no sockets.
 *
 * It is strict (RFC 9112, and stricter).  Where two servers could read the same bytes as different
 * requests, it reads none: a proxy in front of us cannot be led to believe in other borders between
 * requests than ours.  So each of these is refused, and the connection must end: both
 * Content-Length and Transfer-Encoding, either of them twice, another coding than `chunked`, a
 * length that is not only digits, a line that ends without CR, a folded line, a blank before a
 * colon, a NUL or another control character, no Host or two, a Host that an absolute target
 * contradicts, and a trailer about the length of the body.
 *
 * The caller passes bytes as they come and gets events:
 *
 *      HEAD    the request line and the headers are there; the functions below may be called
 *      BODY    some bytes of the body, in the caller's own memory
 *      END     the request is whole; http_reader_reset() before the next one
 *
 * Between HEAD and the next call the caller may set `body_limit`.  The head is held in memory of
 * the reader: at most a line of 8 KiB and headers of 32 KiB, and nothing between requests.
 */
#ifndef BRIDGE_HTTP_READER_H
#define BRIDGE_HTTP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bridge/http/method.h"
#include "bridge/http/refusal.h"
#include "json/bytes.h"

#define HTTP_LINE_MAX     8192u
#define HTTP_HEADERS_MAX  32768u
#define HTTP_FIELDS_MAX   100u
#define HTTP_TRAILERS_MAX 8192u
/* Blank lines before a request, which some clients send behind a body. */
#define HTTP_BLANK_LINES_MAX 4u
/* Extensions of chunks, of a whole body: nobody needs them, and they cost us time. */
#define HTTP_EXTENSIONS_MAX 16384u

enum http_reader_event {
        HTTP_READER_MORE, /* all bytes are used; more are needed */
        HTTP_READER_HEAD,
        HTTP_READER_BODY,
        HTTP_READER_END,
        HTTP_READER_BAD, /* reader->problem; the connection cannot go on */
};

/* A header: offsets of its name and value in the head, both with a NUL behind them. */
struct http_field {
        uint32_t name, value;
};

struct http_reader {
        uint64_t body_limit; /* the caller's */
        struct http_problem problem;
        int state;
        bool has_head, has_path;
        struct bytes head;
        uint32_t line;        /* where the present line begins in `head` */
        uint32_t fields_from; /* where the headers begin */
        uint32_t blank_lines;
        enum http_method method;
        uint32_t minor; /* of HTTP/1.minor */
        uint32_t path;
        struct bytes query;                  /* decoded: name, NUL, value, NUL ... */
        uint32_t authority, authority_bytes; /* of an absolute target; 0 bytes: it has none */
        struct http_field fields[HTTP_FIELDS_MAX];
        uint32_t field_count;
        bool chunked, expects_continue, keeps_alive;
        uint64_t left;  /* of the body, or of the chunk */
        uint64_t count; /* bytes of the body so far */
        uint32_t digits, extension_bytes, trailer_bytes, trailer_lines, trailer_name_bytes;
        char trailer_name[sizeof("transfer-encoding") + 1]; /* its begin, if it is longer */
};

/* A zeroed reader with its limit; nothing to free if no byte has come. */
void http_reader_init(struct http_reader *reader, uint64_t body_limit);
/* For the next request: forgets the last one and frees its memory; sets the limit again. */
void http_reader_reset(struct http_reader *reader, uint64_t body_limit);

/*
 * Reads on at *at, of *count bytes, and moves both over the bytes that it used.  BODY: the bytes
 * are *ret_body and *ret_bytes.  -ENOMEM: the head found no memory.
 */
int http_reader_next(struct http_reader *reader, const char **at, size_t *count,
                     const char **ret_body, size_t *ret_bytes);

/* Has the first byte of a request come? */
bool http_reader_has_begun(const struct http_reader *reader);
/* Has HEAD been reported? */
bool http_reader_has_head(const struct http_reader *reader);
/* Behind HEAD: does the request have a body, and is it within the limit, as far as known? */
bool http_reader_has_body(const struct http_reader *reader);
bool http_reader_body_fits(struct http_reader *reader);

/*
 * "" until it was read.  If the rest of the head is bad, it says in which dialect to refuse it; if
 * itself is, it ends where it cannot be decoded.
 */
const char *http_reader_path(const struct http_reader *reader);
/* The rest needs the head. */
bool http_reader_query(const struct http_reader *reader, const char *name, const char **ret_value);
/* The first header of this name, in any case; NULL: there is none. */
const char *http_reader_header(const struct http_reader *reader, const char *name);
/* By number, for tests; false: there are no more. */
bool http_reader_field(const struct http_reader *reader, uint32_t i, const char **ret_name,
                       const char **ret_value);
/* What stands for Host: the authority of an absolute target, else the header.  NULL: neither. */
const char *http_reader_host(const struct http_reader *reader, size_t *ret_bytes);

#endif
