// SPDX-License-Identifier: Apache-2.0

// Package soak runs two servers over one Redis for as long as it is told, and
// asks all the time whether they still decide as they must and hold no more than
// they did. It is all tests:
//
//	METE_SOAK=1h go test -race -v -timeout 0 -run TestSoak ./soak
//
// Without METE_SOAK it takes twenty seconds, which is no soak, but keeps it whole.
//
// A gateway and a server of the API, both with the race detector where the test
// has it, are asked by some thirty clients. The policy changes every ten seconds, and is
// broken every third time; Redis is killed and comes back empty, twice. What
// must hold:
//
//   - Of no bucket is more admitted in any interval than its capacity and its rate
//     times the interval, by the clients' own records. The only allowances are
//     those that the design names: a capacity for each loss of the store, and the
//     difference for each limit that was raised.
//   - Who waits as long as told is admitted, and who keeps within the limit is never
//     denied. Of two limits both are charged, or none.
//   - A denial says when to come back, and does not reach the upstream. 503 is said
//     by closed rules alone, and only while the store is down; open and local ones
//     never say it.
//   - At quiet moments there are no more goroutines and open files than at the
//     first one. The heap does not grow.
//   - No data race, no panic; and in the end both leave in good order under load.
package soak
