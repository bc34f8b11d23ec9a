/* Exactly once on four records: attempts, decision logs, intents, segments. See docs/adr/057-few-records.md; checked by `make model`.

   Identity 0 is staged by two tries (attempts 1 and 2; the second adopts the part that the first has written), identity 1 (-DGROUP) has been
   staged and is committed with it. Actors: two tries of staging, COMMITTERS commits, an abort, a cleanup of this library that prunes versions,
   one who folds decisions into a segment, an outside writer, and the network, which may deliver a put long after its client has given up.
   Each statement that touches shared state is one store call, or several that nobody can tell from one. A kill loses what an actor knew,
   never what it wrote: a commit or an abort begins anew, the others have ended. There is no clock. When all have ended, the collector
   (an abort of whatever is left) runs alone, and nothing may stay.

   Leave out a rule with -DBUG and its name; protocol/check.py runs them all and expects a violation of each. */

#ifndef COMMITTERS
#define COMMITTERS 1
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef DOUBTS
#define DOUBTS 1                /* puts whose client got no answer, of manifests and of decisions */
#endif
#ifndef APPENDS
#define APPENDS 0               /* versions of the outside writer */
#endif

#define LAST 8                  /* version numbers; 1 is the one the work was staged on */
#define ROOM 5                  /* the collector has the rest */
#define NUMBERS 9               /* of a decision log, from 1 */
#define INTENTS 5

#define NOTHING 0
#define OTHER 1                 /* a version of somebody else */
#define ABORT 2                 /* ABORT + a: says that attempt a is aborted */
#define LANDED 8                /* LANDED + a + 4 * (identity 1 is in it, too) */
#define HAS(w, a) ((w) >= LANDED && (((w) - LANDED) & 3) == (a))
#define HAS_ONE(w) ((w) >= LANDED && (w) - LANDED >= 4)

/* A decision carries the whole state of its identity after it. */
#define FIN(s) ((s) & 3)                                /* the attempt that is finished and neither committed nor aborted */
#define COM(s) (((s) >> 2) & 3)                         /* the last attempt that was committed */
#define AB1(s) (((s) >> 4) & 3)                         /* attempt 1: 1 aborted, 2 aborted by the attempt that adopts its parts */
#define AB2(s) (((s) >> 6) & 1)
#define STATE(fin, com, ab1, ab2) (128 | (fin) | ((com) << 2) | ((ab1) << 4) | ((ab2) << 6))
#ifdef SUPERSEDE                /* a commit stages attempt 2 on a newer version, in the place of attempt 1, which is finished: AB1 is 3 then */
#define SUPERSEDED(s) (AB1(s) == 3)
#define IS_ABORTED(s, a) ((a) == 1 && AB1(s) != 0 && AB1(s) != 3 || (a) == 2 && AB2(s))
#define IS_OVER(s, a) (COM(s) || IS_ABORTED(s, a))
#define IS_OF(w, a) (HAS(w, 1) || HAS(w, 2))            /* a version names the identity, whichever attempt it was */
#define LANDED_AS(a) (landings[2] -> 2 : 1)
#ifdef BUG_ABORT_NAMES_THE_LAST_ONLY
#define ABORTS_IN(w, a) ((w) == ABORT + (a))
#else
#define ABORTS_IN(w, a) ((w) == ABORT + (a) || (w) == ABORT + 2)
#endif
#define AFTER(s, a) 0
#define IS_NAMED(x, a) (I_ATTEMPT(x) != 0)
#else
#define SUPERSEDED(s) false
#define IS_ABORTED(s, a) ((a) == 1 && AB1(s) != 0 || (a) == 2 && AB2(s))
#define IS_OVER(s, a) IS_DECIDED(s, a)
#define IS_OF(w, a) HAS(w, a)
#define LANDED_AS(a) (a)
#define ABORTS_IN(w, a) ((w) == ABORT + (a))
#define AFTER(s, a) (FIN(s) == (a) -> 0 : FIN(s))       /* what is finished when `a` has come to its end */
#define IS_NAMED(x, a) (I_ATTEMPT(x) == (a))
#endif
#ifdef CLEAR                    /* a person clears the task: attempt 2 begins when attempt 1 is committed, and both count */
#define CLEARED true
#define IS_COMMITTED(s, a) (COM(s) >= (a))
#else
#define CLEARED false
#define IS_COMMITTED(s, a) (COM(s) == (a))
#endif
#define IS_DECIDED(s, a) (IS_COMMITTED(s, a) || IS_ABORTED(s, a))

/* An intent: the attempt of identity 0 (0: none), whether identity 1 is in it, whether it aborts, the newest version before it. */
#define INTENT(a, one, aborts, base) (128 | (a) | ((one) << 2) | ((aborts) << 3) | ((base) << 4))
#define I_ATTEMPT(x) ((x) & 3)
#define I_ONE(x) (((x) >> 2) & 1)
#define I_ABORTS(x) (((x) >> 3) & 1)
#define I_BASE(x) (((x) >> 4) & 7)

byte version[LAST + 2];
bit pruned[LAST + 2];
bit stray[LAST + 2];            /* put where others had been pruned: no later version comes from it */
byte newest = 1;
#define GONE(n) (pruned[n] || stray[n])

