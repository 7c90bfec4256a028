----------------------------- MODULE Lakehouse -----------------------------
(* Commit, lock stealing, compaction, restore, expiry and collection of one table of two time chunks, as a
   model that TLC explores exhaustively. Words have the meaning of GLOSSARY.md. A transaction of the catalog
   holds the head, so it is one step here; between two steps anything else may happen. A crash needs no step:
   an operation may always stop moving, and its lease may then run out. Neither does a slow writer: a lease
   may run out while its operation goes on, writes, renews and tries to commit.

   An operation writes at most one segment, and leaves at most one tombstone; both carry the operation's
   number as their name. It takes its locks once, so its name in a lock is also its fencing token.
   A row is named 10 * operation + chunk.

   Mutant names one rule that is broken: with "none" all that is stated at the end holds, with any other name
   something fails. Mixes says which operations run side by side, and whether versions are expired and files
   collected meanwhile. *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Mutant, Mixes

Chunks == {1, 2}
Nobody == 0
First == 0                       \* the segment that is there at the start, over both chunks
None == 0                        \* no version

VARIABLES
  mix,       \* [kinds: a sequence of what each operation is, collects: whether files are collected]
  counter,   \* the last number drawn
  log,       \* the commits in the order in which they happened: number, operation, live segments and
             \* tombstones, and the rows that a reference says are there
  state,     \* of each operation: idle, running, written, committed or ended
  base,      \* place in the log of the version at which an operation began
  ordinal,   \* of what an operation adds
  saw,       \* rows that a compaction or delete saw when it began
  locks,     \* pairs of a chunk and the operation that holds it
  fenced,    \* operations that lost a lock; no step asks it, it is there for the invariants
  late,      \* operations whose lease has run out
  forgotten, \* versions that were expired, by their place in the log
  pin,       \* the version that a reader holds, by its place in the log
  stored,    \* files that exist, by segment
  marked,    \* files that looked dead at the start of the grace
  doomed     \* files that the second look found dead, about to be deleted

catalog == <<counter, log, state, base, ordinal, saw, locks, fenced, late, forgotten, pin>>
files == <<stored, marked, doomed>>
vars == <<mix, catalog, files>>

Ops == 1 .. Len(mix.kinds)
Kind(o) == mix.kinds[o]
Replaces(o) == Kind(o) \in {"replace", "replace all"}
Appends(o) == Kind(o) \in {"append", "append 2"}
Compacts(o) == Kind(o) \in {"compact", "compact 2"}
Locks(o) == Replaces(o) \/ Compacts(o)
Cover(o) == CASE Kind(o) = "replace" -> {1}
              [] Kind(o) = "compact 2" -> {2}
              [] OTHER -> Chunks
Running(o) == state[o] \in {"running", "written"}

ChunkOf(row) == row % 10
Row(o) == 10 * o + (IF Kind(o) = "append 2" THEN 2 ELSE 1)
RowsOf(s) == IF s = First THEN {1, 2} ELSE IF Compacts(s) THEN saw[s] ELSE {Row(s)}
ChunksOf(s) == {ChunkOf(r) : r \in RowsOf(s)}
OrdinalOf(s) == IF s = First THEN 1 ELSE ordinal[s]

Newest == Len(log)
Now == log[Newest]

----------------------------------------------------------------------------
(* Visibility: the one rule. *)

Greater(a, b) == IF Mutant = "ge_for_gt" THEN a >= b ELSE a > b

Masks(t, s, r) == /\ Greater(ordinal[t], OrdinalOf(s))
                  /\ IF Kind(t) = "delete" THEN r \in saw[t] ELSE ChunkOf(r) \in Cover(t)

Visible(v) == UNION {{r \in RowsOf(s) : ~\E t \in v.tombstones : Masks(t, s, r)} : s \in v.segments}

(* The reference knows no ordinals. A row is born by the commit that brings it. *)
BornBy(place) == {1, 2} \cup {Row(log[i].operation) : i \in 2 .. place}

Expected(o) ==
  CASE Appends(o) -> Now.rows \cup {Row(o)}
    [] Kind(o) = "delete" -> Now.rows \ BornBy(base[o])
    [] Compacts(o) -> Now.rows
    [] OTHER -> (Now.rows \ {r \in BornBy(base[o]) : ChunkOf(r) \in Cover(o)}) \cup {Row(o)}

----------------------------------------------------------------------------
(* Locks *)

InTheWay(chunks) == {lock[2] : lock \in {l \in locks : l[1] \in chunks}}

GivesWay(h, o) == \/ h \in late
                  \/ Compacts(h) /\ ~Compacts(o)

(* Whoever loses one chunk loses all: locks of an operation are taken and lost together. *)
Without(losers) == {lock \in locks : lock[2] \notin losers}

Holds(o) == Cover(o) \X {o} \subseteq locks

MayCommit(o) ==
  \/ ~Locks(o)
  \/ CASE Mutant = "no_fencing" -> TRUE
       [] Mutant = "lease_for_token" -> o \notin late
       [] Mutant = "expiry_makes_valid" -> Holds(o) \/ o \in late
       [] OTHER -> Holds(o)

----------------------------------------------------------------------------
(* Operations: begin, write, commit *)

DrawsAtBegin(o) == Replaces(o) \/ (Mutant = "number_at_begin" /\ Appends(o))

(* A compaction reads the segments that lie wholly inside the chunks that it locked. *)
InputsAt(o, place) ==
  {s \in log[place].segments : \/ ChunksOf(s) \subseteq Cover(o)
                               \/ Mutant = "ragged_inputs" /\ ChunksOf(s) \cap Cover(o) # {}}
Inputs(o) == InputsAt(o, base[o])

Begin(o) ==
  /\ state[o] = "idle"
  /\ Kind(o) # "restore"
  /\ state' = [state EXCEPT ![o] = "running"]
  /\ base' = [base EXCEPT ![o] = Newest]
  /\ saw' = [saw EXCEPT ![o] = CASE Kind(o) = "delete" -> Visible(Now)
                                 [] Compacts(o) -> Visible([Now EXCEPT !.segments = InputsAt(o, Newest)])
                                 [] OTHER -> {}]
  /\ counter' = IF DrawsAtBegin(o) THEN counter + 1 ELSE counter
  /\ ordinal' = CASE DrawsAtBegin(o) -> [ordinal EXCEPT ![o] = counter + 1]
                  [] Compacts(o) -> [ordinal EXCEPT ![o] = Now.number]
                  [] OTHER -> ordinal
  /\ IF Locks(o)
     THEN LET losers == InTheWay(Cover(o))
          IN /\ \A h \in losers : Mutant = "steal_from_the_living" \/ GivesWay(h, o)
             /\ locks' = (Cover(o) \X {o}) \cup CASE Mutant = "expired_lock_stays" -> locks
                                                  [] Mutant = "steal_one_chunk" -> locks \ (Cover(o) \X losers)
                                                  [] OTHER -> Without(losers)
             /\ fenced' = fenced \cup losers
     ELSE UNCHANGED <<locks, fenced>>
  /\ UNCHANGED <<mix, log, late, forgotten, pin, files>>

(* An operation that was ended meanwhile does not know it, and may still write. A compaction reads first. *)
Write(o) ==
  /\ Kind(o) \notin {"delete", "restore"}
  /\ o \notin stored
  /\ state[o] \in {"running", "ended"}
  /\ Compacts(o) => Inputs(o) \subseteq stored
  /\ stored' = stored \cup {o}
  /\ state' = [state EXCEPT ![o] = IF @ = "running" THEN "written" ELSE @]
  /\ UNCHANGED <<mix, counter, log, base, ordinal, saw, locks, fenced, late, forgotten, pin, marked, doomed>>

Overshadows(t, segments) ==
  \E s \in segments : OrdinalOf(s) < ordinal[t] /\ ChunksOf(s) \cap Cover(t) # {}

(* What the head becomes. `at` is the ordinal of what the operation adds. *)
After(o, at) ==
  LET old == Now
      older == {s \in old.segments : OrdinalOf(s) < at /\ ChunksOf(s) \cap Cover(o) # {}}
      inside == {s \in older : ChunksOf(s) \subseteq Cover(o)}
      merged == (old.segments \ Inputs(o)) \cup (IF saw[o] = {} THEN {} ELSE {o})
  IN CASE Appends(o) ->
            [segments |-> old.segments \cup {o}, tombstones |-> old.tombstones]
       [] Kind(o) = "delete" ->
            [segments |-> old.segments, tombstones |-> old.tombstones \cup {o}]
       [] Replaces(o) ->
            [segments |-> (old.segments \ inside) \cup {o},
             tombstones |-> {t \in old.tombstones : ~(Replaces(t) /\ ordinal[t] < at /\ Cover(t) \subseteq Cover(o))}
                            \cup (IF older = inside THEN {} ELSE {o})]
       [] OTHER ->
            [segments |-> merged,
             tombstones |-> {t \in old.tombstones :
                               IF Mutant = "compaction_drops_tombstones" THEN FALSE
                               ELSE (Replaces(t) /\ Cover(t) \subseteq Cover(o)) => Overshadows(t, merged)}]

Restored(o) == \E i \in base[o] + 1 .. Newest : Kind(log[i].operation) = "restore"

(* The ordinal of what is added: drawn at begin, read at begin, or that of the commit. *)
OrdinalAt(o, number) ==
  CASE Mutant = "replace_at_commit" /\ Replaces(o) -> number
    [] Mutant = "outputs_at_commit_number" /\ Compacts(o) -> number
    [] Locks(o) -> ordinal[o]
    [] OTHER -> number

Ready(o) == \/ state[o] = "written"
            \/ state[o] = "running" /\ Kind(o) = "delete"
            \/ Mutant = "repeat_a_lost_answer" /\ state[o] = "committed" /\ Appends(o)

Commit(o) ==
  LET number == IF Mutant = "number_at_begin" /\ Appends(o) THEN ordinal[o] ELSE counter + 1
      at == OrdinalAt(o, number)
      after == After(o, at)
  IN /\ Ready(o)
     /\ Newest <= Len(mix.kinds) + 1       \* always true, but for a mutant that would go on for ever
     /\ MayCommit(o)
     /\ Compacts(o) => Inputs(o) \subseteq Now.segments
     /\ Kind(o) = "delete" /\ Mutant # "delete_over_restore" => ~Restored(o)
     /\ counter' = counter + 1
     /\ ordinal' = [ordinal EXCEPT ![o] = at]
     /\ log' = Append(log, [number |-> number, operation |-> o, segments |-> after.segments,
                            tombstones |-> after.tombstones, rows |-> Expected(o)])
     /\ state' = [state EXCEPT ![o] = "committed"]
     /\ locks' = Without({o})
     /\ late' = late \ {o}
     /\ UNCHANGED <<mix, base, saw, fenced, forgotten, pin, files>>

