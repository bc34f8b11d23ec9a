/* Publishing one staged attempt exactly once, and giving it up safely. See docs/protocol.md; checked by `make model`.

   Actors: COMMITTERS commit tasks, one who gives the attempt up (abort, or garbage collection), an outside writer that
   appends and prunes, and the network, which may deliver a put long after the client has given up waiting. With -DAGAIN,
   also a further try of the staging task, which asks what there is of its identity and then stages an attempt of its own,
   marked `later_only`, and the commit of that one. With -DLATER the first attempt is `later_only`, too. With -DGROUP commits
   decide by the record of a group where they may, which is removed by somebody who tidies up.
   Each statement that touches shared state is one store call. A crash loses what an actor knew, never what it wrote; the
   actor begins anew, as the retry of its task. There is no clock: a process may sleep for ever before any statement.

   Plant a bug with -DBUG_...; protocol/check.py runs them all and expects a violation of each. */

#ifndef COMMITTERS
#define COMMITTERS 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef DOUBTS
#define DOUBTS 1                /* puts whose client got no answer */
#endif
#ifndef APPENDS
#define APPENDS 1               /* versions of the outside writer */
#endif
#ifndef PRUNES
#define PRUNES 1                /* whether it prunes */
#endif
#ifndef TRIES
#define TRIES 3                 /* puts of all committers together */
#endif

#define LAST 5                  /* version numbers that are looked at: 1 is the one the work was staged on */

#define NOTHING 0
#define OTHER 1                 /* a version of somebody else */
#define WITHDRAWN 2             /* a fence version */
#define LANDED 3                /* LANDED + t: the attempt, by try t, which wrote the file own[t] (a rebased deletion file) */
#define IS_LANDING(x) ((x) >= LANDED)
#define AGAIN_LANDED (LANDED + TRIES + 1)       /* the attempt of the further try */

/* What happened at a number cannot be read any more: pruned, and maybe taken since by a put that came too late. */
#ifdef BUG_TRUSTS_STRAYS
#define GONE(n) (pruned[n] && version[n] == NOTHING)
#else
#define GONE(n) (pruned[n] || stray[n])
#endif

/* With -DTRACE the model only makes the writes of the file trace.txt, in that order; it accepts the trace when the last one is
   made, which shows as a violated assertion. Without it every order is tried. See protocol/traces.py. */
#define W_FENCE 1
#define W_PUT 2
#define W_LEDGER 3
#define W_FINISHED_GONE 4
#define W_FENCE_GONE 5
#define W_FILES_GONE 6
#define WRITERS 8               /* code * WRITERS + the actor: committers from 0, who gives up, the outside writer */
#define GIVES_UP COMMITTERS
#define OUTSIDE (COMMITTERS + 1)
#ifdef TRACE
c_decl {
    static int trace_[256], length_ = -1;
    static int trace_at(int n) {
        if (length_ < 0) {
            FILE *file = fopen("trace.txt", "r");
            length_ = 0;
            while (file && length_ < 255 && fscanf(file, "%d", &trace_[length_]) == 1) length_++;
            if (file) fclose(file);
        }
        return n < length_ ? trace_[n] : 0;
    }
}
byte pos = 0;
byte next_write = 0;
#define NEXT(what, who) (next_write == (what) * WRITERS + (who))
#define SEEN pos++; c_code { now.next_write = trace_at(now.pos); }; assert(next_write != 0)
#else
#define NEXT(what, who) true
#define SEEN skip
#endif

#define NOT_DECIDED 0
#define PUBLISH 1
#define WITHDRAW 2
#define APART 3

byte version[LAST + 2];         /* what lies at a number: NOTHING when it was never taken, or when it was pruned */
bit pruned[LAST + 2];
bit stray[LAST + 2];            /* put where others had been pruned: no later version comes from it */
byte newest = 1;

