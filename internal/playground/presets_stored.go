// SPDX-License-Identifier: Apache-2.0

package playground

import "github.com/metehq/mete/api"

// stored are from texts on limits in databases.
var stored = []api.PlayPreset{
	{
		ID: "failed-logins", Title: "Failed logins",
		Text: "A guess a minute. With room for 5, the first five pass, and then one every six minutes. With room for 10, the first eleven do, as one token comes back meanwhile.",
		Source: &api.PlaySource{Title: fromTwo, Note: "The text promises 5 attempts and then one every six minutes; its configuration, 10 an hour and no capacity, has room for 10. " +
			"What the text means is a capacity of 5."},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("As the text says", "10", "1h", "5"), tokenBucket("As the code says", "10", "1h", "10")},
			Traffic: traffic(burst(1, "1m", "7200"))},
	},
	{
		ID: "half-a-minute", Title: "Five tokens in thirty seconds",
		Text:   "10 tokens a minute, and room for 10. Five are used at once, and half a minute later all are back: one every six seconds.",
		Source: &api.PlaySource{Title: fromTwo},
		Input:  api.Play{Lanes: []api.PlayLane{tokenBucket("10 a minute", "10", "1m", "10")}, Traffic: traffic(burst(5, "", "40"))},
	},
	{
		ID: "sign-ups", Title: "Sign-ups of everybody",
		Text: "100 an hour for all together, and a flood of one a second. What an hour has is gone in less than two minutes; then one in 36 passes, " +
			"whoever it is: those who mean well wait as well.",
		Source: &api.PlaySource{Title: fromTwo},
		Input:  api.Play{Lanes: []api.PlayLane{tokenBucket("100 an hour", "100", "1h", "100")}, Traffic: traffic(steady("1", "1800"))},
	},
	{
		ID: "messages", Title: "Messages of one user",
		Text:   "10 messages a minute with room for 20, and with room for 10. Who was quiet for a while may send 20 at once, and a lively minute does not fail.",
		Source: &api.PlaySource{Title: fromTwo},
		Input: api.Play{Lanes: []api.PlayLane{tokenBucket("Capacity 20", "10", "1m", "20"), tokenBucket("Capacity 10", "10", "1m", "10")},
			Traffic: traffic(burst(18, "", "60"), steady("0.1", "120"), burst(18, "", "60"))},
	},
	{
		ID: "small-and-often", Title: "Small and often",
		Text:   "60 an hour, and room for 10: five every five minutes pass for ever. After a quarter of an hour of silence there are 10 tokens and not 15.",
		Source: &api.PlaySource{Title: fromTwo},
		Input:  api.Play{Lanes: []api.PlayLane{tokenBucket("60 an hour", "60", "1h", "10")}, Traffic: traffic(burst(5, "5m", "1800"), pause("900"), burst(15, "", "600"))},
	},
	{
		ID: "reserve", Title: "Owing tokens",
		Text: "There are 3 tokens, and a request wants 5. It is allowed, and starts when the 2 that it lacks have come, two seconds later; nobody asks it again then. " +
			"The next one finds what has come since.",
		Source: &api.PlaySource{Title: fromTwo, Note: "The text tests a number that has the cost taken off already against the cost: it tells requests to wait whose tokens are there. " +
			"And a bound of 0 on what may be owed means none at all there."},
		Input: api.Play{Lanes: []api.PlayLane{costing(holding(leakyBucket("Owes up to 5", "1", "1s", "5"), "3"), "5")}, Traffic: traffic(burst(1, "4s", "14"))},
	},
	{
		ID: "roll-over", Title: "Windows whose tokens roll over",
		Text: "Ten in each ten seconds, and fifteen requests in every second window. A fixed window denies five of them each time. With a capacity of 20, what one window " +
			"leaves is there in the next, and all pass.",
		Source: &api.PlaySource{Title: fromTwo},
		Input: api.Play{Lanes: []api.PlayLane{window("Fixed window", "fixed_window", "10", "10s"), holding(window("Capacity 20", "fixed_window", "10", "10s"), "20")},
			Traffic: traffic(pause("1"), burst(15, "20s", "59"))},
	},
	{
		ID: "third-party", Title: "Staying below somebody else's limit",
		Text: "Somebody else allows 100 a minute. A hundred requests come 100 ms before the minute is over, and a hundred when the next begins. The fixed window sends 200 " +
			"within 100 ms, the token bucket 100. With half of both, rate and capacity, no minute ever has more than 100.",
		Source: &api.PlaySource{Title: fromTwo, Note: "The text calls the fixed window safer, as it has at most its capacity in a period. It has that in its own periods; " +
			"those of somebody else begin at other times."},
		Input: api.Play{Lanes: []api.PlayLane{window("Fixed window of 100", "fixed_window", "100", "1m"), tokenBucket("Bucket of 100", "100", "1m", "100"),
			tokenBucket("Bucket of 50", "50", "1m", "50")}, Traffic: traffic(pause("59.9"), burst(100, "100ms", "0.2"), steady("2", "60"))},
	},
	{
		ID: "intervals", Title: "Five tokens every ten seconds",
		Text: "Tokens come five at a time, every ten seconds, and the bucket holds 20. Five requests at 0:00 leave 15; at 0:10 it is full; 18 at 0:15 leave 2; " +
			"at 0:20 there are 7.",
		Source: &api.PlaySource{Title: fromPostgres, Note: "The text promises 7 at 0:20. Its own SQL has 2 then: it stores the time of the last request in place of the beginning of " +
			"its interval, and so loses the five seconds that had gone by."},
		Input: api.Play{Lanes: []api.PlayLane{inIntervals(tokenBucket("In intervals", "5", "10s", "20")), tokenBucket("All the time", "5", "10s", "20")},
			Traffic: traffic(burst(5, "", "15"), burst(18, "", "15"))},
	},
	{
		ID: "lost-fractions", Title: "No fraction is lost",
		Text:   "One request every three seconds, for ten minutes, where one every two seconds is allowed: nobody is denied, whether tokens come in intervals or all the time.",
		Source: &api.PlaySource{Title: fromPostgres, Note: "The SQL of the text denies 37 % of these requests: each that passes throws away the fraction of an interval that has gone by."},
		Input: api.Play{Lanes: []api.PlayLane{inIntervals(tokenBucket("In intervals", "5", "10s", "20")), tokenBucket("All the time", "5", "10s", "20")},
			Traffic: traffic(burst(1, "3s", "600"))},
	},
}