(* One transaction: makes way, and turns the head into an older version. *)
Restore(o) ==
  LET losers == InTheWay(Chunks)
  IN /\ state[o] = "idle"
     /\ Kind(o) = "restore"
     /\ \A h \in losers : GivesWay(h, o)
     /\ \E i \in 1 .. Newest - 1 :
          /\ Mutant = "restore_without_a_look" \/ i \notin forgotten
          /\ counter' = counter + 1
          /\ log' = Append(log, [log[i] EXCEPT !.number = counter + 1, !.operation = o])
     /\ state' = [state EXCEPT ![o] = "committed"]
     /\ base' = [base EXCEPT ![o] = Newest]
     /\ IF Mutant = "restore_leaves_maintenance" THEN UNCHANGED <<locks, fenced>>
        ELSE locks' = Without(losers) /\ fenced' = fenced \cup losers
     /\ UNCHANGED <<mix, ordinal, saw, late, forgotten, pin, files>>

(* An operation that failed, or believes so because no answer came, gives up: only what still runs is ended, and
   only what was ended has its file deleted. *)
GiveUp(o) ==
  /\ Running(o)
  /\ state' = [state EXCEPT ![o] = "ended"]
  /\ locks' = Without({o})
  /\ late' = late \ {o}
  /\ UNCHANGED <<mix, counter, log, base, ordinal, saw, fenced, forgotten, pin, files>>