byte decision[2 * NUMBERS];    /* identity * NUMBERS + number */
#ifdef FOLD
byte segment[2];               /* the state of each identity, and its highest number, in all segments */
byte high[2];
#endif
byte intent[INTENTS];
byte settled = 1;               /* what landed up to this version has its decision: a cleanup says so before it prunes */

bit started[3];                 /* by attempt */
bit adopts = 0;                 /* the record of attempt 2 names the part of attempt 1 */
bit part[3];                    /* what each attempt has written */
#ifdef SUPERSEDE
bit restaged = 0;               /* attempt 2 was begun: one commit stages again, once */
byte planned = 1;               /* the version that attempt 2 was planned on: its commit judges those behind it */
#define BASE_OF(a) ((a) == 2 -> planned : 1)
#endif
bit uses_first = 0;             /* the transaction of attempt 2 refers to the part of attempt 1 */

byte reference = 0;             /* what staging has returned: the attempt */
byte ended = 0;
byte staged_ended = 0;
bit collecting = 0;
bit no_answer = 0;              /* somebody was told that the outcome is unknown */
byte kills = 0;
byte doubts = 0;
byte tries = 0;
byte late_at = 0;               /* a manifest on its way */
byte late_what = 0;
byte late_number = 0;           /* a decision on its way: its place */
byte late_state = 0;

/* Ghosts. */
byte landings[3];               /* of identity 0, by attempt */
byte landings_one = 0;
bit told_removed[3];

#ifdef SUPERSEDE
#define SUPERSEDES true
#else
#define SUPERSEDES false
#endif

/* 1  What is published is there.  2  An attempt lands once, and two attempts only where a person cleared the task.
   3  What was said to be removed has not landed, and does not land. */
#define CHECK \
    assert(landings[1] <= 1 && landings[2] <= 1 && landings_one <= 1); \
    assert(landings[1] == 0 || part[1]); \
    assert(landings[2] == 0 || part[2] && (!uses_first || part[1])); \
    assert(!(told_removed[1] && landings[1]) && !(told_removed[2] && landings[2])); \
    assert(!(told_removed[1] && SUPERSEDES && landings[2])); \
    assert(CLEARED || landings[1] + landings[2] <= 1)
inline place(number, what) {
    version[number] = what;
    if
    :: number <= newest -> stray[number] = 1
    :: else ->
        stray[number] = 0;
        pruned[number] = 0;
        newest = number;
        if
        :: HAS(what, 1) -> landings[1]++
        :: HAS(what, 2) -> landings[2]++
        :: else
        fi;
        if
        :: HAS_ONE(what) -> landings_one++
        :: else
        fi
    fi;
    CHECK
}

#define OURS 1
#define LOST 2
#define DOUBT 3

#define MAY_DOUBT (!collecting && doubts < DOUBTS)

/* Conditional puts, inside atomic steps. In doubt: done and the answer lost, or on its way, or never done. */
inline put_version(number, what, outcome) {
    if
    :: version[number] != NOTHING -> outcome = LOST
    :: version[number] == NOTHING -> place(number, what); outcome = OURS
    :: version[number] == NOTHING && MAY_DOUBT -> doubts++; place(number, what); outcome = DOUBT
    :: version[number] == NOTHING && MAY_DOUBT && late_at == 0 ->
        doubts++; late_at = number; late_what = what; outcome = DOUBT
    fi
}

inline put_decision(where, state, outcome) {
    assert((where) % NUMBERS != 0);
    if
    :: decision[where] != 0 -> outcome = LOST
    :: decision[where] == 0 -> decision[where] = state; outcome = OURS
    :: decision[where] == 0 && MAY_DOUBT -> doubts++; decision[where] = state; outcome = DOUBT
    :: decision[where] == 0 && MAY_DOUBT && late_number == 0 ->
        doubts++; late_number = where; late_state = state; outcome = DOUBT
    fi
}

/* Behind a write, in one step with it: to die later, but before the next write, leaves the same behind. */
#define MAY_DIE(label) if :: !collecting && kills < KILLS -> kills++; goto label :: true fi

/* The state of an identity: its numbers are listed and the highest is read, then the segments: what is at or below their number is void. */
hidden byte k_;
inline list_numbers(i, hi, s) {
    d_step {
        hi = 0; s = 0;
        for (k_ : 1 .. NUMBERS - 1) {
            if
            :: decision[(i) * NUMBERS + k_] != 0 -> hi = k_; s = decision[(i) * NUMBERS + k_]
            :: else
            fi
        };
        k_ = 0
    }
}
inline look(i, hi, s) {
#if !defined(FOLD)
    list_numbers(i, hi, s)
#elif defined(BUG_SEGMENTS_FIRST)
    d_step { seg_hi = high[i]; seg_s = segment[i] };
    atomic {
        list_numbers(i, hi, s);
        if
        :: seg_hi >= hi -> hi = seg_hi; s = seg_s
        :: else
        fi;
        seg_hi = 0; seg_s = 0
    }
#elif defined(BUG_NUMBERS_ARE_FREE_AGAIN)
    list_numbers(i, hi, s);
    d_step {
        if
        :: hi == 0 -> hi = high[i]; s = segment[i]
        :: else
        fi
    }
#else
    list_numbers(i, hi, s);
    d_step {
        if
        :: high[i] >= hi -> hi = high[i]; s = segment[i]
        :: else
        fi
    }
#endif
}

