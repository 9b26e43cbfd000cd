# A room is a path's first part, in daemon/ and bridge/ its first two.  also[] names single files that a room may
# include besides.
BEGIN {
        may["include"]       = "include"
        may["shm"]           = "include shm"
        may["json"]          = "json"
        may["kernels"]       = "kernels"
        may["client"]        = "include shm json client"
        may["cli"]           = "include json store cli"
        may["store"]         = "json store"
        may["base"]          = "json base"
        may["bridge/http"]   = "json base bridge/http"
        may["bridge/core"]   = "include json base bridge/http bridge/core"
        may["bridge/openai"] = "include json base bridge/http bridge/core bridge/openai"
        may["bridge/anthropic"] = "include json base bridge/core bridge/anthropic"
        may["bridge/ollama"] = "include json base bridge/core bridge/ollama"
        may["bridge/offline"] = "include json base bridge/http bridge/core bridge/openai bridge/offline"
        may["bridge/own"]    = "include json base bridge/core bridge/openai bridge/own"
        may["settings"]      = "json base settings"
        may["daemon/ipc"]    = "include shm base daemon/ipc"
        may["daemon/model"]  = "include kernels base daemon/model"
        may["daemon/core"]   = "include daemon/core"
        may["daemon/constraint"] = "json base daemon/constraint"
        may["daemon/text"]   = "include json base daemon/model daemon/text"
        may["daemon/files"]  = "json kernels base daemon/model daemon/files"
        may["daemon/draft"]  = "base daemon/draft"
        may["daemon/draw"]   = "include kernels base daemon/text daemon/draw"
        may["daemon/engine"] = "include shm json kernels base daemon/ipc daemon/model daemon/core daemon/constraint daemon/draft daemon/draw daemon/text daemon/files daemon/engine"
        may["daemon/edge"]   = "include shm json base settings daemon/ipc daemon/model daemon/core daemon/constraint daemon/draft daemon/draw daemon/text daemon/edge"

        also["cli"]          = "kernels/cpu/affinity.h kernels/cpu/cgroup-limits.h"
        also["daemon/core"]  = "base/free-numbers.h base/list.h base/siphash.h"
        also["daemon/edge"]  = "daemon/start/config.h"
        also["daemon/text"]  = "daemon/ipc/mailbox.h"

        door["event2/"]   = "base/loop.c"
        door["msgpack"]   = "daemon/edge/wire.c client/codec.c tests/"
        door["histedit"]  = "cli/chat/line-editor.c"
        door["curl/"]     = "cli/web.c"
        door["liburing"]  = "daemon/engine/weights-uring.c"
        door["stdatomic"] = "shm/ring.c daemon/core/request.h daemon/ipc/usage-snapshot.c daemon/ipc/mailbox.c daemon/ipc/channel.h daemon/ipc/channel.c daemon/ipc/send-lock.h daemon/ipc/stats.h daemon/draw/asking.c daemon/engine/masks.c daemon/engine/questions.c base/log.c " \
                            "daemon/engine/waker.c daemon/engine/weights.c daemon/text/worker.h daemon/text/worker.c kernels/cpu/thread-pool.h " \
                            "kernels/cpu/thread-pool.c bench/thread-pool-wake.c tests/"
        door["cuda"]      = "kernels/cuda/device-cuda.cc"
        door["cublas"]    = "kernels/cuda/blas-cuda.cc"
}

function room(path,    part, n)
{
        n = split(path, part, "/")
        if (part[1] == "samovar")
                return "include"
        if ((part[1] == "daemon" || part[1] == "bridge") && n > 2)
                return part[1] "/" part[2]
        return part[1]
}

function complain(what)
{
        printf "%s:%d: %s\n", FILENAME, FNR, what
        bad = 1
}

/^#include "/ {
        split($2, quoted, "\"")
        here = room(FILENAME)
        if ((here in may) && index(" " may[here] " ", " " room(quoted[2]) " ") == 0 &&
            index(" " also[here] " ", " " quoted[2] " ") == 0)
                complain(here " may not include \"" quoted[2] "\"")
}

/^#include </ {
        for (library in door) {
                if (index($2, "<" library) != 1)
                        continue
                allowed = 0
                n = split(door[library], places, " ")
                for (i = 1; i <= n; i++)
                        allowed = allowed || index(FILENAME, places[i]) == 1
                if (!allowed)
                        complain($2 " has its door elsewhere: " door[library])
        }
}

END { exit bad }
