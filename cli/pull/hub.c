#include "cli/pull/hub.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pull/get.h"
#include "json/reader.h"
#include "json/utf8.h"
#include "store/text-file.h"

#define HUB        "https://huggingface.co"
#define ANSWER_MAX (64u << 20)
#define VALUES_MAX (1u << 20)
#define FILES_MAX  100000u
#define PAGES_MAX  200u
#define TOKEN_MAX  4096u

/* ---- the token ---- */

static bool trim_token(char *token)
{
        size_t bytes = strcspn(token, "\r\n \t");

        token[bytes] = '\0';
        return bytes;
}

static bool read_token_file(const char *folder, const char *below, char *to, size_t bytes)
{
        struct bytes text = { 0 };
        char path[PATH_MAX];
        bool good = (size_t)snprintf(path, sizeof(path), "%s%s", folder, below) < sizeof(path) &&
                    !text_file_read(path, TOKEN_MAX, &text);

        if (good)
                snprintf(to, bytes, "%s", text.at);
        bytes_deinit(&text);
        return good && trim_token(to);
}

static bool read_token(char *to, size_t bytes)
{
        const char *token = getenv("HF_TOKEN"), *path = getenv("HF_TOKEN_PATH"),
                   *folder = getenv("HF_HOME"), *cache = getenv("XDG_CACHE_HOME"),
                   *home = getenv("HOME");

        if (token && *token) {
                snprintf(to, bytes, "%s", token);
                return trim_token(to);
        }
        if (path && *path)
                return read_token_file(path, "", to, bytes);
        if (folder && *folder)
                return read_token_file(folder, "/token", to, bytes);
        if (cache && *cache)
                return read_token_file(cache, "/huggingface/token", to, bytes);
        return home && read_token_file(home, "/.cache/huggingface/token", to, bytes);
}

/* Encrypted, or of this machine. */
static bool may_have_token(const char *endpoint)
{
        static const char *const local[] = { "localhost", "127.", "[::1]" };
        const char *host = endpoint + strlen("http://"), *end;

        if (!strncmp(endpoint, "https://", 8))
                return true;
        if (strncmp(endpoint, "http://", 7))
                return false;
        for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++) {
                if (strncmp(host, local[i], strlen(local[i])))
                        continue;
                end = host + strlen(local[i]);
                if (end[-1] == '.')
                        end += strspn(end, "0123456789.");
                if (!*end || *end == '/' || (*end == ':' && !strchr(end, '@')))
                        return true;
        }
        return false;
}

void hub_open(struct hub *ret_hub)
{
        const char *named = getenv("HF_ENDPOINT");
        char token[TOKEN_MAX + 1];
        size_t bytes;

        *ret_hub = (struct hub){ 0 };
        snprintf(ret_hub->endpoint, sizeof(ret_hub->endpoint), "%s", named && *named ? named : HUB);
        bytes = strlen(ret_hub->endpoint);
        while (bytes && ret_hub->endpoint[bytes - 1] == '/')
                ret_hub->endpoint[--bytes] = '\0';
        source_public_url(ret_hub->endpoint, ret_hub->shown, sizeof(ret_hub->shown));
        if (!read_token(token, sizeof(token)))
                return;
        if (may_have_token(ret_hub->endpoint))
                snprintf(ret_hub->authorization, sizeof(ret_hub->authorization), "Bearer %s",
                         token);
        else
                ret_hub->withheld = "the token of Hugging Face is not sent: $HF_ENDPOINT is "
                                    "neither https nor on this machine";
}

/* ---- refusals ---- */