Tidy(o) ==
  /\ \/ state[o] = "ended"
     \/ Mutant = "no_answer_is_failure" /\ state[o] = "committed"
     \/ Mutant = "tidy_before_the_end" /\ state[o] = "written"
  /\ o \in stored
  /\ stored' = stored \ {o}
  /\ UNCHANGED <<mix, catalog, marked, doomed>>

----------------------------------------------------------------------------
(* Leases. That one runs out changes nothing by itself. *)

RunOut(o) ==
  /\ Running(o)
  /\ Locks(o) \/ mix.collects
  /\ o \notin late
  /\ late' = late \cup {o}
  /\ UNCHANGED <<mix, counter, log, state, base, ordinal, saw, locks, fenced, forgotten, pin, files>>

Renew(o) ==
  /\ Running(o)
  /\ o \in late
  /\ late' = late \ {o}
  /\ UNCHANGED <<mix, counter, log, state, base, ordinal, saw, locks, fenced, forgotten, pin, files>>

----------------------------------------------------------------------------
(* Pins, expiry, collection *)

Pin ==
  /\ mix.collects
  /\ pin = None
  /\ \E i \in 1 .. Newest :
       /\ Mutant = "pin_without_a_look" \/ i \notin forgotten
       /\ pin' = i
  /\ UNCHANGED <<mix, counter, log, state, base, ordinal, saw, locks, fenced, late, forgotten, files>>

