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
	{"approximated-rate", "a rate is lowered by less than a billionth",
		"The exact rate has more digits than a bucket stores. The limit is never exceeded.", true},
	{"calendar-zone", "a calendar window, or the active hours of a rule, have no timezone",
		"They begin by UTC: midnight is then in the middle of the day in many countries. Set the time zone of your customers, or UTC.", false},
	{"catch-all-tier", "a rule without match allows less than the rules next to it that have one",
		"It is probably meant for the remaining requests, but it also counts the requests of the other rules. Clients with a higher limit then get the lowest one. Put the rules in one group with this rule last: the first rule that matches applies.", false},
	{"clamped-cost", "a default_cost is not between min_cost and max_cost",
		"A request that names no cost costs the nearer bound instead.", false},
	{"client-allow", "an override lifts limits for any client that sends a header, a query parameter or a cookie",
		"Any client can send it, and then has no limit. A claim of a verified token, an address or a secret identifies the client.", false},
	{"client-tier", "clients can choose a higher tier with a header, a query parameter or a cookie",
		"This is correct if your proxy sets or removes it. Otherwise, clients can give themselves the better plan.", true},
	{"contradictory-rates", "one limit of a rule is never reached because another limit denies first",
		"One of the two limits is probably wrong. A limit of 10 per minute allows at most 600 per hour, so that 1000 per hour has no effect.", false},
	{"custom-attribute", "HTTP requests do not have an attribute that a rule reads",
		"Only Envoy over gRPC, an embedding program, or a caller of /v1/take or METE.TAKE can supply it. The rule does not apply to other requests.", true},
	{"expired-override", "an override has expired",
		"It has no effect, although readers of the file may expect one. This is a note, so that --strict does not start to fail as time passes.", true},
	{"head-bypass", "a rule matches GET but not HEAD",
		"Most servers do the same work for HEAD as for GET, and no rule that is as strict counts it.", false},
	{"hidden-tier", "a broader rule takes requests of a stricter rule that follows it",
		"In a group, only the first rule that matches applies. Requests that match both rules never reach the stricter limit.", false},
	{"idle-alternative", "an alternative of a match is contained in an earlier one",
		"It matches no further requests. It is probably wrong, or can be removed.", false},
	{"idle-field", "a field has no effect because of other fields",
		"The policy limits less than it seems to.", false},
	{"idle-template", "a path template of a match is contained in another value",
		"It matches no further paths. It is probably wrong, or can be removed.", false},
	{"impossible-cost", "max_cost admits costs above the capacity of the limit",
		"A request that costs more than a bucket holds is always denied.", false},
	{"long-override", "an override stays active for more than 90 days",
		"Overrides are temporary exceptions. A permanent exception is a rule that readers do not find among the rules.", false},
	{"long-penalty", "a penalty lasts longer than a day",
		"One burst of requests locks the client out, and all people who share its address or key. An administrator can end the penalty with a reset.", false},
	{"long-queue", "requests wait in a queue for more than a minute",
		"Most clients and proxies time out earlier. Their requests are still processed.", false},
	{"missing-bypass", "no rule applies to requests that omit an attribute",
		"A rule does not apply to a request that lacks an attribute of its limit_keys. A client can omit any header, query parameter or cookie. If no other rule applies then, the client has no limit.", false},
	{"outside-slot", "the buckets of a rule are not in the slots of slot_by",
		"A Redis Cluster charges them in a separate script.", false},
	{"overlapping-rules", "a rule is never reached because another rule counts the same requests and allows less",
		"Rules of different groups, and of different policies, apply together. One of the two limits is probably wrong.", false},
	{"path-key", "every path has its own bucket",
		"A path that contains the number of a user or an order is different for each of them. The limit then applies to each path separately, not to all paths together.", false},
	{"reservations-only", "a limit with a burst of 0 admits only requests with max_wait",
		"Callers of /v1/take and programs can reserve tokens ahead. The gateway, the middleware and gRPC cannot, and deny every request.", false},
	{"rounded-rate", "a rate has too many digits",
		"It is rounded down.", true},
	{"rule-off", "a rule is off",
		"It has no effect, although readers of the file may expect one.", true},
	{"short-penalty", "a penalty can end before the limit has tokens again",
		"A client that retries when the penalty ends is denied again. A growing penalty then grows, although the client has waited. A fixed penalty adds little to the wait for tokens.", false},
	{"slash-bypass", "a rule matches a path but not the same path with, or without, a trailing slash",
		"Many frameworks treat /login/ like /login. A client evades the rule with a slash, unless another rule is as strict.", false},
	{"small-shards", "the shards of a limit hold few tokens each",
		"A shard may deny a request while other shards have tokens.", false},
	{"spoofable-key", "limit_keys have a header that clients can make up",
		"Each new value gets a new, full bucket. With ip:address, mete finds the client's address behind trusted proxies.", false},
	{"unaffordable-request", "a limit of tokens denies every request that names no maximum of tokens",
		"Such a request reserves default_max_completion tokens, which are more than the limit ever has.", false},
	{"unbounded-cost", "clients can set any cost for a request",
		"A high cost can empty a shared bucket with one request. A low cost makes requests almost free.", false},
	{"unmatched-tokens", "a limit of tokens applies to requests that are not to a language model",
		"Such a request reserves default_max_completion tokens, and no response tells that it used none.", false},
	{"unread-attribute", "a request of a test has an attribute that no rule reads",
		"Its name may be misspelled, so that the test checks less than it seems to.", false},
	{"unread-response", "a step of a test has a response, but no limit of its requests is charged by responses",
		"The response changes nothing, so that the test checks less than it seems to. The match of a rule, or its charge_on, is probably wrong.", false},
	{"unseen-response", "a rule depends on responses, but matches only requests of Envoy",
		"Envoy's rate limit service and ext_authz ask before a request is forwarded, and never report its response. Every request keeps its charge, and its slot for one lease.", false},
	{"unverified-key", "the only keys of a rule are credentials that mete does not verify, and no other rule counts the requests",
		"A client that makes up a new token gets a new, full bucket each time. A second rule by address bounds this. So does a server behind mete that counts rejected tokens.", false},
	{"week-start", "weeks begin on Thursdays",
		"They are counted from January 1, 1970, which was a Thursday.", true},
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