void hub_explain(const struct hub *hub, const struct source *source, int status, const char *code,
                 const char *text, char *why, size_t why_bytes)
{
        const char *repository = source->repository;
        bool has_token = *hub->authorization;

        if (!strcmp(code, "GatedRepo"))
                snprintf(why, why_bytes,
                         "%s is gated: read and accept its conditions at %s/%s, then %s%s",
                         repository, hub->shown, repository,
                         has_token ? "try again with a token that may read it ($HF_TOKEN has one)"
                                   : "make a token that may read it at ",
                         has_token ? ""
                                   : "https://huggingface.co/settings/tokens and put it into "
                                     "$HF_TOKEN");
        else if (!strcmp(code, "RevisionNotFound"))
                snprintf(why, why_bytes, "%s has no revision %s", repository,
                         *source->revision ? source->revision : "main");
        else if (!strcmp(code, "EntryNotFound"))
                snprintf(why, why_bytes, "%s has no such file", repository);
        else if (status == 401 && has_token && strstr(text, "Invalid credentials"))
                snprintf(why, why_bytes,
                         "%s does not know the token: renew it, in $HF_TOKEN or with the hub's own "
                         "tool, or do without",
                         hub->shown);
        else if (status == 401 || !strcmp(code, "RepoNotFound"))
                snprintf(why, why_bytes, "there is no %s, or it is private: check the name%s",
                         repository,
                         has_token ? ", and whether the token in $HF_TOKEN is valid and may read it"
                                   : "; for a private or gated one put a token that may read it "
                                     "into $HF_TOKEN");
        else if (status == 403)
                snprintf(
                        why, why_bytes,
                        "%s refuses %s (status 403%s%s): it may be disabled, or gated: see %s/%s%s",
                        hub->shown, repository, *text ? ", " : "", text, hub->shown, repository,
                        has_token ? ", and whether the token in $HF_TOKEN may read it" : "");
        else if (status == 404)
                snprintf(why, why_bytes, "%s has no %s%s: the name or the revision is wrong",
                         hub->shown, repository, *source->revision ? " of that revision" : "");
        else if (status == 429)
                snprintf(why, why_bytes, "%s wants fewer requests: try again later%s", hub->shown,
                         has_token ? "" : ", or with a token in $HF_TOKEN, which may ask more");
        else
                snprintf(why, why_bytes, "%s answers with status %d%s%s", hub->shown, status,
                         *text ? ": " : "", text);
}

/* ---- listings ---- */

/* Appends a text for a URL; keeps letters, digits and "-._~", and slashes if wanted. */
static bool add_escaped(char *to, size_t bytes, const char *text, bool slashes)
{
        size_t at = strlen(to);

        for (; *text; text++) {
                bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                             (*text >= '0' && *text <= '9') || strchr("-._~", *text) ||
                             (slashes && *text == '/');

                if (at + 4 > bytes)
                        return false;
                at += (size_t)snprintf(to + at, bytes - at, plain ? "%c" : "%%%02X",
                                       (unsigned char)*text);
        }
        return true;
}

bool hub_url(const struct hub *hub, const struct source *source, const char *commit,
             const char *path, char *to, size_t bytes)
{
        return (size_t)snprintf(to, bytes, "%s/%s/resolve/", hub->endpoint, source->repository) <
                       bytes &&
               add_escaped(to, bytes, commit, false) && add_escaped(to, bytes, "/", true) &&
               add_escaped(to, bytes, path, true);
}

/* Asks for JSON: 0 and the document. */
static int ask_json(struct web *web, const struct hub *hub, const struct source *source,
                    const char *url, uint32_t retries, struct json_document **ret_json,
                    char ret_link[2048], char *why, size_t why_bytes)
{
        struct get_answer answer;
        char what[160];
        int r = get(web,
                    &(struct get_ask){ .url = url,
                                       .authorization = hub->authorization,
                                       .max = ANSWER_MAX,
                                       .retries = retries },
                    &answer, why, why_bytes);

        *ret_json = NULL;
        if (r)
                return r;
        if (answer.status != 200) {
                hub_explain(hub, source, answer.status, answer.error_code, answer.error_text, why,
                            why_bytes);
                r = -ENOENT;
        } else {
                r = json_parse(answer.body.at, answer.body.count, VALUES_MAX, ret_json, what,
                               sizeof(what));
                if (r)
                        snprintf(why, why_bytes, "%s does not answer as the hub does: %s",
                                 hub->shown, what);
                snprintf(ret_link, 2048, "%s", answer.link);
        }
        get_answer_deinit(&answer);
        return r;
}

static int ask_commit(struct web *web, const struct hub *hub, const struct source *source,
                      uint32_t retries, char ret_commit[128], char *why, size_t why_bytes)
{
        struct json_document *json;
        char url[1024], link[2048];
        const char *commit;
        int r;

        snprintf(url, sizeof(url), "%s/api/models/%s/revision/", hub->endpoint, source->repository);
        add_escaped(url, sizeof(url), *source->revision ? source->revision : "main", false);
        r = ask_json(web, hub, source, url, retries, &json, link, why, why_bytes);
        if (r)
                return r;
        commit = json_string(json, json_member(json, 0, "sha"), NULL);
        if (!commit || !*commit || strlen(commit) >= 128 ||
            commit[strspn(commit, "0123456789abcdef")]) {
                snprintf(why, why_bytes, "%s does not answer as the hub does: there is no sha",
                         hub->shown);
                r = -EINVAL;
        } else {
                snprintf(ret_commit, 128, "%s", commit);
        }
        json_free(json);
        return r;
}