byte finished = 1;              /* finished.json: of the first attempt, or 2: of the further try; there is one for both */
byte fence = NOT_DECIDED;       /* fence.json */
byte group = NOT_DECIDED;       /* the record of the attempt's group: it decides for version 2 */
bit ledger = 0;                 /* the ledger's record */
bit named[COMMITTERS + 1];      /* commits at work that the fences name: each has its claim */
bit left = 0;                   /* the fences name a commit that died, or ended with a put in doubt: its claim stays */
bit files = 1;                  /* what the attempt wrote */
bit own[TRIES + 2];             /* what a try of a commit wrote; the last one is the further try's, whose files all stay */
byte tries = 0;

byte crashes = 0;
byte doubts = 0;
byte late_at = 0;               /* a put on its way: the number, and what it carries */
byte late_what = NOTHING;

/* Ghosts: for the invariants alone. */
byte landings = 0;
bit first_landed = 0;
bit told_removed = 0;

/* 1  A version that counts never refers to a file that is gone.  2  An attempt lands at most once.
   3  What was said to be removed has not landed, and does not land.  */
hidden byte v_;
#define CHECK check()
inline check() {
    v_ = 2;
    do
    :: v_ <= newest ->
        assert(!(IS_LANDING(version[v_]) && !stray[v_]) || version[v_] == AGAIN_LANDED || (files && own[version[v_] - LANDED]));
        v_++
    :: else -> break
    od;
    v_ = 0;
    assert(landings <= 1);
    assert(!(told_removed && first_landed))
}

inline place(number, what) {
    version[number] = what;
    if
    :: number <= newest -> stray[number] = 1
    :: else ->
        stray[number] = 0;
        newest = number;
        if
        :: IS_LANDING(what) -> landings++; first_landed = first_landed | (what != AGAIN_LANDED)
        :: else -> skip
        fi
    fi;
    CHECK
}

#define OURS 1
#define LOST 2
#define DOUBT 3

/* One conditional put, inside an atomic step. In doubt: done and the answer lost, or on its way, or never done. */
inline put(number, what, outcome, who) {
    if
    :: version[number] != NOTHING -> outcome = LOST
    :: version[number] == NOTHING && NEXT(W_PUT, who) -> SEEN; place(number, what); outcome = OURS
    :: version[number] == NOTHING && doubts < DOUBTS && NEXT(W_PUT, who) -> SEEN; doubts++; place(number, what); outcome = DOUBT
    :: version[number] == NOTHING && doubts < DOUBTS && late_at == 0 ->
        doubts++; late_at = number; late_what = what; outcome = DOUBT
    fi
}

/* Behind a write, in one atomic step with it: to die later, but before the next write, leaves the same behind. */
#define MAY_CRASH if :: crashes < CRASHES -> crashes++; goto begin :: skip fi

inline tell_ledger(who) {
    atomic {
        if
        :: ledger
        :: !ledger && NEXT(W_LEDGER, who) -> SEEN; ledger = 1
        fi;
        MAY_CRASH
    }
}

inline drop_finished(who) {
    atomic {
        if
        :: finished != 1
        :: finished == 1 && NEXT(W_FINISHED_GONE, who) -> SEEN; finished = 0
        fi;
        MAY_CRASH
    }
}

inline lift_fence(who) {
    atomic {
        if
        :: fence == NOT_DECIDED
        :: fence != NOT_DECIDED && NEXT(W_FENCE_GONE, who) -> SEEN; fence = NOT_DECIDED; forget_names()
        fi;
        MAY_CRASH
    }
}

hidden byte k_;
inline forget_names() {
    left = 0;
    for (k_ : 0 .. COMMITTERS) { named[k_] = 0 };
    k_ = 0
}

/* Behind a gap: does a fence name a commit whose claim is still there? Asked one by one, by name. */
inline is_doubtful(answer, who) {
    d_step {
        answer = left;
        for (k_ : 0 .. COMMITTERS) {
            if
            :: named[k_] && k_ != who -> answer = 1
            :: else
            fi
        };
        k_ = 0
    }
}

