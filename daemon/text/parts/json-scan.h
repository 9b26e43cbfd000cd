/*
 * JSON scan: reads one JSON value byte by byte, and finds where it ends.
 *
 * It accepts exactly the JSON of RFC 8259, with two differences.  Inside of strings it takes
 * control characters as they are: models write line breaks there, and the caller escapes them
 * (json_scan_escape()).  It takes any bytes above 0x7f, and does not look at UTF-8.  Values may
 * nest JSON_SCAN_DEPTH_MAX deep.
 */
#ifndef DAEMON_TEXT_PARTS_JSON_SCAN_H
#define DAEMON_TEXT_PARTS_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SCAN_DEPTH_MAX    64u
#define JSON_SCAN_ESCAPE_BYTES 6u /* the longest escape of one byte */

struct json_scan {
        uint64_t objects; /* a bit for each level, the innermost lowest: 1 if it is an object */
        uint8_t depth;
        uint8_t state;
        uint8_t left;        /* digits of \u that are missing */
        bool in_key;         /* the string is the key of an object */
        const char *literal; /* what is missing of true, false or null */
};

enum json_scan_outcome {
        JSON_SCAN_MORE,   /* the value goes on */
        JSON_SCAN_DONE,   /* the value ends with this byte */
        JSON_SCAN_BEFORE, /* the value, a number, has ended before this byte */
        JSON_SCAN_BAD,    /* the byte cannot stand here */
};

void json_scan_begin(struct json_scan *scan);
enum json_scan_outcome json_scan_feed(struct json_scan *scan, uint8_t byte);

/* True if the next byte is one of a string, and no part of an escape. */
bool json_scan_in_string(const struct json_scan *scan);

/* True if the next byte, if it is no blank, begins the key of an object, or ends the object. */
bool json_scan_expects_key(const struct json_scan *scan);

static inline bool json_is_blank(uint8_t byte)
{
        return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

/* Writes a control character of a string as JSON does; returns the bytes. */
size_t json_scan_escape(uint8_t control, char ret_text[JSON_SCAN_ESCAPE_BYTES]);

#endif
