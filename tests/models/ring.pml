/*
 * The ring between the daemon and one client: publish, sleep and wake, stall and resume.
 *
 *      engine --tail--> reader        engine --WAKE--> waker --doorbell--> reader
 *      engine <--head-- reader        engine <--ROOM-- loop <---RESUME---- reader
 *
 * One stream of TOKENS records and its END, in a ring of N places.  No place is kept for
 * the END: one that finds no room waits, as tokens do.  With CANCEL the client cancels at
 * any time, with CRASH it is killed between any two steps, with HOSTILE it writes whatever
 * it likes into its segment and sends RESUME when it likes, until it is hung up.  The
 * doorbell is a readable socket or, with FUTEX, a futex on tail.
 *
 * Memory.  Spin interleaves, and would forgive every missing fence.  So a shared word is
 * two: what its writer stored, and what has arrived at the other side (`_there`).  Between
 * them the store is on its way, in order for one word, in any order for two; `memory`
 * delivers it when it likes.  A seq_cst fence waits until what its thread has stored, or
 * seen, is there.  The engine's tail reaches the waker before it reaches the reader: the
 * hand-over promises the waker that it sees it, and the reader nothing.
 *
 * There are two such agreements, tail with wake_position and head with state.  Both at
 * once are too many states, so a run examines the first, or with STALL the second; the
 * words of the other arrive at once, and its handshake is one step.
 *
 * Nothing here times out, so a wake-up that is lost is a process that sleeps for ever:
 * an invalid end state.  The next record would wake such a sleeper, and hide the loss; so
 * the engine may at any step wait for everybody to have read what he should ("a long
 * step").  `ends` says in addition that no side goes round for ever.
 *
 * A batching reader asks for a position ahead of tail, and may ask for one that it cannot
 * reach (FAR): it is woken by an END, whatever it asked for, and from the brim on, a level
 * beyond the head that the engine knew when it published.  The engine shows the waker
 * three words, end and brim before tail; the waker loads tail before end and brim, and may
 * do so in the middle of the next showing.
 *
 * Not here: the bytes of a record and whether they arrive before tail (litmus-publish.c),
 * PAD, 64-bit positions, several streams, who frees a channel (hangup.pml), what else is
 * on the socket (doorbell.pml).  With FUTEX a reader without its second look, or its
 * fence, is forgiven: the kernel compares tail once more, under a lock.
 *
 * Mutants, by macro.  Each is an easy mistake, and each must be caught:
 *
 *      NO_RECHECK_AFTER_WAKE_POS  the reader sleeps without a second look at tail
 *      NO_READER_FENCE            ... with one that runs ahead of its store
 *      RECHECK_AGAINST_POSITION   a batching reader asks tail > wake_position, not tail moved
 *      DRAIN_AFTER_RECHECK        it empties the socket between the second look and poll
 *      SLEEP_BEFORE_RELEASE       it sleeps on records that it holds
 *      HEAD_BEFORE_READ           it gives a record back and reads it then
 *      NO_RELEASE_FENCE           its look for STALLED runs ahead of its head
 *      PUBLISH_BEFORE_RECORD      tail is shown before the record is there
 *      WAKE_BEFORE_PUBLISH        the waker is told before tail is stored
 *      NO_WAKING_FLAG             every publish posts a WAKE
 *      FLAG_LOWERED_AFTER_LOOK    the waker looks, then lowers `waking`
 *      NO_WAKER_FENCE             no fence between the waker's two loads
 *      TAIL_LOADED_AFTER_FENCE    it announces a tail which its fence did not cover
 *      OLD_IS_EXCLUSIVE           it rings iff old < wake_position < new
 *      END_IS_NO_NEWS             an END rings only if wake_position was passed
 *      TORN_LOOK                  the waker loads end and brim, then tail
 *      TORN_SHOW                  the engine stores tail, then end and brim
 *      NO_BRIM                    a reader may sleep while its ring fills up
 *      BRIM_IS_A_BORDER           ... and is woken when tail passes the brim, not above it
 *      END_WITHOUT_ROOM           an END does not ask for room
 *      NO_STALL_RECHECK           the engine declares a stall and waits
 *      NO_STALL_FENCE             its second look at head runs ahead of STALLED
 *      NUDGE_LOWERED_AFTER_LOOK   it takes ROOM, stalls anew, then lowers `nudging`
 *      NO_NUDGE_FLAG   (HOSTILE)  every RESUME posts a ROOM
 *      TRUST_HEAD      (HOSTILE)  head is used as it is
 *      DOUBLE_FETCH    (HOSTILE)  head is judged, then loaded again and used
 */