#ifdef BUG_GROUP_IS_NO_EVIDENCE
#define WAS_TO_BE_PUBLISHED (fence == PUBLISH)
#else
#define WAS_TO_BE_PUBLISHED (fence == PUBLISH || group == PUBLISH)
#endif

proctype Commit(byte id) {
    byte read = 0, v = 0, mine = 0, outcome = 0, found = 0, former = 0;
    bit fenced, doubtful, gap, is_own, is_first, by_group;

begin:
    skip;
    d_step {
        read = 0; v = 0; mine = 0; outcome = 0; found = 0; former = 0; fenced = 0; doubtful = 0; gap = 0; is_own = 0; is_first = 0;
        by_group = 0;
        left = left | named[id];        /* whoever begins anew is another commit; the claim of the former stays */
        named[id] = 0
    };

    /* The ledger says where to look; then every version since the one it was staged on. */
#ifndef LATER                           /* staging has asked already: what has landed since is in the log */
    if
    :: ledger -> goto said_landed
    :: else
    fi;
#endif
    d_step {
        v = 2; gap = 0; found = 0;
        do
        :: v <= newest ->
            if
            :: IS_LANDING(version[v]) && !stray[v] -> found = version[v]
            :: GONE(v) -> gap = 1
            :: else
            fi;
            v++
        :: else -> break
        od;
        v = 0
    };
    if
    :: found != 0 -> goto landed
    :: else
    fi;
    if
    :: gap ->
        if
        :: WAS_TO_BE_PUBLISHED ->                   /* commits were about to publish it, and the history is gone */
            is_doubtful(doubtful, id);
            if
            :: doubtful -> doubtful = 0; goto end
            :: else
            fi
        :: else
        fi;
        if
        :: ledger -> goto said_landed               /* once more: who landed it has told the ledger before it ended */
        :: else
        fi
    :: else
    fi;
    if
    :: finished != 1 -> goto refused
    :: else
    fi;
    read = 1;

    do
    ::  v = newest;
        /* Judge each version between the one that was read and the newest; then write the try's own file, the deletions of
           the rows as they are now. Nobody else can see that, so it is one step. */
        atomic {
            outcome = 0;
            do
            :: read < v ->
                read++;
                if
                :: GONE(read) -> outcome = LOST
                :: IS_LANDING(version[read]) && !stray[read] -> found = version[read]
                :: version[read] == WITHDRAWN && !GONE(read) -> outcome = DOUBT
                :: else
                fi
            :: else -> break
            od;
            if
            :: found != 0 -> goto landed
#ifndef BUG_IGNORES_FENCE_VERSION
            :: found == 0 && outcome == DOUBT -> goto refused       /* a fence version withdrew it */
#endif
            :: found == 0 && outcome == LOST -> goto refused        /* history is gone: plan again */
            :: else
            fi;
            if
            :: tries >= TRIES || v >= LAST -> goto refused
            :: else -> former = mine; tries++; mine = tries; own[mine] = 1; MAY_CRASH
            fi
        };
#ifdef BUG_LOOKS_BEFORE_FENCE
        if
        :: !files || finished != 1 -> goto refused
        :: else
        fi;
#endif
#ifndef BUG_NO_FENCE
#if defined(GROUP) && !defined(BUG_GROUP_DECIDES_FOR_GOOD)
        if
        :: by_group && v + 1 != 2 -> by_group = 0; fenced = 0       /* it was decided for version 2 only */
        :: else
        fi;
#endif
        if
        :: fenced
        :: !fenced ->
#ifdef GROUP
            if
            :: v + 1 == 2 ->
                atomic {
                    if
                    :: group == NOT_DECIDED -> group = PUBLISH; named[id] = 1; by_group = 1; MAY_CRASH
                    :: else
                    fi
                }
            :: else
            fi;
#endif
            atomic {
                if
                :: by_group
                :: !by_group && fence == NOT_DECIDED && NEXT(W_FENCE, id) -> SEEN; fence = PUBLISH; named[id] = 1; is_first = 1; MAY_CRASH
                :: !by_group && fence == PUBLISH -> named[id] = 1
                :: !by_group && fence == WITHDRAW -> goto refused
                fi
            };
#ifndef BUG_LOOKS_BEFORE_FENCE
            if
            :: !files || finished != 1 ->           /* given up, or landed, and the fence lifted again */
                if
                :: is_first -> atomic {             /* a commit without a claim takes its fence back: nobody can publish it */
                    if
                    :: fence == PUBLISH && NEXT(W_FENCE_GONE, id) -> SEEN; fence = NOT_DECIDED; forget_names(); MAY_CRASH
                    :: true
                    fi }
                :: else
                fi;
                if
                :: ledger -> goto said_landed
                :: else -> goto refused
                fi
            :: else
            fi;
#endif
            fenced = 1
        fi;
#endif
        atomic {
            put(v + 1, LANDED + mine, outcome, id);
            gap = (outcome == OURS && stray[v + 1]);
            MAY_CRASH
        };
        if
        :: outcome == OURS
        :: outcome == DOUBT ->
            atomic {
                if
                :: version[v + 1] == LANDED + mine -> outcome = OURS; gap = stray[v + 1]
                :: else -> doubtful = 1
                fi
            }
        :: else
        fi;
        if
        :: outcome == OURS ->
#ifndef BUG_NO_LOOK_AFTER_PUT
            if
            :: gap -> goto unknown                  /* the number had been pruned: no later version comes from it */
            :: else
            fi;
#endif
            found = LANDED + mine;
            is_own = 1;
            goto landed
        :: else                                     /* somebody else's, or a late put of ours: judge it, then once more */
        fi
    od;

landed:
    /* Ledger first, then everything else. */
#ifndef BUG_CLEARS_BEFORE_LEDGER
    tell_ledger(id);
#endif
    if
#ifdef BUG_DELETES_IN_DOUBT
    :: former != 0 -> atomic { own[former] = 0; CHECK; MAY_CRASH }
#else
    :: former != 0 && found != LANDED + former && !doubtful -> atomic { own[former] = 0; CHECK; MAY_CRASH }
#endif
    :: else
    fi;
said_landed:
    assert(landings == 1);
    /* What another commit has landed is cleared like all that is removed: behind a fence, also where the other has lifted its
       own in the meantime. */
    if
    :: !is_own && finished == 1 ->
        atomic {
            if
            :: fence == NOT_DECIDED && NEXT(W_FENCE, id) -> SEEN; fence = WITHDRAW; MAY_CRASH
            :: fence != NOT_DECIDED
            fi
        }
    :: else
    fi;
    drop_finished(id);
    lift_fence(id);
#ifdef GROUP
    if
    :: by_group && is_own -> atomic { group = NOT_DECIDED; MAY_CRASH }      /* there is a version behind it by now */
    :: else
    fi;
#endif
#ifdef BUG_CLEARS_BEFORE_LEDGER
    ledger = 1;
#endif
    goto end;
refused:
unknown:
    /* The claim goes, unless a put of this commit may still land. */
    if
#ifdef BUG_FORGETS_DOUBT
    :: true -> named[id] = 0
#else
    :: doubtful -> atomic { left = left | named[id]; named[id] = 0 }
    :: else -> named[id] = 0
#endif
    fi;
end:
    skip
}