#ifdef BUG_LOSER_DOES_NOT_READ
#define READ_AGAIN(i) if :: outcome == LOST -> hi++ :: else -> look(i, hi, s) fi
#else
#define READ_AGAIN(i) look(i, hi, s)
#endif

/* `committed`: whoever loses the number reads again, and finds it said or says it in the state that it read. */
inline say_committed(i, a, dead) {
    look(i, hi, s);
    do
    :: IS_COMMITTED(s, a) -> break
    :: !IS_COMMITTED(s, a) ->
        assert(!IS_ABORTED(s, a));
        atomic {
            put_decision((i) * NUMBERS + hi + 1, STATE(AFTER(s, a), a, AB1(s), AB2(s)), outcome);
            MAY_DIE(dead)
        };
        if
        :: outcome == OURS -> break
        :: else -> READ_AGAIN(i)
        fi
    od;
    outcome = 0
}

/* `aborted`, by an abort (how 1) or by the attempt that adopts (how 2). Read once more behind the put: the number may be void. `s` says how it ended. */
inline say_aborted(a, how, dead) {
    look(0, hi, s);
    do
    :: IS_DECIDED(s, a) -> break
    :: !(IS_DECIDED(s, a)) ->
        if
        :: FIN(s) == (a) && !is_behind -> break
#if defined(SUPERSEDE) && !defined(BUG_ABORTS_THE_SUPERSEDED_ALONE)
        :: (a) == 1 && SUPERSEDED(s) -> break           /* another stands in its place */
#endif
        :: else
        fi;
        atomic {
#ifdef BUG_STATE_IS_NOT_WHOLE
            put_decision(hi + 1, STATE(0, COM(s), ((a) == 1 -> how : 0), (a) == 2), outcome);
#elif defined(SUPERSEDE)
            put_decision(hi + 1, STATE((FIN(s) == (a) -> 0 : FIN(s)), COM(s), ((a) == 1 || FIN(s) == 2 && SUPERSEDED(s) -> how : AB1(s)), ((a) == 2 -> 1 : AB2(s))), outcome);
#else
            put_decision(hi + 1, STATE((FIN(s) == (a) -> 0 : FIN(s)), COM(s), ((a) == 1 -> how : AB1(s)), ((a) == 2 -> 1 : AB2(s))), outcome);
#endif
            MAY_DIE(dead)
        };
#ifdef BUG_VOID_IS_NOT_SEEN
        if
        :: outcome == OURS -> s = decision[hi + 1]; break
        :: else
        fi;
#endif
        READ_AGAIN(0)
    od;
    outcome = 0
}

/* The one deleter: behind `aborted`, in `s` as it was read. First who adopts, then every version, then it deletes. */
inline remove(a, dead) {
#ifdef BUG_VERSIONS_BEFORE_ADOPTERS
    was_there = landings[2] && uses_first && (a) == 1 || landings[a];
#endif
#if defined(BUG_ADOPTED_IS_NOT_SPARED)
    spared = 0;
#else
    spared = (a) == 1 && started[2] && adopts && !AB2(s);
#endif
#ifdef BUG_VERSIONS_BEFORE_ADOPTERS
    spared = spared || was_there;
#elif !defined(BUG_DELETES_WITHOUT_LISTING)
    spared = spared || landings[2] && uses_first && (a) == 1 || landings[a];
#endif
    atomic { if :: !spared -> part[a] = 0; CHECK :: else fi; MAY_DIE(dead) };
    if
    :: (a) == 2 && adopts && !started[1] ->
        atomic { if :: !(landings[2] && uses_first || landings[1]) -> part[1] = 0; CHECK :: else fi; MAY_DIE(dead) }
    :: else
    fi;
    atomic { started[a] = 0; if :: (a) == 2 -> adopts = 0 :: else fi; MAY_DIE(dead) }
}

/* Removes intents whose identities all have their decision. That never changes again, so it is one step. */
#ifdef FOLD
#define IN_FORCE(i, n) ((n) > high[i])
#define SEGMENT(i) segment[i]
#else
#define IN_FORCE(i, n) true
#define SEGMENT(i) 0
#endif
hidden byte t0_, t1_;
inline truth() {
    t0_ = SEGMENT(0); t1_ = SEGMENT(1);
    for (k_ : 1 .. NUMBERS - 1) {
        if
        :: decision[k_] != 0 && IN_FORCE(0, k_) -> t0_ = decision[k_]
        :: else
        fi;
        if
        :: decision[NUMBERS + k_] != 0 && IN_FORCE(1, k_) -> t1_ = decision[NUMBERS + k_]
        :: else
        fi
    };
    k_ = 0
}
#ifdef BUG_INTENT_GOES_WITH_THE_FIRST
#define ONE_IS_DECIDED(x) true
#else
#define ONE_IS_DECIDED(x) (!I_ONE(x) || COM(t1_))
#endif
inline sweep_intents() {
    d_step {
        truth();
        for (k_ : 0 .. INTENTS - 1) {
            if
            :: intent[k_] != 0 && (I_ATTEMPT(intent[k_]) == 0 || IS_OVER(t0_, I_ATTEMPT(intent[k_]))) && ONE_IS_DECIDED(intent[k_]) ->
                intent[k_] = 0
            :: else
            fi
        };
        k_ = 0; t0_ = 0; t1_ = 0
    }
}