#define N      3
#ifndef TOKENS
#if defined(STALL) || defined(HOSTILE)
#define TOKENS 4 /* all places, and one more */
#else
#define TOKENS 2
#endif
#endif
#ifdef END_WITHOUT_ROOM
#define END_ROOM true
#else
#define END_ROOM (t - h < N)
#endif
#define BRIM   1 /* more than so many, and nobody sleeps on them */
#define END    99
#define FAR    99
#define NEVER  255

mtype = { WAKE, ROOM, RESUME };

byte place[N]; /* what is written there and not yet read, 0: nothing */

byte tail, tail_there;
byte head_there;
byte wake_there;
bool state_there; /* STALLED */
chan tail_way = [1] of { byte };
chan head_way = [1] of { byte };
chan wake_way = [1] of { byte };
chan state_way = [1] of { bool };

bool waking, nudging; /* both by exchange */
byte shown_tail, shown_end, shown_brim = BRIM;
chan to_waker = [1] of { mtype };
chan to_engine = [1] of { mtype };
chan to_loop = [2] of { mtype };

bool bell;   /* the client's socket is readable */
bool asleep; /* FUTEX: in the kernel */

bool cancelled, hup;
bool engine_over, reader_over;

/* Ghosts, for asking only: what was read, and up to where the sleeper may sleep. */
byte taken, may_sleep;

active proctype memory()
{
end:    do
        :: tail_way?tail_there
        :: head_way?head_there
        :: wake_way?wake_there
        :: state_way?state_there
        od
}

/* What this run does not examine arrives at once, and its handshake is one step. */
#if defined(STALL) || defined(HOSTILE)
#define store_tail(v) atomic { tail = v; tail_there = v }
#define store_wake(v) wake_there = v
#define SLEEP_STEP    atomic
#else
#define store_tail(v) atomic { tail_way!v; tail = v }
#define store_wake(v) wake_way!v
#define SLEEP_STEP
#endif
#if defined(STALL)
#define store_head(v)  head_way!v
#define store_state(v) state_way!v
#define STALL_STEP
#else
#define store_head(v)  head_there = v
#define store_state(v) state_there = v
#define STALL_STEP     atomic
#endif

/* ---- the daemon ---- */

inline hand_over()
{
        atomic {
                if
                :: !waking -> waking = true; assert(nfull(to_waker)); to_waker!WAKE
#ifdef NO_WAKING_FLAG
                :: waking -> assert(nfull(to_waker)); to_waker!WAKE
#else
                :: else
#endif
                fi
        }
}

inline publish(ends_here)
{
#ifdef WAKE_BEFORE_PUBLISH
        hand_over();
#endif
        store_tail(t);
        SLEEP_STEP {
#ifdef TORN_SHOW
                shown_tail = t;
#endif
                if
                :: ends_here -> shown_end = t
                :: else
                fi;
                shown_brim = h + BRIM;
#ifndef TORN_SHOW
                shown_tail = t
#endif
        };
#ifdef WAKE_BEFORE_PUBLISH
        skip
#else
        hand_over()
#endif
}

