// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// An Action says what an [Override] does with the requests that it is about.
type Action string

const (
	ActionBlock      Action = "block"       // deny them, whatever the rules say
	ActionAllow      Action = "allow"       // let them through, uncharged: by all rules, or by those that are named
	ActionLimit      Action = "limit"       // hold them to another limit than that of the rule that is named
	ActionShadow     Action = "shadow"      // rules deny none of them, but say what they would have done
	ActionBreakGlass Action = "break_glass" // nothing is decided, nothing is blocked: all pass
)

// An ActionKind describes an [Action] to parsers, to programs and to people. Its JSON form
// is for pages, which have no list of actions of their own.
type ActionKind struct {
	Action Action `json:"action"`

	// An override of the action may name requests, may be about all requests, may name
	// rules, may have the key of a bucket, and has a limit.
	Some  bool `json:"some"`
	All   bool `json:"all"`
	Rules bool `json:"rules"`
	Key   bool `json:"key"`
	Limit bool `json:"limit"`

	// Suspends reports whether rules deny nothing meanwhile. An override of the action
	// then takes the role configure, and logs call it a warning.
	Suspends bool `json:"suspends"`

	Label     string `json:"label"`                // of a button or in a list: "Block"
	Choice    string `json:"choice,omitempty"`     // in a list of what an override can do, where that is not the label
	Verb      string `json:"verb"`                 // behind a rule's name: "blocks"
	Count     string `json:"count"`                // behind a number of overrides: "blocked"
	Made      string `json:"made"`                 // before the requests of a new override: "Blocked"
	Effect    string `json:"effect"`               // of an override of some requests, before an administrator makes it
	EffectAll string `json:"effect_all,omitempty"` // of an override of all requests
	Notice    string `json:"notice,omitempty"`     // while an override suspends rules
	Color     string `json:"color"`                // of a page: denied, allowed, level, shadow or degraded
}

// actionKinds are in the order in which an action goes before others.
var actionKinds = []ActionKind{
	{
		Action: ActionBlock, Some: true, Key: true,
		Label: "Block", Verb: "blocks", Count: "blocked", Made: "Blocked", Color: "denied",
		Effect: "Every request with this attribute is denied, whatever the rules say, until the block ends.",
	},
	{
		Action: ActionAllow, Some: true, Rules: true, Key: true,
		Label: "Let through", Verb: "lets pass", Count: "let through", Made: "Let through", Color: "allowed",
		Effect: "Every request with this attribute passes all rules uncharged until then.",
	},
	{
		Action: ActionLimit, Some: true, Rules: true, Key: true, Limit: true,
		Label: "Other limit", Verb: "other limit", Count: "with another limit", Made: "Other limit set for", Color: "level",
		Effect: "For requests with this attribute, another limit takes the place of the rule’s. What is missing from a bucket stays missing.",
	},
	{
		Action: ActionShadow, Some: true, All: true, Suspends: true,
		Label: "Shadow", Choice: "Shadow: deny nothing", Verb: "shadow", Count: "only in shadow", Made: "In shadow:", Color: "shadow",
		Effect: "None of these requests is denied by a rule until it ends. Rules still decide, and show what they would have denied. " +
			"What an override blocks stays blocked.",
		Notice: "An override has rules in shadow: they decide, and deny nothing.",
		EffectAll: "Nobody is denied anything by a rule until it ends. Rules still decide, and show what they would have denied. " +
			"What an override blocks stays blocked. The service behind the limiter gets all the rest.",
	},
	{
		Action: ActionBreakGlass, All: true, Suspends: true,
		Label: "Break glass", Choice: "Break glass: limit nothing", Verb: "break glass", Count: "break glass", Made: "Glass broken:", Color: "degraded",
		Notice: "Break glass: the limits it is about are not enforced.",
		EffectAll: "Nothing is limited until it ends, for everybody. Every request passes at once: no rule decides, no bucket is charged, " +
			"and what is blocked passes, too. The service behind the limiter gets all of it.",
	},
}

// Actions returns the actions of overrides. An earlier one goes before a later one.
func Actions() []ActionKind { return slices.Clone(actionKinds) }

// Kind returns the description of a. An unknown action has the action alone.
func (a Action) Kind() ActionKind {
	if i := a.rank(); i < len(actionKinds) {
		return actionKinds[i]
	}
	return ActionKind{Action: a}
}

// rank is the place of a among the actions: the first one counts where two are about one
// rule.
func (a Action) rank() int {
	for i := range actionKinds {
		if actionKinds[i].Action == a {
			return i
		}
	}
	return len(actionKinds)
}

// actionWords are the words of policy files.
func actionWords() []string {
	words := make([]string, len(actionKinds))
	for i, k := range actionKinds {
		words[i] = string(k.Action)
	}
	return words
}
