/* The build has no libcurl: no requests, and plain words why. */
#include "cli/web.h"

#include <errno.h>
#include <stdio.h>

int web_new(struct web **ret_web, char *why, size_t why_bytes)
{
        *ret_web = NULL;
        snprintf(
                why, why_bytes,
                "this samovar was built without libcurl, which HTTP needs: install "
                "libcurl4-openssl-dev and build with  meson setup --reconfigure -Dlibcurl=enabled");
        return -ENOSYS;
}

void web_free(struct web *web)
{
        (void)web;
}

int web_begin(struct web *web, const struct web_ask *ask, struct web_request **ret_request)
{
        (void)web, (void)ask;
        *ret_request = NULL;
        return -ENOSYS;
}

void web_cancel(struct web *web, struct web_request *request)
{
        (void)web, (void)request;
}

size_t web_running(const struct web *web)
{
        (void)web;
        return 0;
}

int web_wait(struct web *web, int timeout_ms, struct pollfd *others, size_t other_count)
{
        (void)web, (void)timeout_ms, (void)others, (void)other_count;
        return -ENOSYS;
}
