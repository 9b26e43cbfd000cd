/*
 * Messages about a request may cross its RETIRED: CANCEL, and the SUBMIT of its forks, which
 * begin with its tokens.  So the loop may free a request only when the engine has taken all of
 * them.
 *
 *      loop   --SUBMIT CANCEL--> engine      a SUBMIT of forks also names their parent
 *      engine --RETIRED--> loop
 *
 * The loop counts the messages that it sends about a request (`sent`).  The engine counts those
 * that it takes while it has the request (`taken`).  For each message that comes later, the
 * engine posts RETIRED once more.  So at the first RETIRED, sent - taken messages are still to
 * be answered: `crossing`.
 *
 * A request may be forked once by itself and once as a fork: three requests are enough to have
 * one that is both a parent and a child.  Each ends by itself at any time, or is cancelled.  A
 * fork whose parent has ended ends at once.
 *
 * Asserted: neither side touches a freed request, and each is freed once; the loop gets no
 * answer that it does not wait for.  The loop may rest only when all requests are freed, so a
 * lost answer is an invalid end state.
 *
 * Mutants:
 *
 *      FREE_AT_RETIRED      the loop does not wait for messages that crossed
 *      FORK_NOT_COUNTED     the loop counts its CANCELs only
 *      TAKEN_NOT_COUNTED    the engine does not count forks taken while it has the parent
 *      ANSWERED_ALWAYS      the engine posts RETIRED for each message, in any state
 *      ORPHAN_NOT_ANSWERED  the engine does not answer a SUBMIT whose parent is gone
 *      FORKED_WHEN_RETIRED  the loop forks a request that has retired and waits for its answers
 *      TAKEN_READ_LATE      the number of crossing messages is computed again at each RETIRED
 */
#define REQUESTS 3
#define NO_PARENT   9

mtype = { SUBMIT, CANCEL };

chan to_engine = [6] of { mtype, byte, byte };
chan to_loop = [8] of { byte };

bool made[REQUESTS], freed[REQUESTS];
byte taken[REQUESTS]; /* the engine's, until the first RETIRED; then the loop's to read */

inline touch(r) { assert(made[r] && !freed[r]) }

/* ---- loop ---- */

byte sent[REQUESTS], crossing[REQUESTS], freed_count, made_count;
bool retired[REQUESTS], cancelled[REQUESTS], forked[REQUESTS];

inline post(kind, what, parent) { assert(nfull(to_engine)); to_engine!kind, what, parent }

inline make(r, parent)
{
        atomic {
                made[r] = true;
                made_count++;
                if
                :: parent != NO_PARENT ->
                        forked[parent] = true;
#ifndef FORK_NOT_COUNTED
                        sent[parent]++
#endif
                :: else
                fi;
                post(SUBMIT, r, parent)
        }
}

#ifdef FORKED_WHEN_RETIRED
#define MAY_FORK(r) (made[r] && !freed[r] && !forked[r])
#else
#define MAY_FORK(r) (made[r] && !freed[r] && !forked[r] && !retired[r])
#endif
#define MAY_CANCEL(r) (made[r] && !freed[r] && !cancelled[r] && !retired[r])

inline cancel(r)
{
        atomic { cancelled[r] = true; sent[r]++; post(CANCEL, r, NO_PARENT) }
}

inline on_retired(r)
{
        atomic {
                touch(r);
                if
#ifdef TAKEN_READ_LATE
                :: true -> retired[r] = true; crossing[r] = sent[r] - taken[r]
#else
                :: !retired[r] -> retired[r] = true; crossing[r] = sent[r] - taken[r]
                :: else -> assert(crossing[r] > 0); crossing[r]--
#endif
                fi;
                if
#ifdef FREE_AT_RETIRED
                :: true ->
#else
                :: crossing[r] == 0 ->
#endif
                        freed[r] = true;
                        freed_count++
                :: else
                fi
        }
}

active proctype loop()
{
        byte r;

        make(0, NO_PARENT);
        do
        :: to_loop?r -> on_retired(r); r = 0
        :: MAY_FORK(0) && !made[1] -> make(1, 0)
        :: MAY_FORK(1) && !made[2] -> make(2, 1)
        :: MAY_CANCEL(0) -> cancel(0)
        :: MAY_CANCEL(1) -> cancel(1)
        :: MAY_CANCEL(2) -> cancel(2)
        :: freed_count == made_count -> break
        od;
end:    do
        :: to_loop?r -> touch(r)
        od
}

/* ---- engine ---- */

bool has[REQUESTS];

inline tell(r) { assert(nfull(to_loop)); to_loop!r }

inline answer(r)
{
        touch(r);
        if
        :: !has[r] -> tell(r)
        :: else ->
                taken[r]++;
#ifdef ANSWERED_ALWAYS
                tell(r)
#endif
        fi
}

inline retire(r)
{
        atomic { touch(r); has[r] = false; tell(r) }
}

inline on_submit(r, parent)
{
        atomic {
                touch(r);
                has[r] = true;
                if
                :: parent == NO_PARENT
                :: parent != NO_PARENT && has[parent] ->
#ifdef TAKEN_NOT_COUNTED
                        touch(parent)
#else
                        answer(parent)
#endif
                :: parent != NO_PARENT && !has[parent] -> /* an orphan */
#ifndef ORPHAN_NOT_ANSWERED
                        answer(parent);
#endif
                        retire(r)
                fi
        }
}

active proctype engine()
{
        mtype kind;
        byte r, parent;

end:    do
        :: atomic { to_engine?kind, r, parent ->
                if
                :: kind == SUBMIT -> on_submit(r, parent)
                :: else -> answer(r)
                fi;
                kind = 0; r = 0; parent = 0 }
        :: has[0] -> retire(0)
        :: has[1] -> retire(1)
        :: has[2] -> retire(2)
        od
}
