/*
 * The link to the daemon: asks it for its status and its list, without waiting, and connects again
 * when it is lost.
 */
#ifndef CLI_TOP_LINK_H
#define CLI_TOP_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

/* The longest that connecting again may take; keys wait that long if the daemon hangs. */
#define LINK_CONNECT_MS 1000
/* An answer that takes longer is worth a word. */
#define LINK_SLOW_MS 3000

struct link {
        struct cli *cli; /* its client is NULL while there is no daemon */
        uint32_t status_request, list_request, end_request; /* outstanding; 0: none */
        struct bytes status, list;                          /* the last replies, NUL-ended */
        uint64_t asked_ms;
        uint64_t lost_ms; /* since when there is no daemon */
        uint64_t retry_ms;
        char why[256];   /* why there is none */
        char ended[256]; /* what became of the last end; "": nothing new */
};

enum link_news {
        LINK_QUIET,
        LINK_ANSWERED, /* status and list have come */
        LINK_LOST,
        LINK_ENDED, /* `ended` says what became of it */
};

struct link link_to(struct cli *cli);
void link_deinit(struct link *link);

/* Asks, unless an answer is outstanding.  Without a daemon, connects if it is time to. */
void link_ask(struct link *link);
/* Ends a stream: `ended` will say what became of it.  Does nothing while another one is asked. */
void link_end(struct link *link, uint64_t number);
/* Takes what has come.  Call it until it returns LINK_QUIET. */
enum link_news link_take(struct link *link);

/* -1: none.  Whether it is also to be waited for until it can be written to. */
int link_fd(const struct link *link, bool *ret_writable);
/* Since when the daemon has not answered; 0: it has, or LINK_SLOW_MS have not passed yet. */
uint64_t link_silent_ms(const struct link *link);

#endif
