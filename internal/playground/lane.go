// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Algorithms holds the names of the algorithms that a lane can have. Policy files also have cost_based, which decides
// like a fixed_window, and token_bucket_llm, which needs models.
var Algorithms = func() (names []string) {
	for _, a := range policy.Algorithms() {
		if a.Shape != "budget" && a.Shape != "tokens" {
			names = append(names, a.Name)
		}
	}
	return names
}()

// Client is the address of all requests, and the key of the only bucket of a lane.
const Client = "192.0.2.1"

type file struct {
	Rules [1]rule `json:"rules"`
}

type rule struct {
	Name      string   `json:"name"`
	LimitKeys []string `json:"limit_keys"`
	Algorithm string   `json:"algorithm"`
	Config    config   `json:"algorithm_config"`
	Jitter    string   `json:"jitter,omitempty"`
}

// config has the fields of all algorithms, in the order of the exported policy.
type config struct {
	Refill   string      `json:"refill,omitempty"`
	Rate     string      `json:"rate,omitempty"`
	Tokens   json.Number `json:"tokens,omitempty"`
	Window   string      `json:"window,omitempty"`
	Burst    json.Number `json:"burst,omitempty"`
	Capacity json.Number `json:"capacity,omitempty"`
	Queue    json.Number `json:"queue,omitempty"`
	Anchor   string      `json:"anchor,omitempty"`
	Cost     json.Number `json:"fixed_cost,omitempty"`
	Max      json.Number `json:"max,omitempty"`
	Lease    string      `json:"lease,omitempty"`
}

// concurrency is the algorithm of limits of slots. A request then lasts for api.PlayLane.Per; under others it ends at once.
const concurrency = "concurrency"

// The gateway renews a slot three times in its lease. With a lease of three times its duration, a request ends before the
// first renewal. The lease of a policy is between shortestLease and a day.
const (
	leasePerRequest = 3
	shortestLease   = time.Second
	longestRequest  = 24 * time.Hour / leasePerRequest
)

type lane struct {
	api.PlayLane
	rule    string // the name of the rule
	text    string // the policy file
	matcher *policy.Matcher
	limit   *policy.Limit
	per     time.Duration
}

type laneSpec api.PlayLane

// compile validates a lane and compiles its policy. It adds errors to ms with pointers below field, and returns nil
// if there are any.
func (l laneSpec) compile(field string, ms *InputErrors) *lane {
	before := len(*ms)
	switch {
	case l.Algorithm == "":
		ms.add(field+"/algorithm", "set it to one of "+strings.Join(Algorithms, ", "), "the algorithm is missing")
	case !slices.Contains(Algorithms, l.Algorithm):
		ms.add(field+"/algorithm", "use one of "+strings.Join(Algorithms, ", "), "unknown algorithm %.40q", l.Algorithm)
	}
	if len(l.Name) > MaxNameBytes {
		ms.add(field+"/name", "shorten it", "the name is longer than %d bytes", MaxNameBytes)
	}
	if tokens, err := bucket.ParseTokens(string(l.Tokens)); err != nil || tokens == 0 {
		ms.add(field+"/tokens", `for example 10 tokens per "1s"`, "tokens must be a number above 0, with at most three decimals")
	}
	if per, err := bucket.ParseDuration(l.Per); err != nil || per <= 0 {
		ms.add(field+"/per", `for example 10 tokens per "1s"`, "per must be a duration above 0, with a unit")
	}
	if per, err := bucket.ParseDuration(l.Per); l.Algorithm == concurrency && err == nil && per > longestRequest {
		ms.add(field+"/per", "shorten it", "a request lasts longer than %v", longestRequest)
	}
	if l.Algorithm == "token_bucket" && l.Capacity == "" {
		ms.add(field+"/capacity", "set it to the number of tokens that the bucket holds", "capacity is missing")
	}
	if l.Algorithm == "leaky_bucket" && l.Queue == "" {
		ms.add(field+"/queue", "set it to the number of tokens that may wait, or to 0", "queue is missing")
	}
	if len(*ms) > before {
		return nil
	}
	return l.load(field, ms)
}

// load generates the policy file and loads it like a server.
func (l laneSpec) load(field string, ms *InputErrors) *lane {
	c := &lane{PlayLane: api.PlayLane(l), rule: ruleName(l.Name)}
	if c.rule == "" {
		c.rule = strings.ReplaceAll(l.Algorithm, "_", "-")
	}
	text, err := json.MarshalIndent(file{[1]rule{{
		Name: c.rule, LimitKeys: []string{"ip:address"}, Algorithm: l.Algorithm, Config: l.algorithmConfig(), Jitter: l.Jitter,
	}}}, "", "  ")
	if err != nil { // an invalid json.Number
		ms.add(field, "write numbers like 10 or 0.5", "invalid number")
		return nil
	}
	c.text = string(text) + "\n"
	c.matcher, err = policy.Load(text, policy.Options{Now: time.Unix(0, 0)})
	if found, ok := errors.AsType[policy.Errors](err); ok {
		for _, e := range found {
			reason := e.Reason
			if e.Value != "" {
				reason += fmt.Sprintf(" (got %s)", e.Value)
			}
			ms.add(field+l.fieldForPath(e.Path), e.Hint, "%s", reason)
		}
		return nil
	}
	if err != nil {
		ms.add(field, "", "%v", err)
		return nil
	}
	c.limit = &c.matcher.Rules()[0].Limits[0]
	c.per, _ = bucket.ParseDuration(l.Per) // compile has checked it
	return c
}

func (l laneSpec) algorithmConfig() config {
	c := config{Refill: l.Refill, Anchor: l.Anchor, Queue: l.Queue, Cost: l.Cost}
	if l.Refill == "continuous" {
		c.Refill = "" // the default
	}
	switch l.Algorithm {
	case concurrency:
		per, _ := bucket.ParseDuration(l.Per) // compile has checked it
		c.Max, c.Lease = l.Tokens, max(leasePerRequest*per, shortestLease).String()
	case "token_bucket":
		c.Rate, c.Burst = string(l.Tokens)+"/"+l.Per, l.Capacity
	case "leaky_bucket":
		c.Rate, c.Capacity = string(l.Tokens)+"/"+l.Per, l.Capacity
	default:
		c.Tokens, c.Window, c.Capacity = l.Tokens, l.Per, l.Capacity
	}
	return c
}

// fieldForPath returns the field of the lane that sets the given path of the policy file.
func (l laneSpec) fieldForPath(path string) string {
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "rate":
		return "/tokens"
	case "window", "lease":
		return "/per"
	case "max":
		return "/tokens"
	case "burst":
		return "/capacity"
	case "fixed_cost":
		return "/cost"
	case "tokens", "capacity", "refill", "anchor", "queue", "jitter", "name":
		return "/" + path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// ruleName converts the name of a lane to a name that is valid for a rule, a file and a header field.
func ruleName(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}
