// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"encoding/json"
	"slices"

	"github.com/metehq/mete/api"
)

// The texts that presets are from.
const (
	fromEdge      = "Token Bucket (the documentation of an API gateway)"
	fromExplainer = "Token Bucket Rate Limit (an explainer)"
	fromDesign    = "Token Bucket Rate Limiter Low-Level Design"
	fromTwo       = "Implementing Rate Limiting with only two numbers"
	fromPostgres  = "Token Bucket (the documentation of a limiter in PostgreSQL)"
)

// Presets returns all presets, in the order in which they teach. The caller must not
// change them.
func Presets() []api.PlayPreset {
	return slices.Concat(lessons, explained, configured, designed, stored)
}

// Pieces of traffic.

func steady(rate, seconds json.Number) api.PlayPhase {
	return api.PlayPhase{Shape: "steady", Rate: rate, Seconds: seconds}
}

func poisson(rate, seconds json.Number, seed int64) api.PlayPhase {
	return api.PlayPhase{Shape: "poisson", Rate: rate, Seconds: seconds, Seed: seed}
}

func pause(seconds json.Number) api.PlayPhase { return api.PlayPhase{Shape: "pause", Seconds: seconds} }

func burst(count int, every string, seconds json.Number) api.PlayPhase {
	return api.PlayPhase{Shape: "burst", Count: count, Every: every, Seconds: seconds}
}

func traffic(phases ...api.PlayPhase) api.PlayTraffic { return api.PlayTraffic{Phases: phases} }

// Lanes.

func tokenBucket(name string, tokens json.Number, per string, capacity json.Number) api.PlayLane {
	return api.PlayLane{Name: name, Algorithm: "token_bucket", Tokens: tokens, Per: per, Capacity: capacity}
}

func window(name, algorithm string, tokens json.Number, per string) api.PlayLane {
	return api.PlayLane{Name: name, Algorithm: algorithm, Tokens: tokens, Per: per}
}

func leakyBucket(name string, tokens json.Number, per string, queue json.Number) api.PlayLane {
	return api.PlayLane{Name: name, Algorithm: "leaky_bucket", Tokens: tokens, Per: per, Queue: queue}
}

func costing(l api.PlayLane, cost json.Number) api.PlayLane {
	l.Cost = cost
	return l
}

func holding(l api.PlayLane, capacity json.Number) api.PlayLane {
	l.Capacity = capacity
	return l
}

func jittered(l api.PlayLane, jitter string) api.PlayLane {
	l.Jitter = jitter
	return l
}

func inIntervals(l api.PlayLane) api.PlayLane {
	l.Refill = "interval"
	return l
}

// lessons are there to teach. The first is what is shown to begin with.
var lessons = []api.PlayPreset{
	{
		ID: "first-steps", Title: "A bucket in one minute",
		Text: "The bucket holds 5 tokens, and a new one drips in each second. Each request takes one. Two come a second: the first few live on what is " +
			"in the bucket; once it is empty, every second one finds nothing and is told when to come back. In the pause the bucket fills up again.",
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Token bucket", "1", "1s", "5")}, Traffic: traffic(steady("2", "12"), pause("6"), burst(5, "", "4"))},
	},
	{
		ID: "burst-then-steady", Title: "Burst, then steady",
		Text: "Thirty requests at once, as when an app starts, and then ten a second. Both limits let ten a second through for ever. The one with room for " +
			"30 lets the start through at once; the other denies most of it.",
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Room for 30", "10", "1s", "30"), tokenBucket("Room for 5", "10", "1s", "5")},
			Traffic: traffic(burst(30, "", "1"), steady("10", "4"))},
	},
	{
		ID: "window-edge", Title: "The edge of a fixed window",
		Text: "All four mean 10 in 10 seconds. Ten requests come just before the clock strikes 10 s, and ten just after. The fixed window lets all 20 through within " +
			"a second, twice its limit: a new window knows nothing of the one before. The others remember.",
		Input: api.Play{Lanes: []api.PlayLane{window("Fixed window", "fixed_window", "10", "10s"), window("Sliding window", "sliding_window", "10", "10s"),
			window("Sliding log", "sliding_log", "10", "10s"), tokenBucket("Token bucket", "10", "10s", "10")},
			Traffic: traffic(pause("9.5"), burst(10, "", "1"), burst(10, "", "0.5"), steady("2", "14"))},
	},
	{
		ID: "queue-smooths", Title: "A queue smooths",
		Text: "Fifteen requests at once, every four seconds. The token bucket lets ten start at once and denies five. The leaky bucket denies none: it lets them " +
			"start one after the other, a quarter of a second apart, and its level below zero is how much is waiting.",
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Token bucket", "4", "1s", "10"), leakyBucket("Leaky bucket with a queue", "4", "1s", "15")},
			Traffic: traffic(burst(15, "4s", "12"))},
	},
	{
		ID: "retry-herd", Title: "The retry herd",
		Text: "A hundred clients come at once, and each that is denied comes back when its Retry-After says. All see the same window end, so without jitter the " +
			"whole herd is back at one instant, again and again. Jitter spreads it. The token bucket tells each the wait it would have alone, so most try in vain " +
			"each second. The queue needs no retries at all.",
		Input: api.Play{Lanes: []api.PlayLane{jittered(window("Fixed window, no jitter", "fixed_window", "20", "10s"), "0"),
			jittered(window("Fixed window, jitter 50 %", "fixed_window", "20", "10s"), "50%"),
			jittered(tokenBucket("Token bucket, jitter 50 %", "20", "10s", "20"), "50%"), leakyBucket("Leaky bucket with a queue", "20", "10s", "100")},
			Traffic: api.PlayTraffic{Phases: []api.PlayPhase{pause("1"), burst(100, "", "59")}, Retry: true}},
	},
	{
		ID: "chance", Title: "What chance does",
		Text: "Requests come at random, eight a second on average, and ten a second are allowed: there is enough for all. And yet a bucket with room for one denies nearly half, " +
			"since chance sends them in clumps. Room for a second or two of traffic makes that rare. Try other seeds.",
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Room for 1", "10", "1s", "1"), tokenBucket("Room for 5", "10", "1s", "5"), tokenBucket("Room for 20", "10", "1s", "20")},
			Traffic: traffic(poisson("8", "30", 1))},
	},
}
