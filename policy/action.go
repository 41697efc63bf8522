// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// An Action is the effect of an [Override] on the requests that it matches.
type Action string

const (
	ActionBlock      Action = "block"       // deny the requests, regardless of the rules
	ActionAllow      Action = "allow"       // admit the requests without charge: under all rules, or under the named ones
	ActionLimit      Action = "limit"       // replace the limit of the named rule
	ActionShadow     Action = "shadow"      // rules deny nothing, but record their decisions
	ActionBreakGlass Action = "break_glass" // admit all requests, without any decision
)

// An ActionKind describes an [Action] to parsers, programs and people. Web pages use its JSON form
// instead of a separate list of actions.
type ActionKind struct {
	Action Action `json:"action"`

	// The parts that an override with the action may have: a match, no match (all requests), rules, and a bucket
	// key. With Limit, it must have a limit.
	Some  bool `json:"some"`
	All   bool `json:"all"`
	Rules bool `json:"rules"`
	Key   bool `json:"key"`
	Limit bool `json:"limit"`

	// Suspends reports whether the action keeps rules from denying. An override with such an action needs the role
	// configure, and is logged as a warning.
	Suspends bool `json:"suspends"`

	Label     string `json:"label"`                // on a button or in a list: "Block"
	Choice    string `json:"choice,omitempty"`     // in a list of actions, if it differs from Label
	Verb      string `json:"verb"`                 // after a rule's name: "blocks"
	Count     string `json:"count"`                // after a number of overrides: "blocked"
	Made      string `json:"made"`                 // before the requests of a new override: "Blocked"
	Effect    string `json:"effect"`               // of an override of some requests, shown before an admin creates it
	EffectAll string `json:"effect_all,omitempty"` // of an override of all requests
	Notice    string `json:"notice,omitempty"`     // shown while an override suspends rules
	Color     string `json:"color"`                // on a page: denied, allowed, level, shadow or degraded
}

// actionKinds is in order of precedence, highest first.
var actionKinds = []ActionKind{
	{
		Action: ActionBlock, Some: true, Key: true,
		Label: "Block", Verb: "blocks", Count: "blocked", Made: "Blocked", Color: "denied",
		Effect: "Every request with this attribute is denied, regardless of the rules, until the block ends.",
	},
	{
		Action: ActionAllow, Some: true, Rules: true, Key: true,
		Label: "Let through", Verb: "lets pass", Count: "let through", Made: "Let through", Color: "allowed",
		Effect: "Until it ends, requests with this attribute pass all rules without charge.",
	},
	{
		Action: ActionLimit, Some: true, Rules: true, Key: true, Limit: true,
		Label: "Other limit", Verb: "other limit", Count: "with another limit", Made: "Other limit set for", Color: "level",
		Effect: "For requests with this attribute, another limit replaces the rule’s limit. Tokens that are already spent stay spent.",
	},
	{
		Action: ActionShadow, Some: true, All: true, Suspends: true,
		Label: "Shadow", Choice: "Shadow: deny nothing", Verb: "shadow", Count: "only in shadow", Made: "In shadow:", Color: "shadow",
		Effect: "No rule denies these requests until it ends. Rules still decide, and record the requests that they would have denied. " +
			"Blocked requests stay blocked.",
		Notice: "An override puts rules in shadow: they decide, but deny nothing.",
		EffectAll: "No rule denies any request until it ends. Rules still decide, and record the requests that they would have denied. " +
			"Blocked requests stay blocked. The service behind the limiter receives all other requests.",
	},
	{
		Action: ActionBreakGlass, All: true, Suspends: true,
		Label: "Break glass", Choice: "Break glass: limit nothing", Verb: "break glass", Count: "break glass", Made: "Glass broken:", Color: "degraded",
		Notice: "Break glass: no limit is enforced.",
		EffectAll: "No client is limited until it ends. Every request passes immediately: no rule decides, no bucket is charged, " +
			"and blocked requests pass, too. The service behind the limiter receives all requests.",
	},
}

// Actions returns the actions of overrides, in order of precedence: an earlier action wins over a later one.
func Actions() []ActionKind { return slices.Clone(actionKinds) }

// Kind returns the description of a. For an unknown action, only Action is set.
func (a Action) Kind() ActionKind {
	if i := a.rank(); i < len(actionKinds) {
		return actionKinds[i]
	}
	return ActionKind{Action: a}
}

// rank returns the precedence of a. If two overrides match one rule, the lower rank wins.
func (a Action) rank() int {
	for i := range actionKinds {
		if actionKinds[i].Action == a {
			return i
		}
	}
	return len(actionKinds)
}

func actionWords() []string {
	words := make([]string, len(actionKinds))
	for i, k := range actionKinds {
		words[i] = string(k.Action)
	}
	return words
}