Unpin ==
  /\ pin # None
  /\ pin' = None
  /\ UNCHANGED <<mix, counter, log, state, base, ordinal, saw, locks, fenced, late, forgotten, files>>

(* What a compaction reads, and what a delete compares its commit with. *)
NeedsBase(o) == Running(o) /\ (Compacts(o) \/ Kind(o) = "delete")

(* Keeps the head, what is pinned, and the base of what runs. What runs past its lease is not waited for, but
   ended, so that it cannot come back to a base that is gone. *)
Expire ==
  LET held == (IF Mutant = "expiry_ignores_pins" THEN {} ELSE {pin})
              \cup (IF Mutant = "expiry_ignores_running" THEN {}
                    ELSE {base[o] : o \in {x \in Ops \ late : NeedsBase(x)}})
      gone == (1 .. Newest - 1) \ held
      ends == {o \in late : Mutant # "expiry_ends_nobody" /\ NeedsBase(o) /\ base[o] \in gone}
  IN /\ mix.collects
     /\ ~(gone \subseteq forgotten)
     /\ forgotten' = forgotten \cup gone
     /\ state' = [o \in Ops |-> IF o \in ends THEN "ended" ELSE state[o]]
     /\ late' = late \ ends
     /\ locks' = Without(ends)
     /\ UNCHANGED <<mix, counter, log, base, ordinal, saw, fenced, pin, files>>

Reachable == UNION {log[i].segments : i \in (1 .. Newest) \ forgotten}

(* From the catalog alone: no retained version reaches it, and nobody who may be alive is writing it. *)
Dead(f) ==
  /\ f \notin Reachable
  /\ f # First /\ Running(f) => f \in late \/ Mutant = "collect_ignores_running"

Mark ==
  /\ mix.collects
  /\ marked = {} /\ doomed = {}
  /\ marked' = {f \in stored : Dead(f)}
  /\ marked' # {}
  /\ UNCHANGED <<mix, catalog, stored, doomed>>

(* The second look, under the head. A writer past its lease is ended here: from now on it cannot commit. *)
Doom ==
  LET dead == IF Mutant = "collect_without_recheck" THEN marked ELSE {f \in marked : Dead(f)}
      ends == IF Mutant \in {"collect_without_recheck", "collect_ends_nobody"} THEN {}
              ELSE {o \in dead \ {First} : Running(o)}
  IN /\ marked # {}
     /\ doomed' = dead
     /\ marked' = {}
     /\ state' = [o \in Ops |-> IF o \in ends THEN "ended" ELSE state[o]]
     /\ late' = late \ ends
     /\ locks' = Without(ends)
     /\ UNCHANGED <<mix, counter, log, base, ordinal, saw, fenced, forgotten, pin, stored>>

Delete ==
  /\ doomed # {}
  /\ stored' = stored \ doomed
  /\ doomed' = {}
  /\ UNCHANGED <<mix, catalog, marked>>

----------------------------------------------------------------------------

Init ==
  /\ mix \in Mixes
  /\ counter = 1
  /\ log = <<[number |-> 1, operation |-> Nobody, segments |-> {First}, tombstones |-> {}, rows |-> {1, 2}]>>
  /\ state = [o \in Ops |-> "idle"]
  /\ base = [o \in Ops |-> 0]
  /\ ordinal = [o \in Ops |-> 0]
  /\ saw = [o \in Ops |-> {}]
  /\ locks = {}
  /\ fenced = {} /\ late = {} /\ forgotten = {} /\ pin = None
  /\ stored = {First} /\ marked = {} /\ doomed = {}

Next ==
  \/ \E o \in Ops : Begin(o)
  \/ \E o \in Ops : Write(o)
  \/ \E o \in Ops : Commit(o)
  \/ \E o \in Ops : Restore(o)
  \/ \E o \in Ops : GiveUp(o)
  \/ \E o \in Ops : Tidy(o)
  \/ \E o \in Ops : RunOut(o)
  \/ \E o \in Ops : Renew(o)
  \/ Pin \/ Unpin \/ Expire \/ Mark \/ Doom \/ Delete

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* Invariants *)

