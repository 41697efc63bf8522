// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// caddyJSON is the part of Caddy's JSON configuration that matters for rate limits.
type caddyJSON struct {
	Apps struct {
		HTTP struct {
			Servers map[string]struct {
				Routes []caddyRoute `json:"routes"`
			} `json:"servers"`
		} `json:"http"`
	} `json:"apps"`
}

type caddyRoute struct {
	Group    string                       `json:"group"`
	Match    []map[string]json.RawMessage `json:"match"`
	Handle   []caddyHandler               `json:"handle"`
	Terminal bool                         `json:"terminal"`
}

type caddyHandler struct {
	Handler     string                   `json:"handler"`
	Routes      []caddyRoute             `json:"routes"` // of a subroute
	RateLimits  map[string]caddyZoneJSON `json:"rate_limits"`
	Jitter      float64                  `json:"jitter"`
	Distributed json.RawMessage          `json:"distributed"`
	StripPrefix string                   `json:"strip_path_prefix"` // of a rewrite
}

type caddyZoneJSON struct {
	Match  []map[string]json.RawMessage `json:"match"`
	Key    string                       `json:"key"`
	Window any                          `json:"window"`
	Events int64                        `json:"max_events"`
	Bits4  int                          `json:"ipv4_prefix"`
	Bits6  int                          `json:"ipv6_prefix"`
}

func (c *caddyConfig) json(data []byte) error {
	var config caddyJSON
	if err := json.Unmarshal(data, &config); err != nil {
		e := &Error{File: c.file, Reason: err.Error()}
		if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
			e.Line = 1 + bytes.Count(data[:syntax.Offset], []byte("\n"))
		}
		return e
	}
	servers := config.Apps.HTTP.Servers
	for i, name := range slices.Sorted(maps.Keys(servers)) {
		before := len(c.Rules)
		if err := c.routes("server "+name, servers[name].Routes, caddyScope{}); err != nil {
			return err
		}
		if i > 0 && len(c.Rules) > before {
			c.Differ(c.file, fmt.Sprintf("The limits of server %s apply to its ports alone.", name), "mete does not match ports, so its rules apply to all requests that match.", "")
		}
	}
	return nil
}

// routes reads routes. A terminal route and the routes of a group exclude later ones.
func (c *caddyConfig) routes(where string, routes []caddyRoute, s caddyScope) error {
	excluded := map[string][]condition{}
	for i, route := range routes {
		at := fmt.Sprintf("%s, route %d", where, i+1)
		scope := s.with(excluded[""])
		if route.Group != "" {
			scope = scope.with(excluded[route.Group])
		}
		sets, problem := caddySetsJSON(s.prefix, route.Match)
		var own []condition
		switch {
		case len(sets) == 1:
			own = sets[0]
		case len(sets) > 1 && problem == nil:
			problem = errors.New("the route has several matcher sets")
		}
		scope = scope.with(own)
		scope.problem = cmp.Or(scope.problem, problem)
		for j, h := range route.Handle {
			if err := c.handler(fmt.Sprintf("%s, handler %d", at, j+1), h, &scope); err != nil {
				return err
			}
		}
		if route.Terminal && len(route.Match) == 0 {
			return nil // terminal
		}
		if group := route.Group; route.Terminal || group != "" {
			if route.Terminal {
				group = ""
			}
			if rest, err := negateAll(own); err == nil {
				excluded[group] = append(excluded[group], rest...)
			}
		}
	}
	return nil
}

// handler reads one handler. A rewrite changes the scope of later handlers.
func (c *caddyConfig) handler(where string, h caddyHandler, s *caddyScope) error {
	switch h.Handler {
	case "rewrite":
		s.prefix += h.StripPrefix
	case "subroute":
		return c.routes(where, h.Routes, *s)
	case "rate_limit":
		c.handlers++
		if len(h.Distributed) > 0 {
			c.noteDistributed(c.file)
		}
		var zones []caddyZone
		for _, name := range slices.Sorted(maps.Keys(h.RateLimits)) {
			j := h.RateLimits[name]
			z := caddyZone{name: name, key: j.Key, events: j.Events, bits4: j.Bits4, bits6: j.Bits6, where: fmt.Sprintf("%s: %s", c.file, where)}
			switch window := j.Window.(type) {
			case string:
				z.window, _ = caddyDuration(window)
			case float64: // nanoseconds
				z.window = time.Duration(window)
			}
			if z.window <= 0 || z.events <= 0 {
				c.recognize()
				return &Error{File: c.file, Reason: fmt.Sprintf("%s: zone %s without window or max_events", where, name), Recognized: c.Recognized}
			}
			z.sets, z.problem = caddySetsJSON(s.prefix, j.Match)
			zones = append(zones, z)
		}
		return c.add(c.file+": "+where, zones, h.Jitter, *s)
	}
	return nil
}

func caddySetsJSON(prefix string, sets []map[string]json.RawMessage) (all [][]condition, problem error) {
	for _, set := range sets {
		conds, err := caddySetJSON(prefix, set)
		all, problem = append(all, conds), cmp.Or(problem, err)
	}
	return all, problem
}

// caddySetJSON reads a set of matchers, which must all hold.
func caddySetJSON(prefix string, set map[string]json.RawMessage) (conds []condition, err error) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		var one []condition
		switch name {
		case "not":
			var sets []map[string]json.RawMessage
			if err = json.Unmarshal(set[name], &sets); err != nil {
				return nil, err
			}
			for _, inner := range sets {
				none, err := caddySetJSON(prefix, inner)
				if err == nil {
					none, err = negateAll(none)
				}
				if err != nil {
					return nil, err
				}
				one = append(one, none...)
			}
		case "header", "query":
			var fields map[string][]string
			if err = json.Unmarshal(set[name], &fields); err != nil {
				return nil, err
			}
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				attribute := "query:" + field
				if name == "header" {
					attribute = caddyHeader(field)
				}
				cond := condition{attribute: attribute}
				if fields[field] == nil { // null means that the field must be absent
					one = append(one, condition{attribute, []string{"*"}, true})
					continue
				}
				values, err := caddyValues(cond, fields[field])
				if err != nil {
					return nil, err
				}
				one = append(one, values...)
			}
		case "remote_ip", "client_ip":
			var ranges struct{ Ranges []string }
			if err = json.Unmarshal(set[name], &ranges); err != nil {
				return nil, err
			}
			one, err = caddyMatcher(name, prefix, ranges.Ranges)
		default:
			var values []string
			if err = json.Unmarshal(set[name], &values); err != nil {
				values = nil
			}
			one, err = caddyMatcher(name, prefix, values)
		}
		if err != nil {
			return nil, err
		}
		conds = append(conds, one...)
	}
	return conds, nil
}