inline put(what)
{
        assert(h <= t && t - h < N);
#ifndef HOSTILE
        assert(place[t % N] == 0); /* not overwritten before it was read */
#endif
        place[t % N] = what;
        t++
}

inline put_token()
{
#ifdef PUBLISH_BEFORE_RECORD
        store_tail(t + 1);
#endif
        atomic { put(t + 1) }
}

/* One load, bounded by what is known; an impossible one is the end of this reader. */
inline load_head()
{
        x = head_there;
#ifndef TRUST_HEAD
        if
        :: x < h || x > tail -> goto over
        :: else
        fi;
#endif
#ifdef DOUBLE_FETCH
        x = head_there;
#endif
        atomic { h = x; x = 0 }
}

inline on_room()
{
        to_engine?ROOM;
#ifndef NUDGE_LOWERED_AFTER_LOOK
        nudging = false;
#endif
        if
        :: stalled -> stalled = false; store_state(false)
        :: else
        fi
}

inline stall()
{
        store_state(true);
#ifndef NO_STALL_FENCE
        empty(state_way);
#endif
        stalled = true
#ifndef NO_STALL_RECHECK
        ;
        if
        :: head_there != h -> stalled = false; store_state(false)
        :: else
        fi
#endif
}

active proctype engine()
{
        byte t, h, x; /* t: the tail with what is not published yet */
        bool stalled, nudged, told; /* told: it has heard of the cancel */

step:
#ifndef HOSTILE
        if /* the second one is a long step */
        :: true
        :: true -> taken == tail || (may_sleep >= tail && tail <= shown_brim) || cancelled || hup
        fi;
#endif
        if
        :: atomic { nempty(to_engine) -> nudged = true }; on_room()
        :: empty(to_engine)
        fi;
        if
        :: hup -> goto over
        :: else
        fi;
        load_head();
        told = cancelled;
        if
        :: (told || t >= TOKENS) && END_ROOM ->
                atomic { put(END) };
                publish(true);
                goto over
        :: !told && t < TOKENS && t - h < N ->
                put_token();
                if
                :: t < TOKENS && t - h < N -> put_token()
                :: true
                fi;
                publish(false)
        :: else -> STALL_STEP { stall() }
        fi;
#ifdef NUDGE_LOWERED_AFTER_LOOK
        if
        :: nudged -> nudging = false
        :: else
        fi;
#endif
        nudged = false;
        if
        :: !stalled
        :: stalled && (nempty(to_engine) || (cancelled && !told) || hup)
        fi;
        goto step;

over:   atomic { engine_over = true; t = 0; h = 0; x = 0; stalled = 0; nudged = 0; told = 0 };
end:    do /* what is still under way */
        :: atomic { to_engine?ROOM -> nudging = false }
        od
}

#ifdef OLD_IS_EXCLUSIVE
#define WISHED (old < w && w < new)
#else
#define WISHED (old <= w && w < new)
#endif
#ifdef END_IS_NO_NEWS
#define ENDS false
#else
#define ENDS (old < last)
#endif
#if defined(NO_BRIM)
#define BRIMS false
#elif defined(BRIM_IS_A_BORDER)
#define BRIMS (old <= brim && brim < new)
#else
#define BRIMS (brim < new)
#endif

/* A tail that was seen was stored before: behind the fence it is at the reader, too. */
inline look()
{
#if defined(TORN_LOOK)
        last = shown_end;
        brim = shown_brim;
        new = shown_tail;
        tail_there >= new;
#elif defined(TAIL_LOADED_AFTER_FENCE)
        tail_there == tail;
        new = shown_tail;
        last = shown_end;
        brim = shown_brim;
#else
        new = shown_tail;
        last = shown_end;
        brim = shown_brim;
#ifndef NO_WAKER_FENCE
        tail_there >= new;
#endif
#endif
        w = wake_there;
        atomic {
                if
                :: w != NEVER && (WISHED || ENDS || BRIMS) ->
#ifdef FUTEX
                        asleep = false
#else
                        bell = true
#endif
                :: else
                fi;
                old = new;
                new = 0;
                last = 0;
                brim = 0;
                w = 0
        }
}