(* Whatever the order of commits, a version shows what the reference says: a replace, delete or compaction
   loses no row that came after it began, and brings back none that was removed. *)
VisibleIsTheReference == \A i \in 1 .. Newest : Visible(log[i]) = log[i].rows

(* Maintenance is nobody's business: readers before and after a compaction see the same rows. *)
CompactionChangesNothing ==
  \A i \in 2 .. Newest : Compacts(log[i].operation) => Visible(log[i]) = Visible(log[i - 1])

(* Numbers, commits and visibility are in one order, so that whoever sees a version sees all before it; and what
   a version holds was settled when its number was given, or a reader of it would see it change. *)
VersionsArePrefixes == \A i \in 2 .. Newest : log[i - 1].number < log[i].number

(* An operation whose answer was acknowledged is in one version, and its rows are in that version for ever.
   What was committed twice would be there twice. *)
AcknowledgedOnceAndForEver ==
  \A o \in Ops : state[o] = "committed" =>
    /\ Cardinality({i \in 2 .. Newest : log[i].operation = o}) = 1
    /\ \A i \in 2 .. Newest : log[i].operation = o /\ (Appends(o) \/ Replaces(o)) => Row(o) \in Visible(log[i])

(* Two writers of one chunk would each believe that what they read is what they replace. *)
AChunkHasOneHolder == \A one, other \in locks : one[1] = other[1] => one = other

(* An operation that held half of its chunks would wait for the other half, or commit without it. *)
LocksAreHeldWhole == \A o \in Ops : (\E l \in locks : l[2] = o) => Running(o) /\ Holds(o)

(* Properties of steps. A lock is taken only from one whose lease ran out, or from maintenance; and clean-up ends
   nobody whose lease has not run out, or a long write would never succeed. *)
LeasesAreRespected ==
  [][/\ \A o \in fenced' \ fenced : o \in late \/ Compacts(o)
     /\ \A o \in Ops : Running(o) /\ state'[o] = "ended" => o \in late \/ UNCHANGED <<forgotten, files>>]_vars

(* Whoever lost a lock may be late, paused or confused, but is not heard. *)
FencedNeverCommits == \A o \in fenced : state[o] # "committed"

(* Nothing that anyone can still ask for is deleted: what a retained version or a pin reaches, what an operation
   that may still commit has written, and what it goes by at its base. A tag is a pin that nobody lets go. *)
WhatIsReachableExists ==
  /\ Reachable \subseteq stored
  /\ pin # None => log[pin].segments \subseteq stored
  /\ \A o \in Ops : state[o] = "written" => o \in stored
  /\ \A o \in Ops : NeedsBase(o) => log[base[o]].segments \subseteq stored

----------------------------------------------------------------------------
(* What runs side by side. *)

Kinds == <<"append", "append 2", "replace", "replace all", "compact", "compact 2", "delete", "restore">>

(* Every choice of n operations, each once in one order: which of them begins first is explored anyway. *)
Every(n) == {[i \in 1 .. n |-> Kinds[c[i]]] :
               c \in {x \in [1 .. n -> 1 .. Len(Kinds)] : \A i \in 1 .. n - 1 : x[i] <= x[i + 1]}}

Side(kinds, collects) == [kinds: kinds, collects: {collects}]

(* Enough to catch every mutant. *)
FewMixes ==
  Side({<<"append", "replace", "compact">>, <<"append", "replace", "compact 2">>,
        <<"delete", "compact", "restore">>, <<"replace", "delete", "restore">>, <<"append", "append">>}, FALSE)
  \cup
  Side({<<"append">>, <<"replace all", "compact">>, <<"replace all", "restore">>}, TRUE)

AllMixes ==
  FewMixes \cup Side(Every(3), FALSE) \cup Side(Every(2), TRUE)
  \cup
  Side({<<"append", "replace", "compact", "delete">>, <<"append", "replace", "compact 2", "replace all">>,
        <<"replace", "replace", "append", "compact">>, <<"append", "delete", "compact", "restore">>}, FALSE)
  \cup
  Side({<<"append", "replace", "compact">>, <<"replace all", "delete", "compact">>,
        <<"append", "replace all", "restore">>}, TRUE)

=============================================================================