/* Does an intent of others name the attempt (or identity 1), with a version below `gap` as its base? */
inline is_intended(a, one, mine, commits_only, answer) {
    d_step {
        answer = 0;
        for (k_ : 0 .. INTENTS - 1) {
            if
            :: intent[k_] != 0 && k_ != mine && I_BASE(intent[k_]) < gap && !(commits_only && I_ABORTS(intent[k_])) &&
               ((a) != 0 && IS_NAMED(intent[k_], a) || (one) && I_ONE(intent[k_])) -> answer = 1
            :: else
            fi
        };
        k_ = 0
    }
}

inline put_intent(a, one, aborts, base, mine) {
    d_step {
        mine = INTENTS;
        for (k_ : 0 .. INTENTS - 1) {
            if
            :: intent[k_] == 0 && mine == INTENTS -> mine = k_
            :: else
            fi
        };
        k_ = 0;
        assert(mine < INTENTS);
        intent[mine] = INTENT(a, one, aborts, base)
    }
}

/* The log from `low` on: is the attempt there, is identity 1 there, is it aborted there, the highest number that is gone. */
inline scan(low, a) {
    d_step {
        v = newest; found = 0; found_one = 0; is_aborted = 0; gap = 0;
        for (k_ : 2 .. LAST) {
            if
            :: k_ > v
            :: k_ <= v && k_ > low && GONE(k_) -> gap = k_
            :: k_ <= v && k_ > low && !GONE(k_) ->
                if
                :: (a) != 0 && IS_OF(version[k_], a) -> found = 1
                :: (a) != 0 && ABORTS_IN(version[k_], a) -> is_aborted = 1
                :: else
                fi;
                if
                :: HAS_ONE(version[k_]) -> found_one = 1
                :: else
                fi
            :: else
            fi
        };
        k_ = 0
    }
}

/* Removes each version below one of them. */
inline prune(upto) {
    d_step {
        for (k_ : 1 .. LAST) {
            if
            :: k_ < (upto) -> version[k_] = NOTHING; pruned[k_] = 1; stray[k_] = 0
            :: else
            fi
        };
        k_ = 0
    }
}

#ifdef ABORTS
#define NUM_ABORTS 1
#else
#define NUM_ABORTS 0
#endif
#ifdef CLEANUP
#define NUM_CLEANUPS CLEANUP
#else
#define NUM_CLEANUPS 0
#endif
#ifdef FOLD
#define NUM_FOLDS 1
#else
#define NUM_FOLDS 0
#endif
#define ALL (2 + COMMITTERS + NUM_ABORTS + NUM_CLEANUPS + NUM_FOLDS + 1)

#define LIMIT (collecting -> LAST : ROOM)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

proctype Stage(byte a) {
    byte s = 0; byte hi = 0, outcome = 0;
    bit spared = 0, was_there = 0, sees = 0, is_behind = 0;
#ifdef BUG_SEGMENTS_FIRST
    byte seg_hi = 0; byte seg_s = 0;
#endif
#ifdef CLEAR
    if
    :: a == 2 -> (landings[1] || staged_ended == 1 && (reference == 0 || ended >= ALL - 1))
    :: else
    fi;
#endif
    look(0, hi, s);
    if
#ifdef CLEAR
    :: FIN(s) || a == 2 && COM(s) != 1 -> goto end
#else
    :: FIN(s) || COM(s) -> goto end
#endif
    :: else
    fi;
    /* `started` names what it adopts, before anything is decided. */
    sees = a == 2 && started[1] && part[1] && !IS_ABORTED(s, 1) && COM(s) == 0;
#if defined(BUG_ADOPTS_WITHOUT_RECORD)
    atomic { started[a] = 1; MAY_DIE(end) };
#else
    atomic { started[a] = 1; if :: a == 2 -> adopts = sees :: else fi; MAY_DIE(end) };
#endif
    if
    :: sees ->
#ifndef BUG_ADOPTS_WITHOUT_DECISION
        say_aborted(1, 2, end);
#ifdef BUG_ADOPTS_WHAT_OTHERS_ABORT
        if
        :: AB1(s) == 0 -> goto give_up
        :: else
        fi;
#else
        if
        :: AB1(s) == 0 -> goto give_up              /* it has finished after all */
        :: AB1(s) == 1 -> sees = 0                  /* another has decided, and may have looked for adopters before */
        :: AB1(s) == 2
        fi;
#endif
#endif
        if
        :: !part[1] -> sees = 0                     /* read once more; what was decided by this attempt is still there */
        :: else
        fi
    :: else
    fi;
    atomic { part[a] = 1; if :: a == 2 -> uses_first = sees :: else fi; MAY_DIE(end) };
    look(0, hi, s);
    do
    :: FIN(s) == a || IS_COMMITTED(s, a) -> break
    :: FIN(s) != a && !IS_COMMITTED(s, a) && (IS_ABORTED(s, a) || FIN(s) != 0 || COM(s) != 0 && !CLEARED) -> goto give_up
    :: FIN(s) == 0 && !IS_DECIDED(s, a) && (COM(s) == 0 || CLEARED) ->
        atomic { put_decision(hi + 1, STATE(a, COM(s), AB1(s), AB2(s)), outcome); MAY_DIE(end) };
        if
        :: outcome == OURS -> break
        :: else -> READ_AGAIN(0)
        fi
    od;
    skip;
    /* Staging says that the work is finished: it is so, unless somebody has decided since. */
    d_step { truth(); assert(FIN(t0_) == a || IS_DECIDED(t0_, a)); t0_ = 0; t1_ = 0; reference = a };
    goto end;
give_up:
#ifdef BUG_STALE_TRY_DELETES
    atomic { part[a] = 0; started[a] = 0; CHECK };
    goto end;
#endif
    say_aborted(a, 1, end);
    if
    :: IS_ABORTED(s, a) -> remove(a, end)
    :: else
    fi;
end:
    skip;
    d_step { s = 0; hi = 0; outcome = 0; spared = 0; sees = 0; staged_ended++; ended++ }
}

