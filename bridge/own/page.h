/*
 * GET / and /page/{}: the page for people, whose files are in bridge/page.  The build puts them
 * into the program (bridge/own/embed-page).
 *
 * A browser asks for HTML and gets the page at /.  A program gets the words of Ollama, for which
 * some look.  Each file has an ETag, and a browser asks each time whether it has changed, so a new
 * samovar-http never meets the files of an old one.
 *
 * The headers forbid the page all that it does not need: scripts and styles of other servers or
 * within the HTML, HTML that is made of text, frames, forms, and images from elsewhere.
 */
#ifndef BRIDGE_OWN_PAGE_H
#define BRIDGE_OWN_PAGE_H

#include <stddef.h>

#include "bridge/core/call.h"

struct page_file {
        const char *name;
        const char *type;
        const char *tag; /* its ETag, quoted */
        const char *bytes;
        size_t count;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

void own_root(struct call *call);
void own_page_file(struct call *call);

/* Does a header Accept ask for HTML by name?  That of a browser does.  NULL: no header. */
bool page_is_wanted(const char *accept);
/* Does a header If-None-Match name the tag?  NULL: no header. */
bool page_is_known(const char *if_none_match, const char *tag);

#endif