/* Marks that show a text in another order than it has. */
static bool turns_text(int32_t point)
{
        return point == 0x200e || point == 0x200f || (point >= 0x202a && point <= 0x202e) ||
               (point >= 0x2066 && point <= 0x2069);
}

/* Names that lead elsewhere, could not be files, or would control a terminal are no files. */
static bool is_plain_path(const char *path)
{
        size_t length;

        for (const char *at = path; *at; at += length) {
                int32_t point = utf8_next(at, strlen(at), &length);

                if (point < ' ' || utf8_is_control(point) || turns_text(point) || point == '\\')
                        return false;
        }
        return *path && *path != '/' && !strstr(path, "..") && strlen(path) < 512 &&
               strlen(file_name(path)) < 200 && *file_name(path) != '.';
}

static int add_entries(const struct json_document *json, struct listing *listing)
{
        int r = 0;

        for (uint32_t at = json_first(json, 0); at != JSON_NONE && !r; at = json_next(json, at)) {
                const char *type = json_string(json, json_member(json, at, "type"), NULL);
                const char *path = json_string(json, json_member(json, at, "path"), NULL);
                const char *oid = json_string(json, json_member(json, at, "oid"), NULL);
                uint32_t lfs = json_member(json, at, "lfs");
                const char *sha256 = json_string(json, json_member(json, lfs, "oid"), NULL);
                uint64_t bytes = 0;

                /* Its object id is then that of a pointer, and we know no digest of its bytes. */
                if (!sha256 && json_member(json, at, "xetHash") != JSON_NONE)
                        oid = NULL;
                if (!type || strcmp(type, "file") || !path || !is_plain_path(path))
                        continue;
                json_whole(json, json_member(json, at, "size"), &bytes);
                json_whole(json, json_member(json, lfs, "size"), &bytes);
                if (bytes > LISTED_BYTES_MAX)
                        continue;
                if (sha256 && !strncmp(sha256, "sha256:", 7))
                        sha256 += 7;
                oid = sha256 ? sha256 : oid;
                r = listing_add(listing, path, bytes,
                                oid && (strlen(oid) == 64 || strlen(oid) == 40) ? oid : "");
        }
        return r;
}

/*
 * The next page: <URL>; rel="next".  A mirror may pass on the URL of the hub itself, so only the
 * part behind the host is taken.  False: there is none.
 */
static bool next_page(const struct hub *hub, const char *link, char *to, size_t bytes)
{
        const char *rel = strstr(link, "rel=\"next\""), *path = strstr(link, "/api/models/");
        size_t count = path ? strcspn(path, ">") : 0;

        return rel && path && path < rel &&
               (size_t)snprintf(to, bytes, "%s%.*s", hub->endpoint, (int)count, path) < bytes;
}

int hub_list(struct web *web, const struct hub *hub, const struct source *source, uint32_t retries,
             char ret_commit[128], struct listing *ret_listing, char *why, size_t why_bytes)
{
        char url[2048], link[2048];
        struct json_document *json;
        unsigned pages = 0;
        int r = ask_commit(web, hub, source, retries, ret_commit, why, why_bytes);

        *ret_listing = (struct listing){ 0 };
        if (r)
                return r;
        snprintf(url, sizeof(url), "%s/api/models/%s/tree/%s?recursive=true", hub->endpoint,
                 source->repository, ret_commit);
        do {
                r = ask_json(web, hub, source, url, retries, &json, link, why, why_bytes);
                if (!r && json_kind(json, 0) != JSON_ARRAY) {
                        snprintf(why, why_bytes,
                                 "%s does not answer as the hub does: its tree is no list",
                                 hub->shown);
                        r = -EINVAL;
                }
                if (!r && add_entries(json, ret_listing)) {
                        snprintf(why, why_bytes, "out of memory");
                        r = -ENOMEM;
                }
                json_free(json);
                if (!r && (ret_listing->count > FILES_MAX || ++pages > PAGES_MAX)) {
                        snprintf(why, why_bytes,
                                 "%s lists more than %u files or %u pages for %s, which is more "
                                 "than a model has",
                                 hub->shown, FILES_MAX, PAGES_MAX, source->repository);
                        r = -EFBIG;
                }
        } while (!r && next_page(hub, link, url, sizeof(url)));
        if (r)
                listing_deinit(ret_listing);
        return r;
}
