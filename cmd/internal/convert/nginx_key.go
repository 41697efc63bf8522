// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A nginxVar is the variable of a map or geo block. Its value depends on its source.
type nginxVar struct {
	at      *directive
	geo     bool
	source  string // expression
	entries []nginxEntry
	other   string // default
}

type nginxEntry struct{ from, to string }

// A nginxPart is a part of a zone's requests with their key.
type nginxPart struct {
	keys        []string
	onMissing   string
	conds       []condition
	differences []Difference // without a place

	text   string // constant part of the key
	always bool   // the key has a part that every request has
}

// variable reads map SOURCE $NAME { … } or geo [$ADDRESS] $NAME { … }.
func (c *nginxConfig) variable(d *directive) {
	v := &nginxVar{at: d, geo: d.name == "geo", source: "$remote_addr"}
	if len(d.args) == 0 {
		return
	}
	if len(d.args) > 1 {
		v.source = d.args[0]
	}
	if v.geo {
		v.other = "" // what nginx has without a default
	}
	for _, e := range d.block {
		switch {
		case e.name == "default" && len(e.args) == 1:
			v.other = e.args[0]
		case e.name == "volatile" || e.name == "hostnames" || e.name == "ranges" || e.name == "proxy" || e.name == "proxy_recursive" || e.name == "delete":
			if e.name != "volatile" {
				c.Differ(e.position(), fmt.Sprintf("%s in %s is not supported.", e.name, d.text()), "The policy treats its entries as if it were not there.", "")
			}
		case len(e.args) == 1:
			v.entries = append(v.entries, nginxEntry{e.name, e.args[0]})
		}
	}
	c.vars[strings.TrimPrefix(d.args[len(d.args)-1], "$")] = v
}

var nginxVariable = regexp.MustCompile(`\$(\{\w+\}|\w+)`)