proctype GiveUp() {
    byte v = 0, outcome = 0;
    bit gap, seen, is_new, withdrawn, doubtful, is_open, covered;

begin:
    skip;
    d_step { v = 0; outcome = 0; gap = 0; seen = 0; is_new = 0; withdrawn = 0; doubtful = 0; is_open = 0; covered = 0 };
#ifdef BUG_LOOKS_BEFORE_FLAG
    goto look;
#endif
flag:
#if defined(GROUP) && !defined(BUG_GROUP_IS_NOT_KEPT_APART)
    is_open = newest == 1;                          /* a group decides nothing once there is a version behind */
    if
    :: is_open ->
        atomic {
            covered = group == PUBLISH;
            if
            :: group == NOT_DECIDED -> group = APART; MAY_CRASH
            :: else
            fi
        }
    :: else
    fi;
    if
    :: covered -> withdrawn = (fence == WITHDRAW); goto look
    :: else
    fi;
#endif
    atomic {
        if
        :: fence == NOT_DECIDED && NEXT(W_FENCE, GIVES_UP) -> SEEN; fence = WITHDRAW; is_new = 1; withdrawn = 1; MAY_CRASH
        :: fence == WITHDRAW -> withdrawn = 1
        :: fence == PUBLISH -> withdrawn = 0
        fi
    };
#ifdef BUG_LOOKS_BEFORE_FLAG
    goto remove;
#endif
look:
    if
    :: ledger -> goto has_landed
    :: else
    fi;
    d_step {
        v = 2; gap = 0; seen = 0;
        do
        :: v <= newest ->
            if
            :: IS_LANDING(version[v]) && !stray[v] -> seen = 1
            :: GONE(v) -> gap = 1
            :: else
            fi;
            v++
        :: else -> break
        od;
        v = 0
    };
    if
    :: seen ->
        tell_ledger(GIVES_UP);                      /* whoever finds a landing in the log tells the ledger */
        goto has_landed
    :: else
    fi;
#ifdef BUG_LOOKS_BEFORE_FLAG
    goto flag;
#endif
#ifndef BUG_GUESSES_PAST_GAPS
    if
    :: gap ->
        /* What was in the gap? Fenced for publishing, and a commit that the fences name has not ended, or ended in doubt:
           nobody knows. Else the ledger was told first. */
        if
        :: WAS_TO_BE_PUBLISHED ->
            is_doubtful(doubtful, COMMITTERS);
            if
            :: doubtful -> goto unknown
            :: else
            fi
        :: else
        fi;
#ifndef BUG_READS_LEDGER_ONCE
        if
        :: ledger -> goto has_landed
        :: else
        fi
#endif
    :: else
    fi;
#endif
#ifdef BUG_NO_FENCE_VERSION
    goto remove;
#endif
    if
    :: withdrawn -> goto remove
    :: else
    fi;
    /* A commit was about to publish it, and its put may still be on its way: make every such put lose. */
    do
    ::  v = newest;
        if
        :: v >= LAST -> goto unknown
        :: else
        fi;
        atomic { put(v + 1, WITHDRAWN, outcome, GIVES_UP); MAY_CRASH };
        if
        :: version[v + 1] == WITHDRAWN && !stray[v + 1] -> break
        :: version[v + 1] == WITHDRAWN && stray[v + 1] -> goto unknown  /* nobody comes from it, so nobody has lost by it */
        :: else
        fi
    od;
    withdrawn = 1;
    goto look;

remove:
#ifdef BUG_LIFTS_FENCE_FIRST
    lift_fence(GIVES_UP);
#endif
    drop_finished(GIVES_UP);
    atomic {
        if
        :: !files
        :: files && NEXT(W_FILES_GONE, GIVES_UP) -> SEEN; files = 0
        fi;
        CHECK;
        MAY_CRASH
    };
    lift_fence(GIVES_UP);
    atomic { told_removed = 1; CHECK };
    goto end;
has_landed:
    if
    :: is_new -> lift_fence(GIVES_UP)
    :: else
    fi;
unknown:
end:
    skip
}

