// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// caddyMatcher returns the clauses of a matcher, which must all hold. Paths are relative to prefix, which an
// enclosing handle_path has removed.
func caddyMatcher(name, prefix string, args []string) ([]condition, error) {
	attribute := map[string]string{"path": "path", "method": "method", "host": "host", "remote_ip": "ip:address", "client_ip": "ip:address"}[name]
	switch {
	case name == "header" && len(args) == 1 && strings.HasPrefix(args[0], "!"):
		return []condition{{caddyHeader(args[0][1:]), []string{"*"}, true}}, nil
	case name == "header" && len(args) == 1:
		return []condition{{caddyHeader(args[0]), []string{"*"}, false}}, nil
	case name == "header" && len(args) > 1:
		return caddyValues(condition{attribute: caddyHeader(args[0])}, args[1:])
	case name == "query":
		var conds []condition
		for _, arg := range args {
			key, value, _ := strings.Cut(arg, "=")
			cond, err := caddyValues(condition{attribute: "query:" + key}, []string{value})
			if err != nil {
				return nil, err
			}
			conds = append(conds, cond...)
		}
		return conds, nil
	case attribute == "":
		return nil, fmt.Errorf("the policy language has no counterpart of the matcher %s", name)
	case len(args) == 0:
		return nil, fmt.Errorf("the matcher %s has no values", name)
	case attribute == "path":
		values := make([]string, len(args))
		for i, arg := range args {
			if prefix != "" && !strings.HasPrefix(arg, "/") {
				return nil, fmt.Errorf("the path %s below %s", arg, prefix)
			}
			values[i] = prefix + arg
		}
		args = values
	}
	return caddyValues(condition{attribute: attribute}, args)
}

func caddyHeader(name string) string {
	if strings.EqualFold(name, "host") {
		return "host"
	}
	return "header:" + strings.ToLower(name)
}

func caddyValues(c condition, values []string) ([]condition, error) {
	for _, value := range values {
		if c.attribute == "ip:address" {
			if value == "private_ranges" {
				c.values = append(c.values, "192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "::1")
				continue
			}
			text := networkValue(value)
			if text == "" {
				return nil, fmt.Errorf("%q is not an address or network", value)
			}
			c.values = append(c.values, text)
			continue
		}
		literal, star := strings.CutSuffix(value, "*")
		switch {
		case strings.ContainsAny(literal, "*{"):
			return nil, fmt.Errorf("%q is a pattern, and the policy language compares whole values and beginnings", value)
		case c.attribute == "host" && star:
			return nil, fmt.Errorf("%q is a pattern of hosts", value)
		case c.attribute == "host":
			literal = strings.ToLower(literal)
		}
		if literal = literalValue(c.attribute, literal); star {
			literal += "*"
		}
		c.values = append(c.values, literal)
	}
	return []condition{c}, nil
}

// caddySet reads a matcher set. All its lines must hold.
func caddySet(prefix string, lines []*caddyLine) (conds []condition, err error) {
	for _, l := range lines {
		name, args := l.words[0], l.words[1:]
		if name == "not" {
			inner := l.block
			if len(args) > 0 {
				inner = []*caddyLine{{words: args}}
			}
			none, err := caddySet(prefix, inner)
			if err != nil {
				return nil, err
			}
			if none, err = negateAll(none); err != nil {
				return nil, err
			}
			conds = append(conds, none...)
			continue
		}
		one, err := caddyMatcher(name, prefix, args)
		if err != nil {
			return nil, err
		}
		// Lines about one attribute are alternatives, like its values.
		i := slices.IndexFunc(conds, func(c condition) bool { return !c.negate && len(one) == 1 && c.attribute == one[0].attribute })
		if i >= 0 && !one[0].negate {
			conds[i].values = append(conds[i].values, one[0].values...)
			continue
		}
		conds = append(conds, one...)
	}
	return conds, nil
}

// negateAll returns the clauses that hold if conds do not all hold.
func negateAll(conds []condition) ([]condition, error) {
	if len(conds) != 1 {
		return nil, errors.New("the opposite of several matchers together has alternatives")
	}
	c := conds[0]
	c.negate = !c.negate
	return []condition{c}, nil
}

var caddyPlaceholder = regexp.MustCompile(`\{[^{}]*\}`)

// caddyKey returns the limit_keys for a key, with the differences.
func caddyKey(key string, bits4, bits6 int) (keys []string, onMissing string, differences []Difference, err error) {
	keys = []string{}
	for _, found := range caddyPlaceholder.FindAllString(key, -1) {
		attribute, difference := caddyAttribute(strings.Trim(found, "{}"))
		if attribute == "" {
			return nil, "", nil, fmt.Errorf("mete has no attribute for %s", found)
		}
		if difference.What != "" {
			differences = append(differences, difference)
		}
		switch {
		case attribute != "ip:address":
			if strings.Contains(attribute, ":") {
				onMissing = "empty"
			}
		case bits4 != 0 && bits4 != 32:
			return nil, "", nil, fmt.Errorf("ipv4_prefix %d: mete always counts a whole IPv4 address", bits4)
		case bits6 == 0:
			differences = append(differences, Difference{"", "Caddy counts each IPv6 address by itself.",
				"mete counts all addresses of a /64 as one client, because one client has a whole /64.", "Use ip:address/128 in limit_keys, or ipv6_prefix 64 in Caddy."})
		case bits6 != 64:
			attribute = fmt.Sprintf("ip:address/%d", bits6)
		}
		if !slices.Contains(keys, attribute) {
			keys = append(keys, attribute)
		}
	}
	return keys, onMissing, differences, nil
}

// caddyAttribute returns the attribute for a placeholder, or "".
func caddyAttribute(name string) (attribute string, d Difference) {
	name = strings.TrimPrefix(name, "http.request.")
	for _, p := range []struct{ from, to string }{{"header.", "header:"}, {"cookie.", "cookie:"}, {"query.", "query:"}, {"uri.query.", "query:"}} {
		if rest, ok := strings.CutPrefix(name, p.from); ok {
			if p.to == "header:" {
				return caddyHeader(rest), d
			}
			return p.to + rest, d
		}
	}
	switch name {
	case "remote_host", "remote.host", "client_ip", "http.vars.client_ip", "vars.client_ip", "vars.trusted_proxy":
		return "ip:address", d
	case "host", "hostport":
		return "host", d
	case "method":
		return "method", d
	case "path", "uri.path", "orig_uri.path", "orig_path":
		return "path", d
	case "uri", "orig_uri":
		return "path", Difference{"", fmt.Sprintf("{%s} includes the query.", name), "mete uses the path, so requests that differ in the query share a bucket.", ""}
	}
	return "", d
}
