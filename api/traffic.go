// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Traffic is the answer to GET /v1/traffic: the decisions of the rules in the last seconds.
type Traffic struct {
	Window float64               `json:"window"` // in seconds
	Rules  map[string]RuleCounts `json:"rules"`  // the rules with any, by name
}

// RuleCounts are the decisions of a rule, as JSON a list of five numbers: allowed, denied,
// denied but for the rule's shadow mode, allowed near the limit, and made without the store.
type RuleCounts [5]uint64

// A TrafficState is the data of an event named state in the stream of GET
// /v1/traffic/stream: the state of the server.
type TrafficState struct {
	At time.Time `json:"at"`
	ServerState
}

// TrafficSamples are the data of an event named samples in the stream of GET
// /v1/traffic/stream. The first such event has the last 15 minutes, later ones the seconds
// since.
type TrafficSamples struct {
	Step int `json:"step"` // seconds between two samples

	// A sample is a list of eleven numbers: the Unix time; the decisions allowed, denied,
	// denied but for shadow mode, and made without the store; the time in seconds that
	// decisions took, as 50th, 95th and 99th percentile; and the same of the store. A time
	// that nobody measured is null.
	Samples [][]any `json:"samples"`

	// Rules are the decisions of rules in the last second: a name, and [RuleCounts].
	Rules [][]any `json:"rules"`
}

// A ServerState is the state of a server: its policy, its store and its overrides.
type ServerState struct {
	Instance string    `json:"instance"` // another one after each start
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Ready    bool      `json:"ready"`
	Ending   bool      `json:"ending"`

	Policy PolicyState `json:"policy"`
	Store  StoreState  `json:"store"`

	// Overrides is the number of active overrides, by action.
	Overrides map[string]int `json:"overrides"`
}

// A PolicyState is the active policy, and the result of the last attempt to replace it.
type PolicyState struct {
	Source  string     `json:"source"` // its file or database
	Version int64      `json:"version"`
	Rules   int        `json:"rules"`
	Loaded  *time.Time `json:"loaded"`  // null if unknown
	Expires *time.Time `json:"expires"` // null for never
	Reloads uint64     `json:"reloads"`
	Refused uint64     `json:"refused"`
	Failing bool       `json:"failing"` // the last reload was refused
	Failed  *time.Time `json:"failed"`  // the time of that
	Errors  []string   `json:"errors"`  // its reasons, one mistake each

	// Bundle is set if the policy is a bundle that the server reads from an address.
	Bundle *Bundle `json:"bundle,omitempty"`
}

// A Bundle is the active policy of a server that reads it from an address.
type Bundle struct {
	Version int64  `json:"version"` // its bundle_version
	Digest  string `json:"digest"`  // the beginning of its SHA-256, in hexadecimal digits

	// Age is the time since the address last had this bundle. It stays below the interval of
	// polls, unless the address does not answer or has a bundle that the server refuses.
	Age Seconds `json:"age"`

	// FromDisk is set if the bundle is from the disk of the server, and the address has not
	// confirmed it since the start.
	FromDisk bool `json:"from_disk"`
}

// A StoreState is the place of the buckets, and whether it answers.
type StoreState struct {
	Kind    string     `json:"kind"`    // memory, redis or postgres
	Address string     `json:"address"` // without a password
	State   string     `json:"state"`   // ok, degraded or down
	Breaker string     `json:"breaker"` // closed, open, half-open or none
	Since   *time.Time `json:"since"`   // the begin of the state, if it is known
	Detail  string     `json:"detail"`  // in words; may be empty
	Buckets *int64     `json:"buckets"` // the number in the store; null if unknown
	Nodes   *int       `json:"nodes"`   // the servers that share it; null if unknown
}

// Me is the answer to GET /v1/me: the caller, and the parts of the API that the server has.
type Me struct {
	Name     string    `json:"name"` // of the token; may be empty
	Role     string    `json:"role"`
	SeeKeys  bool      `json:"see_keys"` // the role shows keys
	SignIn   string    `json:"sign_in"`  // where a token comes from
	Try      []string  `json:"try,omitempty"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Instance string    `json:"instance"`
	Features Features  `json:"features"`

	Actions    []ActionKind    `json:"actions"`    // of overrides
	Algorithms []AlgorithmKind `json:"algorithms"` // of policy files
	Reasons    []string        `json:"reasons"`    // of denials
}

// An ActionKind describes an action of overrides to pages, which have no list of their own.
type ActionKind struct {
	Action string `json:"action"`

	// An override of the action may name requests, may be about all requests, may name
	// rules, may have the key of a bucket, and has a limit.
	Some  bool `json:"some"`
	All   bool `json:"all"`
	Rules bool `json:"rules"`
	Key   bool `json:"key"`
	Limit bool `json:"limit"`

	Suspends  bool   `json:"suspends"`             // rules deny nothing meanwhile
	Label     string `json:"label"`                // of a button: "Block"
	Choice    string `json:"choice,omitempty"`     // in a list of what an override can do, unless it is the label
	Verb      string `json:"verb"`                 // behind a rule's name: "blocks"
	Count     string `json:"count"`                // behind a number of overrides: "blocked"
	Made      string `json:"made"`                 // before the requests of a new override: "Blocked"
	Effect    string `json:"effect"`               // of an override of some requests
	EffectAll string `json:"effect_all,omitempty"` // of an override of all requests
	Notice    string `json:"notice,omitempty"`     // while an override suspends rules
	Color     string `json:"color"`                // denied, allowed, level, shadow or degraded
}

// An AlgorithmKind describes an algorithm to pages.
type AlgorithmKind struct {
	Name   string `json:"name"`   // in policy files: "token_bucket"
	Label  string `json:"label"`  // for people: "Token bucket"
	Reason string `json:"reason"` // of a denial
	Shape  string `json:"shape"`  // of its numbers: rate, queue, window, sliding or budget
}

// Features are the parts of the API that only some servers have.
type Features struct {
	Top        bool `json:"top"`
	Overrides  bool `json:"overrides"`
	Violations bool `json:"violations"`
}