// keys splits the requests of a zone by key. It omits requests with an empty key, because nginx does not count
// them.
func (c *nginxConfig) keys(key string) ([]nginxPart, error) {
	all, err := c.expand(key, 0)
	if err != nil {
		return nil, err
	}
	var parts []nginxPart
	for _, p := range all {
		if len(p.keys) == 0 && p.text == "" {
			continue // empty key
		}
		if p.keys == nil {
			p.keys = []string{}
		}
		if !p.always && len(p.keys) == 1 && p.text == "" { // nginx skips the request, too
			p.differences = append(p.differences, Difference{
				What:   fmt.Sprintf("nginx does not count requests in which %s is empty.", key),
				Effect: "mete does not count requests without it, and counts those with an empty value in one bucket.",
			})
		} else if !p.always || len(p.keys) > 1 {
			p.onMissing = onMissing(p.keys)
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil, errors.New("it is always empty")
	}
	return parts, nil
}

// onMissing returns the on_missing of a key with several parts. nginx treats absent parts as empty.
func onMissing(keys []string) string {
	for _, key := range keys {
		if strings.Contains(key, ":") && key != "ip:address" {
			return "empty"
		}
	}
	return ""
}

func (c *nginxConfig) expand(expr string, depth int) ([]nginxPart, error) {
	if depth > maxNginxDepth {
		return nil, errors.New("its variables are defined by a cycle of maps")
	}
	if c.expanded++; c.expanded > maxNginxExpansions {
		return nil, fmt.Errorf("the keys have more than %d nested variables", maxNginxExpansions)
	}
	parts := []nginxPart{{}}
	at := 0
	for _, found := range append(nginxVariable.FindAllStringIndex(expr, -1), []int{len(expr), len(expr)}) {
		for i := range parts {
			parts[i].text += expr[at:found[0]]
		}
		at = found[1]
		if found[0] == found[1] {
			break
		}
		alternatives, err := c.alternatives(strings.Trim(expr[found[0]+1:found[1]], "{}"), depth)
		if err != nil {
			return nil, err
		}
		var product []nginxPart
		for _, left := range parts {
			for _, right := range alternatives {
				if p, ok := left.appendKey(right); ok {
					product = append(product, p)
				}
			}
		}
		if len(product) > maxNginxParts {
			return nil, fmt.Errorf("it has more than %d cases", maxNginxParts)
		}
		parts = product
	}
	return parts, nil
}

// maxNginxParts bounds the cases of a key with maps. maxNginxExpansions bounds the expressions of all keys,
// because maps that refer to each other grow exponentially.
const (
	maxNginxParts      = 64
	maxNginxExpansions = 100_000
)

// appendKey appends the key of other. It returns false if both have conditions on the same attribute.
func (p nginxPart) appendKey(other nginxPart) (nginxPart, bool) {
	for _, cond := range other.conds {
		if slices.ContainsFunc(p.conds, func(c condition) bool { return c.attribute == cond.attribute }) {
			return p, false
		}
	}
	for _, key := range other.keys {
		if !slices.Contains(p.keys, key) {
			p.keys = append(slices.Clone(p.keys), key)
		}
	}
	p.conds = slices.Concat(p.conds, other.conds)
	p.differences = slices.Concat(p.differences, other.differences)
	p.text += other.text
	p.always = p.always || other.always
	return p, true
}

func (c *nginxConfig) alternatives(name string, depth int) ([]nginxPart, error) {
	if v := c.vars[name]; v != nil {
		return c.cases(name, v, depth)
	}
	p, err := nginxAttribute(name)
	if err != nil {
		return nil, err
	}
	return []nginxPart{p}, nil
}

func nginxAttribute(name string) (nginxPart, error) {
	key := func(attribute string) nginxPart { return nginxPart{keys: []string{attribute}} }
	present := func(attribute string) nginxPart { return nginxPart{keys: []string{attribute}, always: true} }
	differ := func(p nginxPart, what, effect, remedy string) (nginxPart, error) {
		p.differences = []Difference{{"", what, effect, remedy}}
		return p, nil
	}
	dashed := func(prefix string) string { return strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", "-") }
	switch {
	case name == "binary_remote_addr" || name == "remote_addr":
		return present("ip:address"), nil
	case name == "http_x_forwarded_for" || name == "proxy_add_x_forwarded_for" || name == "http_x_real_ip" || name == "realip_remote_addr" || name == "proxy_protocol_addr":
		return differ(present("ip:address"), fmt.Sprintf("nginx uses $%s as it is, and a client can write that header.", name),
			"mete uses the client's address.", "Set trusted_proxies of mete to the addresses of your proxies.")
	case name == "host" || name == "http_host":
		return present("host"), nil
	case name == "server_name":
		return differ(present("host"), "$server_name is the first name of the server block.", "mete uses the host of the request, so each host of a server has its own bucket.", "")
	case name == "uri" || name == "document_uri":
		return present("path"), nil
	case name == "request_uri":
		return differ(present("path"), "$request_uri includes the query.", "mete uses the path without the query, so requests that differ in the query share a bucket.", "")
	case name == "request_method":
		return present("method"), nil
	case name == "remote_user":
		return differ(key("header:authorization"), "$remote_user is the user of basic authentication.", "mete uses the whole Authorization header.", "")
	case strings.HasPrefix(name, "http_"):
		return key("header:" + dashed("http_")), nil
	case strings.HasPrefix(name, "cookie_"):
		return key("cookie:" + strings.TrimPrefix(name, "cookie_")), nil
	case strings.HasPrefix(name, "arg_"):
		return key("query:" + strings.TrimPrefix(name, "arg_")), nil
	case name == "scheme" || name == "server_port" || name == "server_addr" || name == "server_protocol":
		return differ(nginxPart{text: name, always: true}, fmt.Sprintf("mete has no attribute for $%s.", name), "All values of it share a bucket.", "")
	}
	return nginxPart{}, fmt.Errorf("mete has no attribute for $%s", name)
}

func (c *nginxConfig) cases(name string, v *nginxVar, depth int) (parts []nginxPart, err error) {
	sources, err := c.expand(v.source, depth+1)
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		results, err := v.results(name, source)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			inner, err := c.expand(r.to, depth+1)
			if err != nil {
				return nil, err
			}
			for _, p := range inner {
				if p, ok := (nginxPart{conds: r.conds, differences: r.differences}).appendKey(p); ok {
					parts = append(parts, p)
				}
			}
		}
	}
	return parts, nil
}

