/* Names and descriptions of the protocol's numbers; the version of the library. */
#include "client/names.h"

#include <errno.h>
#include <samovar/protocol.h>

#include "client/public.h"

/* The errnos that calls of the library return. */
#define CLIENT_ERRNOS(X)                                                                           \
        X(E2BIG)                                                                                   \
        X(EACCES)                                                                                  \
        X(EAGAIN)                                                                                  \
        X(EBUSY)                                                                                   \
        X(ECONNREFUSED)                                                                            \
        X(EINVAL)                                                                                  \
        X(EIO)                                                                                     \
        X(EMFILE)                                                                                  \
        X(EMSGSIZE)                                                                                \
        X(ENAMETOOLONG)                                                                            \
        X(ENFILE)                                                                                  \
        X(ENODATA)                                                                                 \
        X(ENOENT)                                                                                  \
        X(ENOMEM)                                                                                  \
        X(ENOTCONN)                                                                                \
        X(ENOTDIR)                                                                                 \
        X(EPERM)                                                                                   \
        X(EPROTO)                                                                                  \
        X(ETIMEDOUT)

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
        const char *name, *text;
} codes[] = {
#define X(number, name, word, text) [number] = { word, text },
        SMV_ERRORS(X)
#undef X
};

static const char *const reasons[] = {
        [SMV_END_EOS] = "eos",         [SMV_END_STOP] = "stop",
        [SMV_END_LENGTH] = "length",   [SMV_END_CANCELLED] = "cancelled",
        [SMV_END_STALLED] = "stalled", [SMV_END_ERROR] = "error",
};

static const char *const piece_kinds[] = {
#define X(number, name, word) [number] = word,
        SMV_PIECE_KINDS(X)
#undef X
};

#define X(number, name, word)                                                                      \
        _Static_assert(SMV_PIECE_##name == (number), "the protocol and the library agree");
SMV_PIECE_KINDS(X)
#undef X

/* A newer daemon may know codes that this library does not. */
const char *smv_code_name(enum smv_code code)
{
        return (unsigned)code < LENGTH(codes) ? codes[code].name : "unknown";
}

const char *smv_code_text(enum smv_code code)
{
        return (unsigned)code < LENGTH(codes) ? codes[code].text
                                              : "an error that this library does not know";
}

const char *smv_reason_name(enum smv_reason reason)
{
        return (unsigned)reason < LENGTH(reasons) && reasons[reason] ? reasons[reason] : "unknown";
}

const char *smv_piece_kind_name(uint32_t kind)
{
        return kind < LENGTH(piece_kinds) ? piece_kinds[kind] : "unknown";
}

const char *client_errno_name(int error)
{
        switch (-error) {
#define X(name)                                                                                    \
        case name:                                                                                 \
                return #name;
                CLIENT_ERRNOS(X)
#undef X
        default:
                return "";
        }
}

const char *smv_version(void)
{
        return SAMOVAR_VERSION;
}
