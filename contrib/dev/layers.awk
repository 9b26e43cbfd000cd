# A room is a path's first part, in daemon/ its first two; daemon/*.h themselves are "daemon".
BEGIN {
        may["include"]       = "include"
        may["shm"]           = "include shm"
        may["kernels"]       = "kernels"
        may["client"]        = "include shm client"
        may["cli"]           = "include client cli"
        may["daemon"]        = "include shm kernels daemon"
        may["daemon/core"]   = "include daemon/core"
        may["daemon/text"]   = "include daemon daemon/text"
        may["daemon/files"]  = "kernels daemon daemon/files"
        may["daemon/engine"] = "include shm kernels daemon daemon/core daemon/text daemon/files daemon/engine"
        may["daemon/edge"]   = "include shm daemon daemon/core daemon/text daemon/edge"

        knows["daemon/main.c"] = knows["daemon/opening.c"] = knows["daemon/opening.h"] = 1
        knows["daemon/opening-plan.c"] = 1
        knows["daemon/inspect.c"] = knows["daemon/inspect.h"] = 1
        knows["daemon/preview.c"] = knows["daemon/preview.h"] = 1

        door["event2/"]   = "daemon/edge/loop.c"
        door["msgpack"]   = "daemon/edge/wire.c client/codec.c tests/"
        door["liburing"]  = "daemon/engine/weights-uring.c"
        door["stdatomic"] = "shm/ring.c daemon/board.c daemon/mailbox.c daemon/channel.h daemon/channel.c daemon/line.h daemon/stats.h daemon/log.c " \
                            "daemon/engine/waker.c daemon/engine/weights.c daemon/text/scribe.h daemon/text/scribe.c kernels/cpu/crew.h " \
                            "kernels/cpu/crew.c bench/crew-wake.c tests/"
        door["cuda"]      = "kernels/cuda/device-cuda.cc"
        door["cublas"]    = "kernels/cuda/blas-cuda.cc"
}

function room(path,    part, n)
{
        n = split(path, part, "/")
        if (part[1] == "samovar")
                return "include"
        if (part[1] == "daemon" && n > 2)
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
        if (!(FILENAME in knows) && (here in may) &&
            index(" " may[here] " ", " " room(quoted[2]) " ") == 0)
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
