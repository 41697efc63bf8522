// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/metehq/mete/policy"
)

// A Kind describes all warnings with one code.
type Kind struct {
	Code    string // of [policy.Warning]
	Summary string // the finding, regardless of the policy
	Why     string // the consequence, in a sentence or two
	Note    bool   // it is for information, and no reason to change the policy
}

var kinds = []Kind{
	{"approximated-rate", "a rate is lowered by less than a billionth of itself",
		"The exact rate has more digits than the arithmetic of buckets keeps. The bound of what is admitted holds.", true},
	{"catch-all-tier", "a rule without match allows less than the rules beside it that have one",
		"It is probably meant for the requests that the others leave over, and counts theirs, too: whoever pays for more gets what the least have. " +
			"In one group, with this rule last, the first that matches counts.", false},
	{"clamped-cost", "a default_cost is not between min_cost and max_cost",
		"It is not what a request costs that names no cost: the bound next to it is.", false},
	{"client-allow", "an override lifts limits for whoever writes a header, a query parameter or a cookie",
		"Clients can write it, and then have no limit. A claim of a verified token, an address or a secret proves who sends a request.", false},
	{"client-tier", "clients can choose a tier that allows more by a header, a query parameter or a cookie",
		"That is right where the proxy in front sets or removes it. Elsewhere clients give themselves the better plan.", true},
	{"contradictory-rates", "one limit of a rule is never reached because another leaves nothing to deny",
		"One of the two is not what was meant: 10 a minute are at most 600 an hour, so that 1000 an hour say nothing.", false},
	{"custom-attribute", "an attribute is none that a request over HTTP has",
		"Only a program that embeds mete can supply it, or a request for a decision. Elsewhere the rule does not apply.", true},
	{"expired-override", "an override has expired",
		"It does nothing, and readers of the file may think that it does. It is a note, so that no file fails under --strict because time has passed.", true},
	{"head-bypass", "a rule is about GET and not about HEAD",
		"Most servers answer HEAD with the work of GET, and no rule that is as strict counts it.", false},
	{"hidden-tier", "a broader rule takes requests of a stricter one that stands behind it",
		"Of the rules of one group the first that matches counts. Requests that both match never meet the stricter limit.", false},
	{"idle-field", "a field does nothing beside the others",
		"The policy says less than it seems to.", false},
	{"impossible-cost", "costs that max_cost lets pass are above what the limit holds",
		"A request that costs more than a bucket holds is denied, however long it waits.", false},
	{"long-override", "an override stays in force for more than 90 days",
		"Exceptions are for what passes. One that stays is a rule that nobody finds among the rules.", false},
	{"long-queue", "requests wait in a queue for more than a minute",
		"Most clients, and the proxies in front of them, give up before. What they gave up is started all the same.", false},
	{"missing-bypass", "a request that leaves something out falls under no rule",
		"A rule does not apply to a request that lacks an attribute of its limit_keys. What a client writes, such as a header, it can leave out: " +
			"where no other rule takes that request in, the client has no limit.", false},
	{"outside-slot", "the buckets of a rule are not in the slots of slot_by",
		"In a Redis Cluster they are charged in another script than the others.", false},
	{"overlapping-rules", "a rule is never reached because another counts the same requests and allows less",
		"Rules of different groups, and of different policies, apply together. One of the two is not what was meant.", false},
	{"path-key", "every path has a bucket of its own",
		"A path with a number in it, such as that of a user or an order, is another one for each: the limit is one of each of them, and none of all.", false},
	{"reservations-only", "a limit with a burst of 0 admits only requests with max_wait",
		"Callers of /v1/take and programs can reserve tokens ahead. The gateway, the middleware and gRPC cannot, and deny every request.", false},
	{"rounded-rate", "a rate has more digits than are kept",
		"The closest one below it is used.", true},
	{"rule-off", "a rule is off",
		"It does nothing, and who reads the file may think that it does.", true},
	{"slash-bypass", "a rule is about a path and not about the same path with, or without, a slash at its end",
		"Many frameworks answer /login/ as /login. A client leaves the rule by a slash, unless another one is as strict.", false},
	{"small-shards", "the shards of a limit hold few tokens each",
		"A request may be denied by its shard while others have tokens.", false},
	{"spoofable-key", "limit_keys have a header that clients can make up",
		"With a new value comes a new, full bucket. mete finds the address of a client behind the proxies that it is told to trust.", false},
	{"unbounded-cost", "whoever sends a request can name any cost",
		"Who names a high one can empty a bucket at once that is shared, and who names a low one pays next to nothing.", false},
	{"unread-attribute", "a request of a test has an attribute that no rule reads",
		"It may be misspelt: the test shows less than it seems to.", false},
	{"unverified-key", "the only keys of a rule are credentials that mete does not verify, and no other rule counts the requests",
		"A client that makes up a new token has a new, full bucket each time. A second rule, by address, bounds that; so does a server behind mete that counts refused tokens.", false},
	{"week-start", "weeks begin on Thursdays",
		"They are counted from 1970, which began on one.", true},
}

// Kinds returns the kinds of warnings, in the order of their codes.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf returns the kind of w. For an unknown code, only Code is set.
func KindOf(w policy.Warning) Kind {
	for _, k := range kinds {
		if k.Code == w.Code {
			return k
		}
	}
	return Kind{Code: w.Code}
}
