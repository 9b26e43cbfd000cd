/* Gets a small answer as a whole, and tries again where that may help. */
#ifndef CLI_PULL_GET_H
#define CLI_PULL_GET_H

#include "cli/web.h"
#include "json/bytes.h"

#define VALIDATOR_BYTES 256u

struct get_ask {
        const char *url;
        const char *authorization; /* NULL or "": none */
        uint64_t from, to;         /* as web_ask */
        size_t max;                /* a longer answer is refused */
        uint32_t retries;
        bool head_only; /* the body is not wanted */
};

struct get_answer {
        int status;
        uint64_t total;    /* bytes of the whole file; 0: not known */
        struct bytes body; /* NUL-ended */
        char validator[VALIDATOR_BYTES];
        char link[2048];      /* the field Link */
        char error_code[64];  /* X-Error-Code of the hub */
        char error_text[256]; /* X-Error-Message */
};

/*
 * 0 with an answer, whatever its status; a temporary failure is an answer only after all retries.
 * -EIO: no answer, and `why`; -EFBIG; -ECANCELED: the user wants to stop; -ENOMEM.
 */
int get(struct web *web, const struct get_ask *ask, struct get_answer *ret_answer, char *why,
        size_t why_bytes);
void get_answer_deinit(struct get_answer *answer);

/* What If-Range takes: a strong ETag, or else the date of the last change; "": there is neither. */
void get_validator(const struct web_head *head, char to[VALIDATOR_BYTES]);

/* The size in a field of an answer; 0: NULL, or no size that a file could have. */
uint64_t get_size(const char *text);

/* ^C or SIGTERM has come since stop_watch(), which begins to catch them. */
void stop_watch(void);
bool stop_wanted(void);

#endif