proctype Commit(bit group) {
    byte s = 0; byte hi = 0, outcome = 0;
    byte a = 0, v = 0, low = 0, gap = 0, known = 0, mine = INTENTS;
    bit one = 0, found = 0, found_one = 0, is_aborted = 0, in_doubt = 0, others = 0, intended = 0;
#ifdef BUG_SEGMENTS_FIRST
    byte seg_hi = 0; byte seg_s = 0;
#endif

begin:
    skip;
    d_step {
        s = 0; hi = 0; outcome = 0; a = 0; v = 0; low = 0; gap = 0; known = 0; mine = INTENTS; one = 0; found = 0;
        found_one = 0; is_aborted = 0; in_doubt = 0; others = 0; intended = 0
    };
    (reference != 0 || staged_ended == 2);
    a = reference;
    one = group;
    v = newest;
#if !defined(BUG_NO_INTENT) && !defined(BUG_INTENT_AFTER_MANIFEST)
    atomic { put_intent(a, one, 0, v, mine); intended = 1; MAY_DIE(begin) };
#endif

decisions:
    low = settled;
#ifdef BUG_ORDER_OF_ABSENCE
    gap = LAST;
    is_intended(a, one, mine, 0, others);
#endif
    if
    :: a ->
        look(0, hi, s);
        if
        :: COM(s) && (!CLEARED || COM(s) >= a) -> assert(landings[1] + landings[2] != 0 && landings[COM(s)]); a = 0
#ifdef SUPERSEDE
        :: !COM(s) && a == 1 && FIN(s) == 2 && SUPERSEDED(s) -> a = 2      /* what stands in its place */
        :: !COM(s) && a == 1 && FIN(s) != 1 && !(FIN(s) == 2 && SUPERSEDED(s)) -> assert(!landings[1] && !landings[2]); a = 0
        :: !COM(s) && a == 2 && FIN(s) != 2 -> assert(!landings[2]); a = 0
#else
#ifndef BUG_STALE_ATTEMPT
        :: FIN(s) != a && !(COM(s) && (!CLEARED || COM(s) >= a)) ->          /* the attempt is not the one in the state: aborted */
            assert(!landings[a]);
            a = 0
#endif
#endif
        :: else
        fi
    :: else
    fi;
    if
    :: one ->
        look(1, hi, s);
        if
        :: COM(s) -> assert(landings_one); one = 0
        :: else
        fi
    :: else
    fi;
    if
    :: a == 0 && one == 0 -> goto done
    :: else
    fi;
#ifndef BUG_ORDER_OF_ABSENCE
    /* A gap that was seen before the intents and the decisions: nothing of it is unknown that no intent names. */
    if
    :: gap > low && gap > known && others -> goto unknown
    :: gap > known && !(gap > low && others) -> known = gap
    :: else
    fi;
#endif

log:
#ifdef SUPERSEDE
    low = MAX(low, BASE_OF(a));
#endif
    scan(low, a);
    if
    :: found || found_one ->
        if
        :: found -> a = LANDED_AS(a); say_committed(0, a, begin); a = 0
        :: else
        fi;
        if
        :: found_one -> say_committed(1, 1, begin); one = 0
        :: else
        fi;
        if
        :: a == 0 && one == 0 -> goto done
        :: else
        fi
    :: else
    fi;
#ifndef BUG_IGNORES_ABORT_VERSION
    if
    :: a && is_aborted -> a = 0; goto decisions
    :: else
    fi;
#endif
#if defined(BUG_GUESSES_PAST_GAPS)
    gap = 0;
#elif defined(BUG_ORDER_OF_ABSENCE)
    if
    :: gap && others -> goto unknown
    :: else -> known = gap
    fi;
#endif
    if
    :: gap > known ->
        is_intended(a, one, mine, 0, others);
#ifdef BUG_DECISIONS_BEFORE_INTENTS
        if
        :: others -> goto unknown
        :: else -> known = gap
        fi
#else
        goto decisions
#endif
    :: else
    fi;
#ifdef SUPERSEDE
    /* Rows that it should have known: it is staged again on the newest version. */
    if
    :: atomic { a == 1 && !restaged && !collecting && !in_doubt -> restaged = 1; started[2] = 1; planned = newest; MAY_DIE(begin) };
        atomic { part[2] = 1; MAY_DIE(begin) };
        look(0, hi, s);
#ifndef BUG_SUPERSEDES_WITHOUT_LOOK
        scan(low, 1);
        if
        :: found -> a = LANDED_AS(a); say_committed(0, a, begin); a = 0; goto decisions
        :: is_aborted || gap > known -> goto decisions
        :: else
        fi;
#endif
        do
        :: FIN(s) != 1 -> break                         /* committed, or aborted */
        :: FIN(s) == 1 ->
            atomic {
                put_decision(hi + 1, STATE(2, COM(s), 3, AB2(s)), outcome);
#ifdef BUG_SUPERSEDED_GOES_AT_ONCE
                if :: outcome == OURS -> part[1] = 0; CHECK :: else fi;
#endif
                MAY_DIE(begin)
            };
            if
            :: outcome == OURS -> break
            :: else -> READ_AGAIN(0)
            fi
        od;
        outcome = 0;
        goto decisions
    :: true
    fi;
#endif
    if
    :: tries >= 3 && !collecting || v >= LIMIT -> goto refused
    :: else
    fi;
    atomic {
        tries++;
        put_version(v + 1, LANDED + a + 4 * one, outcome);
        found = outcome == OURS && stray[v + 1];
        MAY_DIE(begin)
    };
    if
    :: outcome == DOUBT -> in_doubt = 1; goto log
    :: outcome == LOST -> goto log
    :: outcome == OURS && found -> goto refused             /* no later version comes from it */
    :: outcome == OURS && !found
    fi;
#ifdef BUG_INTENT_AFTER_MANIFEST
    atomic { put_intent(a, one, 0, v, mine); intended = 1; MAY_DIE(begin) };
#endif
#ifdef BUG_INTENT_GOES_BEFORE_DECISIONS
    atomic { intent[mine] = 0; MAY_DIE(begin) };
#endif
    if
    :: a -> say_committed(0, a, begin); a = 0
    :: else
    fi;
#ifdef BUG_INTENT_GOES_WITH_THE_FIRST
    atomic { sweep_intents(); MAY_DIE(begin) };
#endif
    if
    :: one -> say_committed(1, 1, begin); one = 0
    :: else
    fi;
done:
    skip;
    /* What was committed needs no record of its start, what was not keeps it. */
    d_step {
        truth();
        if
        :: COM(t0_) -> started[COM(t0_)] = 0; if :: COM(t0_) == 2 -> adopts = 0 :: else fi
        :: else
        fi;
        t0_ = 0; t1_ = 0
    };
    atomic { sweep_intents(); MAY_DIE(begin) };
    goto end;
unknown:
    no_answer = 1;
#ifndef OUTSIDE_PRUNES
    assert(false);              /* the cleanup of this library leaves nothing unknown */
#endif
refused:
    /* The intent goes where no put of this commit may still land. */
    if
    :: intended && !in_doubt -> atomic { intent[mine] = 0; MAY_DIE(begin) }
    :: else
    fi;
    sweep_intents();
end:
    skip;
    d_step {
        s = 0; hi = 0; outcome = 0; a = 0; v = 0; low = 0; gap = 0; known = 0; mine = 0; one = 0; found = 0;
        found_one = 0; is_aborted = 0; in_doubt = 0; others = 0; intended = 0; ended++
    }
}