active proctype waker()
{
        byte old, new, last, brim, w;

end:    do
#ifdef FLAG_LOWERED_AFTER_LOOK
        :: to_waker?WAKE -> look(); waking = false
#else
        :: atomic { to_waker?WAKE -> waking = false }; SLEEP_STEP { look() }
#endif
        od
}

active proctype loop()
{
end:    do
        :: atomic { to_loop?RESUME ->
                if
                :: !nudging -> nudging = true; assert(nfull(to_engine)); to_engine!ROOM
#ifdef NO_NUDGE_FLAG
                :: nudging -> assert(nfull(to_engine)); to_engine!ROOM
#else
                :: else
#endif
                fi
        }
        od
}

/* ---- the client ---- */

#ifndef HOSTILE

inline release()
{
        STALL_STEP {
                store_head(h);
#ifndef NO_RELEASE_FENCE
                empty(head_way);
#endif
                if
                :: state_there -> to_loop!RESUME
                :: else
                fi
        }
}

inline take()
{
#ifdef HEAD_BEFORE_READ
        h++;
        release();
        h--;
#endif
        atomic {
                assert(place[h % N] == h + 1 || place[h % N] == END);
                ended = place[h % N] == END;
                place[h % N] = 0;
                h++;
                taken = h
        }
}

inline sleep()
{
        SLEEP_STEP {
                store_wake(w);
#ifndef NO_READER_FENCE
                empty(wake_way);
#endif
                if
#if defined(RECHECK_AGAINST_POSITION)
                :: tail_there > w -> moved = true
#elif !defined(NO_RECHECK_AFTER_WAKE_POS)
                :: tail_there != t -> moved = true
#endif
                :: else
                fi
        };
#ifdef DRAIN_AFTER_RECHECK
        bell = false;
#endif
        if
        :: moved
        :: else ->
                may_sleep = w;
#ifdef FUTEX
                /* The kernel compares under its lock, and its lock is a fence. */
                empty(wake_way);
                asleep = (tail_there == t);
                !asleep
#else
                atomic { bell -> bell = false }
#endif
                may_sleep = 0
        fi;
        atomic { store_wake(NEVER); w = 0; t = 0; moved = false }
}

active proctype reader()
{
        byte h, t, w;
        bool ended, moved;

        {
                do
                :: ended -> break
                :: else ->
                        t = tail_there;
                        if
                        :: t != h ->
                                do
                                :: t != h && !ended -> take()
                                :: t != h && !ended -> take(); release()
                                :: t == h || ended -> break
                                od;
#ifndef SLEEP_BEFORE_RELEASE
                                release()
#endif
                        :: else ->
                                bell = false; /* replies are read here, and kicks with them */
                                if
                                :: w = t
                                :: w = FAR
                                fi;
                                sleep()
                        fi
                od
        } unless { hup };
        atomic { reader_over = true; h = 0; t = 0; w = 0; ended = false; moved = false }
}

#else

active proctype reader() /* of sorts */
{
        do
        :: store_head(0)
        :: store_head(1)
        :: store_head(2)
        :: store_head(200)
        :: store_wake(0)
        :: store_wake(3)
        :: store_wake(NEVER)
        :: to_loop!RESUME
        :: hup -> break
        :: engine_over -> break
        od;
        reader_over = true
}

#endif

/* What may come over the client at any time, or not. */
active proctype fate()
{
#if defined(CANCEL)
        cancelled = true
#elif defined(CRASH) || defined(HOSTILE)
        hup = true
#else
        true
#endif
}

#ifdef HOSTILE
ltl ends { <> engine_over }
#else
ltl ends { <> (engine_over && reader_over) }
#endif
