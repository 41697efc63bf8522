// SPDX-License-Identifier: Apache-2.0

package playground

import "github.com/metehq/mete/api"

// explained are from an explainer of token buckets.
var explained = []api.PlayPreset{
	{
		ID: "burst-and-recover", Title: "Bursting and recovering",
		Text: "10 tokens a second, room for 50, and 60 requests a second. 59 pass before request 60 is the first denied, at 0.983 s; from then on one in six " +
			"passes: the rate. Five seconds of silence fill the bucket, and 50 of the next 60 pass at once.",
		Source: &api.PlaySource{Title: fromExplainer, Note: "The text says that request 51 is the first denied, at 0.850 s. It forgets that tokens come back during the burst, too: " +
			"nearly ten until the first denial."},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Token bucket", "10", "1s", "50")}, Traffic: traffic(steady("60", "3"), pause("5"), burst(60, "", "2"))},
	},
	{
		ID: "parking-meter", Title: "The parking meter",
		Text: "The meter gets a quarter every six seconds and holds ten. After an hour away you park ten times at once; the eleventh time you wait for the next " +
			"quarter. Then you come every five seconds, a little too often.",
		Source: &api.PlaySource{Title: fromExplainer},
		Input:  api.Play{Lanes: []api.PlayLane{tokenBucket("Parking meter", "10", "1m", "10")}, Traffic: traffic(burst(11, "", "5"), burst(1, "5s", "55"))},
	},
	{
		ID: "capacity-is-rate", Title: "Capacity equal to the rate",
		Text: "100 tokens a second and room for 100, against 500 requests a second: the first 124 pass, and within the first second nearly 200. " +
			"Room for one token paces: never two within 10 ms.",
		Source: &api.PlaySource{Title: fromExplainer, Note: "The text says that a capacity equal to the rate allows no burst. It allows one of the whole capacity: " +
			"what one second can admit is capacity + rate."},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Room for 100", "100", "1s", "100"), tokenBucket("Room for 1", "100", "1s", "1")}, Traffic: traffic(steady("500", "2"))},
	},
	{
		ID: "weighted", Title: "Requests of different cost",
		Text: "The same bucket, 10 tokens a second and room for 20, and the same 15 requests a second. If each costs half a token, all pass; at a whole one, two " +
			"thirds do in the end; at two tokens, one third.",
		Source: &api.PlaySource{Title: fromExplainer},
		Input: api.Play{Lanes: []api.PlayLane{costing(tokenBucket("Half a token each", "10", "1s", "20"), "0.5"), tokenBucket("One token each", "10", "1s", "20"),
			costing(tokenBucket("Two tokens each", "10", "1s", "20"), "2")}, Traffic: traffic(steady("15", "10"))},
	},
	{
		ID: "five-minutes", Title: "Five minutes of credit",
		Text: "The bucket holds what 300 seconds refill: 5 a second, so 1,500. It carries four times the rate for a hundred seconds. Only then is there a limit to be seen.",
		Source: &api.PlaySource{Title: fromExplainer, Note: "The text forgets a bucket after 60 s without requests, and so it is full, with 1,500 tokens, when 300 have come back. " +
			"Only a full bucket may be forgotten."},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("300 s of credit", "5", "1s", "1500")}, Traffic: traffic(steady("20", "150"))},
	},
	{
		ID: "too-much-room", Title: "Far too much room",
		Text: "10 a second either way. A bucket with room for 10,000 is full after 1,000 s of silence, and then lets 10,000 requests in at once: whatever is behind it " +
			"has to bear them. With room for 50, it has to bear 50.",
		Source: &api.PlaySource{Title: fromExplainer},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Room for 10,000", "10", "1s", "10000"), tokenBucket("Room for 50", "10", "1s", "50")},
			Traffic: traffic(burst(10_000, "", "1"), steady("20", "5"))},
	},
	{
		ID: "token-or-leaky", Title: "Token bucket or leaky bucket",
		Text: "Ten a second, either way. The token bucket lets 50 start in one instant; the leaky bucket lets each start 100 ms after the one before, and who is alone " +
			"for long gets nothing for it.",
		Source: &api.PlaySource{Title: fromExplainer},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Token bucket", "10", "1s", "50"), leakyBucket("Leaky bucket, denies", "10", "1s", "0"),
			leakyBucket("Leaky bucket, queues", "10", "1s", "50")}, Traffic: traffic(pause("1"), burst(50, "", "7"), steady("8", "2"))},
	},
}