/* Abort of one attempt, by a person or by the collector. */
proctype Abort(byte whom) {
    byte a = whom;
    byte s = 0; byte hi = 0, outcome = 0;
    byte v = 0, low = 0, gap = 0, known = 0, mine = INTENTS;
    bit found = 0, found_one = 0, is_aborted = 0, others = 0, spared = 0, was_there = 0, is_behind = 0;
#ifdef BUG_SEGMENTS_FIRST
    byte seg_hi = 0; byte seg_s = 0;
#endif

begin:
    skip;
    d_step {
        s = 0; hi = 0; outcome = 0; v = 0; low = 0; gap = 0; known = 0; mine = INTENTS; found = 0; found_one = 0; is_aborted = 0;
        others = 0; spared = 0; was_there = 0; is_behind = 0; a = whom
    };
    if
    :: !started[a] -> goto swept            /* nothing of it is listed */
    :: else
    fi;
    look(0, hi, s);
again:
    if
    :: IS_ABORTED(s, a) -> goto removing
    :: IS_COMMITTED(s, a) -> goto committed
#ifdef SUPERSEDE
    :: COM(s) != 0 && !IS_DECIDED(s, a) ->
        if
        :: a == 2 && !SUPERSEDED(s) -> say_aborted(2, 1, begin)     /* it never finished */
        :: else
        fi;
        remove(a, begin);
        goto swept                          /* superseded, or it stands in the place of what was committed after all */
    :: COM(s) == 0 && FIN(s) == 2 && SUPERSEDED(s) && a == 1 -> a = 2
    :: FIN(s) != a && !IS_DECIDED(s, a) && COM(s) == 0 && !(FIN(s) == 2 && SUPERSEDED(s) && a == 1) ->
#else
    :: FIN(s) != a && !IS_DECIDED(s, a) ->
#endif
        say_aborted(a, 1, begin);           /* not finished: the decision alone */
        goto again                          /* it may have finished meanwhile */
    :: else
    fi;
    /* Finished work: an intent, a version that says so, `aborted`. */
    v = newest;
#ifndef BUG_ABORT_WITHOUT_INTENT
    atomic { put_intent(a, 0, 1, v, mine); MAY_DIE(begin) };
#endif
#ifndef BUG_ABORT_WITHOUT_VERSION
    do
    ::  v = newest;
        if
        :: v >= LIMIT -> goto kept
        :: else
        fi;
        atomic { put_version(v + 1, ABORT + a, outcome); MAY_DIE(begin) };
        if
        :: version[v + 1] == ABORT + a && !stray[v + 1] -> break
        :: version[v + 1] == ABORT + a && stray[v + 1] -> goto kept
        :: else
        fi
    od;
#endif
#ifdef BUG_DELETES_BEFORE_LISTING
    goto say;
#endif
decisions:
    low = settled;
    look(0, hi, s);
    if
    :: IS_ABORTED(s, a) -> goto removing
    :: IS_COMMITTED(s, a) -> goto committed
#ifdef SUPERSEDE
    :: !IS_DECIDED(s, a) && COM(s) != 0 -> goto again
#ifndef BUG_ABORTS_THE_SUPERSEDED_ALONE
    :: !IS_DECIDED(s, a) && COM(s) == 0 && SUPERSEDED(s) && a == 1 -> goto again
#endif
#endif
    :: else
    fi;
    if
    :: gap > low && gap > known && others -> goto unknown
    :: gap > known && !(gap > low && others) -> known = gap
    :: else
    fi;
    scan(low, a);
    if
    :: found -> a = LANDED_AS(a); say_committed(0, a, begin); goto committed
    :: else
    fi;
#ifdef BUG_GUESSES_PAST_GAPS
    gap = 0;
#endif
    if
    :: gap > known -> is_intended(a, 0, mine, 1, others); goto decisions
    :: else
    fi;
say:
    is_behind = 1;
    say_aborted(a, 1, begin);
    is_behind = 0;
    if
    :: IS_COMMITTED(s, a) -> goto committed
#ifdef SUPERSEDE
    :: !IS_DECIDED(s, a) -> goto again
#endif
    :: else
    fi;
removing:
    if
    :: landings[a] -> assert(false)         /* the listing shows it published: `aborted` was wrong */
    :: else
    fi;
    remove(a, begin);
#ifdef SUPERSEDE
    atomic { told_removed[a] = 1; if :: !collecting -> told_removed[whom] = 1 :: else fi; CHECK };
#else
    atomic { told_removed[a] = 1; CHECK };
#endif
    goto swept;
committed:
    assert(landings[a]);
    d_step { started[a] = 0; if :: a == 2 -> adopts = 0 :: else fi };
swept:
    atomic { sweep_intents(); MAY_DIE(begin) };
    /* Litter: a file is there, its attempt has no `started`, no living attempt adopts it, no version refers to it. In this order. */
#ifdef BUG_STARTED_BEFORE_FILES
    others = started[a];
    found = part[a];
#else
    found = part[a];
    if
    :: found -> look(0, hi, s); others = started[a]
    :: else
    fi;
#endif
    if
    :: found && !others -> remove(a, begin)
    :: else
    fi;
    goto end;
unknown:
#ifndef OUTSIDE_PRUNES
    assert(false);              /* the cleanup of this library leaves nothing unknown */
#endif
kept:
    no_answer = 1;
end:
    skip;
    d_step {
        s = 0; hi = 0; outcome = 0; v = 0; low = 0; gap = 0; known = 0; mine = 0; found = 0; found_one = 0; is_aborted = 0;
        others = 0; spared = 0; was_there = 0; is_behind = 0; ended++
    }
}

