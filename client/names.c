/* Names and descriptions of the protocol's numbers; the version of the library. */
#include "client/public.h"

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

const char *smv_version(void)
{
        return SAMOVAR_VERSION;
}
