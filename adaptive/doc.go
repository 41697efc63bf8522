// SPDX-License-Identifier: Apache-2.0

// Package adaptive lowers limits while the protected server is overloaded or failing, and raises them again
// afterwards.
//
// A [Controller] observes admitted requests and maintains a factor between a floor and 1. The factor applies to
// every limit. The limiter divides costs by it, so it works with any store, policy and algorithm, and stored
// states keep their meaning. To use it, set Config.Scale of a Limiter to [Controller.Scale], and report each
// request with [Controller.Begin] or [Controller.Observe].
//
// A Limiter never scales a cost above the largest amount that a limit can admit in one request. A request that is normally
// possible stays possible. Costs near the capacity are therefore slowed less than the factor indicates, and a cost
// of the whole capacity is not slowed at all.
//
// # Control laws
//
// [LawAIMD] needs a latency target. If more than [Config.Failures] of an interval's requests fail or exceed
// [Config.Target], it multiplies the factor by [Config.Backoff]. Otherwise it adds [Config.Step].
//
// [LawGradient] compares latency with its long-term mean, like Netflix's concurrency-limits. If the mean of an interval
// exceeds the long-term mean by more than [Config.Tolerance], it cuts the factor in proportion, at most by
// [Config.Backoff]. Otherwise it adds a step. It needs no target, and keeps latency near the tolerated ratio.
//
// The long-term mean follows a fall quickly. It follows a rise slowly, and only while the factor is 1 or at the
// floor. Otherwise latency from overload would become the norm. If a server becomes permanently slower, the factor
// drops to the floor, where the mean adapts. For a server that is five times slower, this takes at most 300
// intervals. The first observations set the initial mean, so start a gradient while the server is healthy.
//
// Both laws probe the capacity of the server by exceeding it slightly. After each cut they ignore one interval, in
// which the queue drains. With the defaults, the factor stays between 0.8 and 1.15 of the server's capacity and uses
// at least 94% of it. After the overload, the factor is back at 1 within (1 − floor)/step intervals of traffic plus
// ten: 100 seconds. A sudden overload lowers it within two intervals per cut: about 30 seconds to a fifth. The queue
// from that time can push it to the floor temporarily. Simulations in this package's tests assert these numbers for
// servers with 20%, 40% and 80% of the limit's rate. Larger steps and cuts cause larger swings.
//
// # Limitations
//
// An interval without observations does not change the factor. Each process has its own Controller and observes
// its own requests; all observe the same server, so their factors are similar. A factor below 1 cannot fix
// problems other than load: if the server fails under any load, the factor stays at the floor.
package adaptive
