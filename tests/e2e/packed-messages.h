/* Messages and tools in msgpack, for tests that send them. */
#ifndef TESTS_E2E_PACKED_MESSAGES_H
#define TESTS_E2E_PACKED_MESSAGES_H

#include <msgpack.h>
#include <string.h>

static inline void pack_text(msgpack_packer *to, const char *text)
{
        msgpack_pack_str_with_body(to, text, strlen(text));
}

static inline void pack_pair(msgpack_packer *to, const char *key, const char *text)
{
        pack_text(to, key);
        pack_text(to, text);
}

/* One message, of the user. */
static inline void pack_messages(msgpack_sbuffer *to, const char *question)
{
        msgpack_packer packer;

        msgpack_sbuffer_init(to);
        msgpack_packer_init(&packer, to, msgpack_sbuffer_write);
        msgpack_pack_array(&packer, 1);
        msgpack_pack_map(&packer, 2);
        pack_pair(&packer, "role", "user");
        pack_pair(&packer, "content", question);
}

#endif