#ifdef CLEANUP
/* The cleanup of this library: which versions are there, then which intents, which it settles, then it prunes. */
proctype Cleanup() {
    byte s = 0; byte hi = 0, outcome = 0;
    byte v = 0, upto = 0, low = 0, gap = 0, k = 0, a = 0;
    bit one = 0, found = 0, found_one = 0, is_aborted = 0, is_behind = 1, unknown = 0;
    byte listed[INTENTS];
#ifdef BUG_SEGMENTS_FIRST
    byte seg_hi = 0; byte seg_s = 0;
#endif
#ifdef BUG_CLEANUP_LISTS_INTENTS_FIRST
    d_step { for (k_ : 0 .. INTENTS - 1) { listed[k_] = intent[k_] }; k_ = 0 };
    upto = newest;
#else
    upto = newest;
    d_step { for (k_ : 0 .. INTENTS - 1) { listed[k_] = intent[k_] }; k_ = 0 };
#endif
    if
    :: upto == 1 -> goto stop               /* nothing to prune */
    :: else
    fi;
    low = settled;
#ifndef BUG_CLEANUP_DOES_NOT_SETTLE
    do
    :: k < INTENTS && listed[k] == 0 -> k++
    :: k < INTENTS && listed[k] != 0 ->
        a = I_ATTEMPT(listed[k]); one = I_ONE(listed[k]);
        scan(low, a);
        if
        :: a && found -> say_committed(0, a, stop)
        :: a && !found && !gap && is_aborted -> say_aborted(a, 1, stop)
        :: a && !found && gap ->
            look(0, hi, s);
            unknown = unknown || !IS_DECIDED(s, a)
        :: else
        fi;
        if
        :: one && found_one -> say_committed(1, 1, stop)
        :: one && !found_one && gap ->
            look(1, hi, s);
            unknown = unknown || !COM(s)
        :: else
        fi;
        k++
    :: k >= INTENTS -> break
    od;
#endif
#ifndef BUG_CLEANUP_SAYS_NOTHING
    if
    :: !unknown -> atomic { settled = MAX(settled, upto); MAY_DIE(stop) }
    :: else
    fi;
#endif
    skip;
    prune(upto);
    sweep_intents();
stop:
    skip;
    d_step {
        s = 0; hi = 0; outcome = 0; v = 0; upto = 0; low = 0; gap = 0; k = 0; a = 0; one = 0; found = 0; found_one = 0; is_aborted = 0; unknown = 0;
        for (k_ : 0 .. INTENTS - 1) { listed[k_] = 0 };
        k_ = 0;
        ended++
    }
}
#endif

