// SPDX-License-Identifier: Apache-2.0

package playground

import "github.com/metehq/mete/api"

// configured are from the documentation of a gateway.
var configured = []api.PlayPreset{
	{
		ID: "per-address", Title: "Five a second for each address",
		Text:   "One address has 10 tokens and gets 5 a second. A page that loads with eight requests every two seconds never notices; one that loads with twelve does.",
		Source: &api.PlaySource{Title: fromEdge},
		Input:  api.Play{Lanes: []api.PlayLane{tokenBucket("global-rps", "5", "1s", "10")}, Traffic: traffic(burst(8, "2s", "8"), pause("2"), burst(12, "2s", "8"))},
	},
	{
		ID: "how-much-room", Title: "How much room a bucket needs",
		Text: "Four buckets with ten tokens a second, against a burst of 60 and then 12 a second. The larger the room, the more of the burst passes; in the long run " +
			"all let the same through.",
		Source: &api.PlaySource{Title: fromEdge, Note: "The text recommends a burst equal to the rate for strict enforcement. That still admits twice the rate within a second; " +
			"a burst of 1 is strict."},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Paced: 1", "10", "1s", "1"), tokenBucket("Strict: the rate", "10", "1s", "10"),
			tokenBucket("Interactive: 5 times", "10", "1s", "50"), tokenBucket("Batch: 10 times", "10", "1s", "100")}, Traffic: traffic(burst(60, "", "1"), steady("12", "9"))},
	},
	{
		ID: "request-weight", Title: "A header that says the weight",
		Text: "100 tokens a second, room for 1,000, and 400 requests a second. Those of weight 1 have their first denial after more than three seconds, those of " +
			"weight 5 after half a second.",
		Source: &api.PlaySource{Title: fromEdge},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Weight 1", "100", "1s", "1000"), costing(tokenBucket("Weight 5", "100", "1s", "1000"), "5")},
			Traffic: traffic(steady("400", "4"))},
	},
	{
		ID: "tiers", Title: "Two plans",
		Text: "A hundred requests at once. Who pays has all of them, and who does not has 20.",
		Source: &api.PlaySource{Title: fromEdge, Note: "In the text the rule for free clients matches everybody, and all rules apply: who pays would have 20 as well. " +
			"In a policy here the first rule that matches applies, of those that share keys."},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Enterprise", "1000", "1s", "2000"), tokenBucket("Free", "10", "1s", "20")}, Traffic: traffic(burst(100, "", "3"), burst(20, "", "1"))},
	},
}

// designed are from a design of a limiter.
var designed = []api.PlayPreset{
	{
		ID: "plans", Title: "Free, pro, search and everyone",
		Text: "2,400 requests a second under four limits, each as if it were alone. Together the tightest decides: what a free client is denied " +
			"never reaches the others.",
		Source: &api.PlaySource{Title: fromDesign, Note: "The text asks the limits one after the other, and those that passed keep what they took though the request is denied. " +
			"Here a request is charged by all limits or by none."},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("free", "10", "1s", "50"), tokenBucket("pro", "100", "1s", "500"), tokenBucket("search", "1000", "1s", "2000"),
			tokenBucket("global", "50000", "1s", "100000")}, Traffic: traffic(steady("2400", "2"))},
	},
	{
		ID: "strict-window", Title: "No more than ten in any minute",
		Text: "A sliding log remembers each request for a minute and admits ten in any. One comes every second for ten minutes: ten pass in each minute.",
		Source: &api.PlaySource{Title: fromDesign, Note: "In the text denied requests are recorded as well: who keeps asking is never admitted again, and only ten of the 600 pass. " +
			"Here a denial changes nothing."},
		Input: api.Play{Lanes: []api.PlayLane{window("Sliding log", "sliding_log", "10", "1m"), window("Sliding window", "sliding_window", "10", "1m")},
			Traffic: traffic(steady("1", "600"))},
	},
}