#ifdef AGAIN
/* A further try of the staging task. It reads the newest version, then whether anything is staged, then the ledger; its
   attempt is `later_only`: its commit reads the versions after that one, and the ledger only behind a gap. */
proctype Again() {
    byte since = 0, read = 0, v = 0, outcome = 0;
    bit gap = 0, seen = 0;

#ifdef BUG_ASKS_LEDGER_EARLY
    if
    :: ledger -> goto end
    :: else
    fi;
#endif
    since = newest;
#ifndef BUG_NOT_ASKED_WHAT_IS_STAGED
    if
    :: finished -> goto end
    :: else
    fi;
#endif
#ifndef BUG_ASKS_LEDGER_EARLY
    if
    :: ledger -> goto end
    :: else
    fi;
#endif
    atomic {
        if
        :: finished -> goto end
        :: else -> finished = 2
        fi
    };

    /* Its commit. */
    read = since;
    do
    ::  v = newest;
        d_step {
            gap = 0; seen = 0;
            do
            :: read < v ->
                read++;
                if
                :: GONE(read) -> gap = 1
                :: IS_LANDING(version[read]) && !stray[read] -> seen = 1
                :: else
                fi
            :: else -> break
            od
        };
        if
        :: seen -> break                            /* it has landed already */
        :: else
        fi;
        if
        :: gap -> goto end                          /* the ledger is asked, and else the work is planned again */
        :: else
        fi;
        if
        :: tries >= TRIES || v >= LAST -> goto end
        :: else
        fi;
        atomic {
            tries++;
            put(v + 1, AGAIN_LANDED, outcome, OUTSIDE);
            gap = (outcome == OURS && stray[v + 1])
        };
        if
        :: outcome == OURS && gap -> goto end       /* no later version comes from it */
        :: outcome == OURS && !gap -> break
        :: else
        fi
    od;
    ledger = 1;
    atomic {
        if
        :: finished == 2 -> finished = 0
        :: else
        fi
    };
end:
    skip
}
#endif

