// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Traffic is the response of GET /v1/traffic: recent decisions per rule.
type Traffic struct {
	Window float64               `json:"window"` // in seconds
	Rules  map[string]RuleCounts `json:"rules"`  // rules with decisions, by name
}

// RuleCounts counts the decisions of a rule. In JSON it is a list of five numbers: allowed, denied, denied in
// shadow mode, allowed near the limit, and decided without the store.
type RuleCounts [5]uint64

// A TrafficState is the data of the event state in the stream GET /v1/traffic/stream: the state of the server.
type TrafficState struct {
	At time.Time `json:"at"`
	ServerState
}

// TrafficSamples is the data of the event samples in the stream GET /v1/traffic/stream. The first event covers
// the last 15 minutes; later events cover the seconds since.
type TrafficSamples struct {
	Step int `json:"step"` // seconds between two samples

	// A sample is a list of eleven numbers. The first is the Unix time. Four counts follow: allowed, denied,
	// denied in shadow mode, and decided without the store. The rest are the 50th, 95th and 99th percentile of
	// the decision time and of the store's time, in seconds. A time without measurements is null.
	Samples [][]any `json:"samples"`

	// Rules lists the decisions of rules in the last second: a name, and [RuleCounts].
	Rules [][]any `json:"rules"`
}

// A ServerState is the state of a server: its policy, its store and its overrides.
type ServerState struct {
	Instance string    `json:"instance"` // changes with each start
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Ready    bool      `json:"ready"`
	Ending   bool      `json:"ending"`

	Policy PolicyState `json:"policy"`
	Store  StoreState  `json:"store"`

	// Overrides is the number of active overrides per action.
	Overrides map[string]int `json:"overrides"`
}

// A PolicyState describes the active policy and the last attempt to replace it.
type PolicyState struct {
	Source  string     `json:"source"` // file or database
	Version int64      `json:"version"`
	Rules   int        `json:"rules"`
	Loaded  *time.Time `json:"loaded"`  // null if unknown
	Expires *time.Time `json:"expires"` // null for never
	Reloads uint64     `json:"reloads"`
	Refused uint64     `json:"refused"`
	Failing bool       `json:"failing"` // the last reload was rejected
	Failed  *time.Time `json:"failed"`  // time of the failed reload
	Errors  []string   `json:"errors"`  // reasons of the failed reload

	// Bundle is set if the server polls the policy as a bundle from a URL.
	Bundle *Bundle `json:"bundle,omitempty"`
}

// A Bundle describes a policy bundle that the server polls from a URL.
type Bundle struct {
	Version int64  `json:"version"` // bundle_version
	Digest  string `json:"digest"`  // start of the SHA-256, in hexadecimal

	// Age is the time since the URL last served this bundle. It stays below the poll interval unless the URL does
	// not respond or serves an invalid bundle.
	Age Seconds `json:"age"`

	// FromDisk reports that the bundle came from disk and was not confirmed by the URL since the start.
	FromDisk bool `json:"from_disk"`
}

// A StoreState describes the store of the buckets.
type StoreState struct {
	Kind    string     `json:"kind"`    // memory, redis or postgres
	Address string     `json:"address"` // without a password
	State   string     `json:"state"`   // ok, degraded or down
	Breaker string     `json:"breaker"` // closed, open, half-open or none
	Since   *time.Time `json:"since"`   // start of the state, if known
	Detail  string     `json:"detail"`  // explanation; may be empty
	Buckets *int64     `json:"buckets"` // number of buckets; null if unknown
	Nodes   *int       `json:"nodes"`   // number of servers that share the store; null if unknown
}

// Me is the response of GET /v1/me: the caller's role and the features of the server.
type Me struct {
	Name     string    `json:"name"` // name of the token; may be empty
	Role     string    `json:"role"`
	SeeKeys  bool      `json:"see_keys"` // the role may see keys
	SignIn   string    `json:"sign_in"`  // how to get a token
	Try      []string  `json:"try,omitempty"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Instance string    `json:"instance"`
	Features Features  `json:"features"`

	Actions    []ActionKind    `json:"actions"`    // actions of overrides
	Algorithms []AlgorithmKind `json:"algorithms"` // algorithms of policies
	Reasons    []string        `json:"reasons"`    // reasons for denials
}

// An ActionKind describes an override action for user interfaces.
type ActionKind struct {
	Action string `json:"action"`

	// An override with this action may match some requests, may match all requests, may name rules, may have a
	// bucket key, and has a limit.
	Some  bool `json:"some"`
	All   bool `json:"all"`
	Rules bool `json:"rules"`
	Key   bool `json:"key"`
	Limit bool `json:"limit"`

	Suspends  bool   `json:"suspends"`             // rules deny nothing while the override is active
	Label     string `json:"label"`                // button label: "Block"
	Choice    string `json:"choice,omitempty"`     // label in a list of actions, if different
	Verb      string `json:"verb"`                 // follows a rule's name: "blocks"
	Count     string `json:"count"`                // follows a number of overrides: "blocked"
	Made      string `json:"made"`                 // precedes the requests of a new override: "Blocked"
	Effect    string `json:"effect"`               // effect of an override for some requests
	EffectAll string `json:"effect_all,omitempty"` // effect of an override for all requests
	Notice    string `json:"notice,omitempty"`     // notice while an override suspends rules
	Color     string `json:"color"`                // denied, allowed, level, shadow or degraded
}

// An AlgorithmKind describes an algorithm for user interfaces.
type AlgorithmKind struct {
	Name   string `json:"name"`   // name in policy files: "token_bucket"
	Label  string `json:"label"`  // display name: "Token bucket"
	Reason string `json:"reason"` // reason for a denial
	Shape  string `json:"shape"`  // kind of parameters: rate, queue, window, sliding or budget
}

// Features lists optional parts of the API.
type Features struct {
	Top        bool `json:"top"`
	Overrides  bool `json:"overrides"`
	Violations bool `json:"violations"`
	AI         bool `json:"ai"` // the policy limits language models
}
