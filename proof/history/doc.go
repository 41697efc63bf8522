// SPDX-License-Identifier: Apache-2.0

// Package history records histories of real stores under real faults, and checks that they are linearizable. Some order of
// the calls must explain each answer, and must keep each call between its invocation and its return.
//
// Sixteen clients call a store at the same time, through two nodes if it is remote. They take from overlapping keys, also parts of a cost, charge
// by force, peek, retry by ID, refund, cancel and reset. They also use holds and slots, and the limits of keys change. Each
// history has one fault. Porcupine searches for the order by a model of about 400 lines, which shares no code with mete.
//
// # The worlds
//
//   - memory, with the process's clock, or with a clock that steps ahead: IDs, slots and holds expire.
//   - redis, with and without AOF: SIGKILL, SIGSTOP, broken, slow, refused and silent connections, lost answers, flushed
//     scripts, killed and paused clients.
//   - redis, sentinels: a failover, and SIGSTOP of the replica.
//   - redis, cluster: resharding, SIGKILL and SIGSTOP of a node. All nodes write an AOF.
//   - postgres, durable and not: as for redis, and terminated connections, canceled statements, locked rows, a locked table.
//
// # The model
//
//   - Each call is one step of all its keys.
//   - Nothing refills during a history, so amounts are exact.
//   - A call with an error of store.NotSpent had no effect.
//   - Another failed call happened after its invocation, or never.
//   - A call that is repeated with its ID, or for its hold, counts once.
//   - A crash of a store without persistence is one step that makes everything full. A durable store loses nothing.
//   - A failover is one step after which each bucket misses between nothing and its earlier amount. An ID may be lost. If the
//     history returns tokens to a bucket, their return may be lost. The bucket may then miss as much as at any earlier time.
//
// The model has a range instead of an amount after a failover, and after a cancellation in debt, which may return less. The
// next snapshot shows the amount. After a cancellation, rounding can leave less than 0.001 token. The store then keeps the
// account of the older limit.
//
// In a cluster, a call with keys in several slots is not one step. One world has calls of one key, with the model above.
// Another has takes, refunds and resets of several slots, and a weaker promise: each key alone is linearizable. A denied take
// may have charged a key for a time. It returns the cost once. Holds over several slots are not checked.
//
// With sentinels, and for several slots, there are no holds, slots and changed limits.
//
// Histories are short, because the number of orders grows exponentially. A search has a bound of steps. A history that
// exceeds it counts as undecided. To keep them rare, at most twelve calls run at the same time, four of them without amounts
// in their answers. A call to a remote store can fail, and then has more explanations: there, at most seven run at the same
// time. No new call starts after the first failure of a fault, until the end of the fault.
//
// A second check has buckets that refill fast, and a clock that steps back. In any interval, all takes that lie within it
// cost at most the capacity plus rate·t.
//
// # Running
//
// A short test takes seconds. The command make robustness TIME=1h runs all worlds. It counts the histories in the file
// testdata/runs.tsv. A test saves a history without an explanation, and a page that shows it. To check it again:
//
//	go test ./history -run TestRecheck -history.file=FILE
//
// To run one world or one fault, for one history or for a time:
//
//	go test ./history -run TestHistories -history.world='redis, AOF' -history.fault=SIGKILL
//	METE_TEST_LONG=5m go test ./history -run TestHistories -history.world=memory
//
// An unknown name is an error, and its message lists the names. With these flags, a run with -history.time adds nothing to
// testdata/runs.tsv.
//
// A long test also saves undecided histories. It fails if too many histories of a fault are undecided, or if a fault that
// breaks calls makes none fail. Under the fault "no fault", each call must succeed.
//
// Package simulation tests the limiter over a simulated network, where one seed decides everything.
package history