#ifdef GROUP
/* Removes the record of the group when it decides nothing and nobody will ask what it says. */
proctype Tidy() {
end_idle:
    do
#ifdef BUG_GROUP_GOES_EARLY
    :: atomic { group != NOT_DECIDED -> group = NOT_DECIDED }
#else
    :: atomic { newest > 1 && group == APART -> group = NOT_DECIDED }
    :: atomic { newest > 1 && group == PUBLISH && (ledger || finished != 1) -> group = NOT_DECIDED }
#endif
    od
}
#endif

/* Another library: appends, and prunes every version but the newest. */
proctype Outsider() {
    byte n = 0, v = 0;
    do
    :: n < APPENDS ->
        n++;
        v = newest;
        atomic {
            if
            :: v < LAST && version[v + 1] == NOTHING && NEXT(W_PUT, OUTSIDE) -> SEEN; place(v + 1, OTHER)
            :: v >= LAST || version[v + 1] != NOTHING
            fi;
            v = 0
        }
    :: n == APPENDS && PRUNES ->
        d_step {
            v = 1;
            do
            :: v < newest -> version[v] = NOTHING; pruned[v] = 1; stray[v] = 0; v++
            :: else -> break
            od;
            v = 0
        };
        break
    :: n == APPENDS && !PRUNES -> break
    od
}

/* Delivers a put that its client has given up. */
proctype Network() {
end_idle:
    do
    :: atomic {
        late_at != 0 ->
            if
            :: version[late_at] == NOTHING -> place(late_at, late_what)
            :: else
            fi;
            late_at = 0; late_what = NOTHING
        }
    od
}

init {
    byte n = 0;
    atomic {
        version[1] = OTHER;
#ifdef TRACE
        c_code { now.next_write = trace_at(0); };
#endif
        do
        :: n < COMMITTERS -> run Commit(n); n++
        :: else -> break
        od;
        run GiveUp();
#ifdef AGAIN
        run Again();
#endif
#ifdef GROUP
        run Tidy();
#endif
        run Outsider();
        run Network()
    }
}
