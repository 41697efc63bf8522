// SPDX-License-Identifier: Apache-2.0

// Package soak runs two servers over one Redis and checks their decisions and their use of resources:
//
//	METE_SOAK=1h go test -race -v -timeout 0 -run TestSoak ./soak
//
// Without METE_SOAK, the test takes twenty seconds.
//
// About thirty clients use a gateway and an API server. The policy changes every ten seconds, and every third
// change is invalid. Redis is killed and comes back empty, twice. The test checks:
//
//   - In any interval, each bucket admits at most its capacity plus its rate times the interval, by the clients'
//     records. There is an allowance of a capacity for each loss of the store, and of the difference for each
//     raised limit.
//   - A client that waits for Retry-After is admitted. A client below the limit is never denied. Of two limits,
//     both are charged or none.
//   - A denial has a Retry-After and does not reach the upstream. Only closed rules answer 503, and only while
//     the store is down.
//   - When the load pauses, there are no more goroutines and open files than in the first pause, and the heap
//     does not grow.
//   - There is no data race and no panic, and both servers shut down cleanly under load.
package soak