#ifdef FOLD
/* Gathers the decisions of an identity that is settled: the segment first, then its numbers go, the lowest first. */
proctype Fold() {
    byte s = 0; byte hi = 0, n = 0;
    bit is_busy = 0;
#ifdef BUG_SEGMENTS_FIRST
    byte seg_hi = 0; byte seg_s = 0;
#endif
    look(0, hi, s);
    if
    :: s != 0 && FIN(s) == 0 && high[0] < hi
    :: else -> goto end
    fi;
#ifndef BUG_FOLDS_WHAT_IS_BUSY
    d_step { for (k_ : 0 .. INTENTS - 1) { is_busy = is_busy || I_ATTEMPT(intent[k_]) != 0 && intent[k_] != 0 }; k_ = 0 };
    if
    :: is_busy -> goto end
    :: else
    fi;
    if
    :: started[1] && !IS_DECIDED(s, 1) || started[2] && !IS_DECIDED(s, 2) -> goto end
    :: else
    fi;
#endif
#ifndef BUG_SEGMENT_AFTER_NUMBERS
    atomic { if :: hi > high[0] -> high[0] = hi; segment[0] = s :: else fi; MAY_DIE(end) };
#endif
    n = 1;
    do
    :: n <= hi ->
#ifdef BUG_HIGHEST_FIRST
        atomic { decision[hi + 1 - n] = 0; n++; MAY_DIE(end) }
#else
        atomic { decision[n] = 0; n++; MAY_DIE(end) }
#endif
    :: n > hi -> break
    od;
#ifdef BUG_SEGMENT_AFTER_NUMBERS
    atomic { if :: hi > high[0] -> high[0] = hi; segment[0] = s :: else fi; MAY_DIE(end) };
#endif
end:
    skip;
    d_step { s = 0; hi = 0; n = 0; is_busy = 0; ended++ }
}
#endif

/* Another library: appends, and prunes every version but the newest where -DOUTSIDE_PRUNES. */
proctype Outsider() {
    byte n = 0, v = 0;
    do
    :: n < APPENDS && newest < ROOM ->
        v = newest;
        atomic {
            if
            :: version[v + 1] == NOTHING -> place(v + 1, OTHER); n++
            :: else
            fi;
            v = 0
        }
    :: n >= APPENDS || newest >= ROOM -> break
    od;
    skip;
#ifdef OUTSIDE_PRUNES
    prune(newest);
#endif
    d_step { n = 0; ended++ }
}

/* Delivers what its client has given up. */
proctype Network() {
end_idle:
    do
    :: atomic { late_at != 0 && !collecting ->
        if
        :: version[late_at] == NOTHING -> place(late_at, late_what)
        :: else
        fi;
        late_at = 0; late_what = 0 }
    :: atomic { late_number != 0 && !collecting ->
        if
        :: decision[late_number] == 0 -> decision[late_number] = late_state
        :: else
        fi;
        late_number = 0; late_state = 0 }
    od
}

init {
    atomic {
        version[1] = OTHER;
#ifdef STAGED
        started[1] = 1; part[1] = 1; decision[1] = STATE(1, 0, 0, 0); reference = 1; staged_ended = 2; ended = 2;
#else
        run Stage(1);
#ifdef ONE_TRY
        staged_ended = 1; ended = 1;
#else
        run Stage(2);
#endif
#endif
#if COMMITTERS > 0
#ifdef GROUP
        decision[NUMBERS + 1] = STATE(1, 0, 0, 0);
        run Commit(1);
#else
        run Commit(0);
#endif
#endif
#if COMMITTERS == 2
#ifdef GROUP
        run Commit(1);
#else
        run Commit(0);
#endif
#endif
#ifdef ABORTS
        run Abort(1);
#endif
#ifdef CLEANUP
        run Cleanup();
#if CLEANUP == 2
        run Cleanup();
#endif
#endif
#ifdef FOLD
        run Fold();
#endif
        run Outsider();
        run Network()
    };
    /* Everybody has ended, and what was on its way is there or lost. */
    atomic { ended == ALL -> collecting = 1; late_at = 0; late_what = 0; late_number = 0; late_state = 0; no_answer = 0; ended = 0 };
#ifdef GROUP
    run Commit(1);
    ended == 1;
#else
    ended = 1;
#endif
    run Abort(1);
    ended == 2;
    run Abort(2);
    ended == 3;
    run Abort(1);                               /* what attempt 2 had adopted and not used */
    ended == 4;
    d_step {
        truth();
        for (k_ : 1 .. 2) {
            assert(no_answer || (landings[k_] != 0) == IS_COMMITTED(t0_, k_));
            assert(no_answer || !started[k_])
        };
        assert(no_answer || !part[1] || landings[1] || landings[2] && uses_first);
        assert(no_answer || !part[2] || landings[2]);
        for (k_ : 0 .. INTENTS - 1) { assert(no_answer || intent[k_] == 0) };
        k_ = 0; t0_ = 0; t1_ = 0
    }
}
