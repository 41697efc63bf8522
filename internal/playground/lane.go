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

// Algorithms are the algorithms of lanes, by their names in policy files. cost_based and
// budget, which policy files have as well, are a fixed_window.
var Algorithms = func() (names []string) {
	for _, a := range policy.Algorithms() {
		if a.Shape != "budget" {
			names = append(names, a.Name)
		}
	}
	return names
}()

// Client is the address that all requests of the playground come from, and so the key
// of its one bucket.
const Client = "192.0.2.1"

// file is a policy file with one rule.
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

// config has the fields of all algorithms, in the order in which people expect them.
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
}

// A lane that has been compiled.
type lane struct {
	api.PlayLane
	rule    string // its name
	text    string // the policy file
	matcher *policy.Matcher
	limit   *policy.Limit
	per     time.Duration
}

// wanted is a lane of a caller.
type wanted api.PlayLane

// compile makes a policy of a lane, and adds errors under field.
func (l wanted) compile(field string, ms *Mistakes) *lane {
	before := len(*ms)
	switch {
	case l.Algorithm == "":
		ms.add(field+"/algorithm", "say one of "+strings.Join(Algorithms, ", "), "an algorithm is missing")
	case !slices.Contains(Algorithms, l.Algorithm):
		ms.add(field+"/algorithm", "say one of "+strings.Join(Algorithms, ", "), "there is no algorithm %.40q", l.Algorithm)
	}
	if len(l.Name) > MaxNameBytes {
		ms.add(field+"/name", "shorten it", "the name is longer than %d bytes", MaxNameBytes)
	}
	if tokens, err := bucket.ParseTokens(string(l.Tokens)); err != nil || tokens == 0 {
		ms.add(field+"/tokens", `10 tokens every "1s", for example`, "tokens must be a number above 0, with at most three decimals")
	}
	if per, err := bucket.ParseDuration(l.Per); err != nil || per <= 0 {
		ms.add(field+"/per", `10 tokens every "1s", for example`, "per must be a duration above 0, with its unit")
	}
	if l.Algorithm == "token_bucket" && l.Capacity == "" {
		ms.add(field+"/capacity", "say how many tokens the bucket holds", "capacity is missing")
	}
	if l.Algorithm == "leaky_bucket" && l.Queue == "" {
		ms.add(field+"/queue", "say how many tokens may wait; 0 lets none", "queue is missing")
	}
	if len(*ms) > before {
		return nil
	}
	return l.load(field, ms)
}

// load writes the policy file and reads it, as a server would.
func (l wanted) load(field string, ms *Mistakes) *lane {
	c := &lane{PlayLane: api.PlayLane(l), rule: slug(l.Name)}
	if c.rule == "" {
		c.rule = strings.ReplaceAll(l.Algorithm, "_", "-")
	}
	text, err := json.MarshalIndent(file{[1]rule{{
		Name: c.rule, LimitKeys: []string{"ip:address"}, Algorithm: l.Algorithm, Config: l.config(), Jitter: l.Jitter,
	}}}, "", "  ")
	if err != nil { // a json.Number that is none
		ms.add(field, "write numbers as in 10 or 0.5", "a number cannot be read")
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
			ms.add(field+l.fieldOf(e.Path), e.Hint, "%s", reason)
		}
		return nil
	}
	if err != nil {
		ms.add(field, "", "%v", err)
		return nil
	}
	c.limit = &c.matcher.Rules()[0].Limits[0]
	c.per, _ = bucket.ParseDuration(l.Per) // which has been read before
	return c
}

// config returns the lane in the fields of its algorithm.
func (l wanted) config() config {
	c := config{Refill: l.Refill, Anchor: l.Anchor, Queue: l.Queue, Cost: l.Cost}
	if l.Refill == "continuous" {
		c.Refill = "" // as it is without
	}
	switch l.Algorithm {
	case "token_bucket":
		c.Rate, c.Burst = string(l.Tokens)+"/"+l.Per, l.Capacity
	case "leaky_bucket":
		c.Rate, c.Capacity = string(l.Tokens)+"/"+l.Per, l.Capacity
	default:
		c.Tokens, c.Window, c.Capacity = l.Tokens, l.Per, l.Capacity
	}
	return c
}

// fieldOf is where in a lane stands what a place in its policy file was made of.
func (l wanted) fieldOf(path string) string {
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "rate":
		return "/tokens"
	case "window":
		return "/per"
	case "burst":
		return "/capacity"
	case "fixed_cost":
		return "/cost"
	case "tokens", "capacity", "refill", "anchor", "queue", "jitter", "name":
		return "/" + path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// slug makes a name that a rule, a file and a header field can have.
func slug(name string) string {
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