// A nginxResult is a result of a map with its condition.
type nginxResult struct {
	to          string
	conds       []condition
	differences []Difference
}

func (v *nginxVar) results(name string, source nginxPart) (results []nginxResult, err error) {
	if len(source.keys) == 0 { // a constant, for example from another map
		to := v.other
		for _, e := range v.entries {
			if strings.EqualFold(e.from, source.text) {
				to = e.to
				break
			}
		}
		return []nginxResult{{to, source.conds, source.differences}}, nil
	}
	if len(source.keys) > 1 || source.text != "" || len(source.conds) > 0 {
		return nil, fmt.Errorf("the source of $%s is not one attribute", name)
	}
	attribute := source.keys[0]
	values, order := map[string][]string{}, []string{}
	var named []string // values with a result other than the default
	var differences []Difference
	for _, e := range v.entries {
		value, difference, err := v.entryValue(attribute, e.from)
		if err != nil {
			return nil, fmt.Errorf("%s of $%s: %w", e.from, name, err)
		}
		if difference != "" {
			differences = append(differences, Difference{What: difference, Effect: "mete compares exactly.", Remedy: "List all spellings in the match of the rule."})
		}
		if e.to == v.other {
			continue
		}
		if values[e.to] == nil {
			order = append(order, e.to)
		}
		values[e.to] = append(values[e.to], value)
		named = append(named, value)
	}
	if a, b, overlap := v.overlap(attribute); overlap {
		return nil, fmt.Errorf("%s and %s of $%s overlap and have different results", a, b, name)
	}
	for _, to := range order {
		cond, err := orMissing(condition{attribute, values[to], false})
		if err != nil {
			return nil, err
		}
		results = append(results, nginxResult{to, []condition{cond}, differences})
	}
	other := nginxResult{to: v.other, differences: differences}
	if len(named) > 0 {
		cond, err := orMissing(condition{attribute, named, true})
		if err != nil {
			return nil, err
		}
		other.conds = []condition{cond}
	}
	return append(results, other), nil
}

// orMissing returns a condition in which the empty value means that the attribute is absent. nginx uses the empty
// value for both.
func orMissing(c condition) (condition, error) {
	if !slices.Contains(c.values, "") {
		return c, nil
	}
	if len(c.values) > 1 {
		return c, fmt.Errorf("it depends on %s being empty or one of other values", c.attribute)
	}
	return condition{c.attribute, []string{"*"}, !c.negate}, nil
}

// overlap returns two entries with different results if one includes the other. A match cannot give one of
// them precedence.
func (v *nginxVar) overlap(attribute string) (a, b string, overlap bool) {
	for i, e := range v.entries {
		for j, other := range v.entries {
			if i == j || e.to == other.to {
				continue
			}
			wide, _, _ := v.entryValue(attribute, e.from)
			narrow, _, _ := v.entryValue(attribute, other.from)
			if includes(attribute, []string{wide}, narrow) {
				return e.from, other.from, true
			}
		}
	}
	return "", "", false
}

// entryValue returns the match value for an entry, and how the comparison differs.
func (v *nginxVar) entryValue(attribute, from string) (value, difference string, err error) {
	if v.geo || attribute == "ip:address" {
		if value = networkValue(from); value == "" {
			return "", "", errors.New("it is not an address or network")
		}
		return value, "", nil
	}
	if expr, ok := strings.CutPrefix(from, "~"); ok {
		literal, exact, ok := literalRegexp(expr)
		switch {
		case !ok:
			return "", "", errors.New("the policy language has no regular expressions")
		case exact:
			return literalValue(attribute, literal), "", nil
		}
		return literalValue(attribute, literal) + "*", "", nil
	}
	from = strings.TrimPrefix(from, `\`)
	if strings.Contains(from, "*") {
		return "", "", errors.New("it contains *, which mete would read as a wildcard")
	}
	if attribute != "host" && attribute != "method" && strings.ToLower(from) != strings.ToUpper(from) {
		difference = fmt.Sprintf("nginx compares the entry %q of a map in any case.", from)
	}
	return literalValue(attribute, from), difference, nil
}
