/*
 * The hub of models: Hugging Face, or a mirror that $HF_ENDPOINT names.
 *
 * $HF_TOKEN, or the token that the hub's own tool has stored (in $HF_TOKEN_PATH, $HF_HOME/token,
 * $XDG_CACHE_HOME/huggingface/token or ~/.cache/huggingface/token), is sent to the hub only, and
 * never without encryption except to this machine.
 */
#ifndef CLI_PULL_HUB_H
#define CLI_PULL_HUB_H

#include "cli/pull/choose.h"
#include "cli/pull/source.h"
#include "cli/web.h"

struct hub {
        char endpoint[512];
        char shown[512];          /* the endpoint without a password, for messages */
        char authorization[4200]; /* "Bearer ..."; or empty */
        const char *withheld;     /* why a token is not sent; NULL: it is, or there is none */
};

void hub_open(struct hub *ret_hub);

/*
 * Asks which commit the revision is, and which files it has.  0, -ECANCELED, or another negative
 * errno and `why`.
 */
int hub_list(struct web *web, const struct hub *hub, const struct source *source, uint32_t retries,
             char ret_commit[128], struct listing *ret_listing, char *why, size_t why_bytes);

/* The URL of a file.  False: too long. */
bool hub_url(const struct hub *hub, const struct source *source, const char *commit,
             const char *path, char *to, size_t bytes);

/*
 * Why the hub refuses: writes what to do.  `code` and `text` are X-Error-Code and X-Error-Message,
 * or empty.
 */
void hub_explain(const struct hub *hub, const struct source *source, int status, const char *code,
                 const char *text, char *why, size_t why_bytes);

#endif
