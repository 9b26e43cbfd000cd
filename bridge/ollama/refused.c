#include "bridge/ollama/refused.h"

/* Not 404, which programs take for a wrong address. */
static void refuse(struct call *call, const char *why)
{
        struct failure failure =
                failure_make(FAILURE_UNSUPPORTED, NULL, "%s is not supported: %s", call->path, why);

        call_fail(call, &failure);
}

void ollama_embed(struct call *call)
{
        refuse(call, "the daemon does not make embeddings yet");
}

void ollama_change(struct call *call)
{
        refuse(call, "the models are those that samovard was started with");
}
