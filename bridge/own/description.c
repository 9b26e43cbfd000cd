#include "bridge/own/description.h"

void own_description(struct call *call)
{
        call_reply(call, 200, "application/json", description, description_bytes);
}
