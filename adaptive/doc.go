// SPDX-License-Identifier: Apache-2.0

// Package adaptive lowers what a limiter lets pass while the thing it protects
// is in trouble, and raises it again afterwards.
//
// A limit says what a server may be asked for on a good day. A [Controller]
// watches how the requests that pass fare, and keeps a factor between a floor and
// 1: the part of every limit that holds now. It applies the factor by dividing
// costs by it, so it works with any store, any policy and any algorithm, and no
// state changes its meaning: give [Controller.Scale] to the Limiter's
// Config.Scale and report every request with [Controller.Begin] or
// [Controller.Observe].
//
// A Limiter does not let a scaled cost exceed what a limit can admit at once, so
// that a request that is possible on a good day stays possible: costs near the
// capacity are slowed less than the factor says, and for a cost of all of it
// nothing changes.
//
// # Two laws
//
// [AIMD] needs to be told what is too slow: when more than [Config.Failures] of
// an interval's requests fail or take longer than [Config.Target], the factor is
// multiplied by [Config.Backoff]; otherwise it grows by [Config.Step].
//
// [Gradient] compares latency with what it used to be, after Netflix'
// concurrency-limits: where the mean of an interval exceeds the long-term mean by
// more than [Config.Tolerance], the factor is cut in proportion, at most to the
// backoff; otherwise it grows by a step. It needs no target, and holds the
// latency near the tolerated ratio. The long-term mean follows a fall soon, but
// a rise only while the factor is 1 or at the floor, and slowly: what is slow for
// lack of room must not become the measure. So a server that has become slower
// for good brings the factor to the floor, and is believed there: five times
// slower within 300 intervals. What a gradient sees
// first it believes at once; start it when all is well.
//
// Both find out what the protected server can do by overstepping it a little,
// again and again, and look away for an interval after each cut, in which the
// queue drains and what has waited in it ends. With the defaults, the factor
// swings between 0.8 and 1.15 of what the server can do, at least 94 % of which is
// used. After the trouble it is back at 1 within (1 − floor)/step
// intervals of traffic and ten more: 100 seconds. A sudden overload brings it
// down within twice as many intervals as cuts are needed, about 30 seconds for a
// fifth; what has queued up until then may take it to the floor for a while. The simulations in
// this package's tests assert these numbers, for servers that do 20, 40 and 80 %
// of the limit; larger steps and cuts make for larger swings.
//
// # What it cannot know
//
// Silence teaches nothing: in an interval without observations the factor stays.
// Each process has its own Controller and sees the requests that it passed; as
// all see the same server, they come to the same factor, more or less. A factor
// of less than 1 is no cure for what is not load: if the server fails however
// little it is asked, the factor rests at the floor.
package adaptive
