// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A haproxyTerm is the body of an ACL or of braces in a condition: a fetch, flags and values.
type haproxyTerm struct {
	fetch, arg string
	ignoreCase bool
	method     string // -m
	operator   string // for numbers: gt, ge, …
	values     []string
	problem    string
}

type haproxyRate struct {
	counter string // of sc_http_req_rate; "" for src_http_req_rate
	table   string
	most    int64 // highest rate that passes
}

// A haproxyCase is an alternative of a condition: clauses that must hold, and a rate.
type haproxyCase struct {
	conds       []condition
	rate        *haproxyRate
	differences []Difference // without a place
}

const maxHaproxyCases = 64

var haproxyRateFetch = regexp.MustCompile(`^(sc([0-9])?|src)_http_req_rate$`)

var haproxyCounter = regexp.MustCompile(`(^|,)(sc[0-9]?|src|table)_(\w+_(rate|cur|cnt)|\w*gp[ct]\w*)`)

// isHaproxyRate reports whether a word fetches a count of requests or connections.
func isHaproxyRate(word string) bool { return haproxyCounter.MatchString(word) }

var haproxyFetch = regexp.MustCompile(`^([\w.+-]+)(?:\(([^)]*)\))?(?:,(.*))?$`)

// splitFetch splits a fetch such as req.hdr(host,-1),lower into its name, argument and converters.
func splitFetch(text string) (name, arg, converters string) {
	if found := haproxyFetch.FindStringSubmatch(text); found != nil {
		return found[1], found[2], found[3]
	}
	return text, "", ""
}

func parseHaproxyTerm(words []string) (t haproxyTerm) {
	var converters string
	t.fetch, t.arg, converters = splitFetch(words[0])
	if converters != "" && converters != "lower" {
		t.problem = fmt.Sprintf("it converts %s with %s", t.fetch, converters)
	}
	t.ignoreCase = converters == "lower"
	words = words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		flag := words[0]
		words = words[1:]
		switch {
		case flag == "-i":
			t.ignoreCase = true
		case flag == "-m" && len(words) > 0:
			t.method, words = words[0], words[1:]
		case flag == "--":
			t.values = words
			return t
		default:
			t.problem = "it has the flag " + flag
			return t
		}
	}
	if len(words) > 0 && slices.Contains([]string{"eq", "ge", "gt", "le", "lt"}, words[0]) {
		t.operator, words = words[0], words[1:]
	}
	t.values = words
	return t
}

func (c *haproxyConfig) resolve(p *haproxyProxy, words []string) (all []string) {
	for _, word := range words {
		all = append(all, word)
		for _, term := range p.acls[strings.TrimLeft(word, "!")] {
			all = append(all, term.fetch)
		}
	}
	return all
}

func (c *haproxyConfig) conditions(p *haproxyProxy, words []string, negated bool) ([]haproxyCase, error) {
	if len(words) == 0 {
		return []haproxyCase{{}}, nil
	}
	var cases []haproxyCase
	current := []haproxyCase{{}}
	terms := 0
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "or" || word == "||" {
			cases, current, terms = append(cases, current...), []haproxyCase{{}}, 0
			continue
		}
		negate := negated
		for strings.HasPrefix(word, "!") {
			word, negate = word[1:], !negate
			if word == "" && i+1 < len(words) {
				i++
				word = words[i]
			}
		}
		var alternatives []haproxyTerm
		if word == "{" {
			end := slices.Index(words[i:], "}")
			if end < 2 {
				return nil, errors.New("a brace is not closed")
			}
			alternatives = []haproxyTerm{parseHaproxyTerm(words[i+1 : i+end])}
			i += end
		} else {
			alternatives = p.acls[word]
			if alternatives == nil {
				alternatives = haproxyPredefined(word)
			}
			if alternatives == nil {
				return nil, fmt.Errorf("unknown acl %q", word)
			}
		}
		terms++
		if negated && terms > 1 {
			return nil, errors.New("unless with several terms has alternatives")
		}
		next, err := addTerm(current, alternatives, negate)
		if err != nil {
			return nil, err
		}
		current = next
	}
	if negated && len(cases) > 0 {
		return nil, errors.New("unless with alternatives")
	}
	if cases = append(cases, current...); len(cases) > maxHaproxyCases {
		return nil, fmt.Errorf("it has more than %d alternatives", maxHaproxyCases)
	}
	return cases, nil
}

// addTerm adds a term to each case. The term holds if any of alternatives holds.
func addTerm(cases []haproxyCase, alternatives []haproxyTerm, negate bool) ([]haproxyCase, error) {
	var merged []haproxyCase // one case per alternative
	for _, t := range alternatives {
		one, err := t.compile(negate)
		if err != nil {
			return nil, err
		}
		switch last := len(merged) - 1; {
		case negate && last >= 0: // none of them
			merged[0].conds = append(merged[0].conds, one.conds...)
			merged[0].differences = append(merged[0].differences, one.differences...)
		case last >= 0 && merged[last].rate == nil && one.rate == nil && merged[last].conds[0].attribute == one.conds[0].attribute &&
			merged[last].conds[0].negate == one.conds[0].negate && !one.conds[0].negate:
			merged[last].conds[0].values = append(merged[last].conds[0].values, one.conds[0].values...)
		default:
			merged = append(merged, one)
		}
	}
	var product []haproxyCase
	for _, left := range cases {
		for _, right := range merged {
			if left.rate != nil && right.rate != nil {
				return nil, errors.New("it compares two rates")
			}
			both := haproxyCase{slices.Concat(left.conds, right.conds), left.rate, slices.Concat(left.differences, right.differences)}
			if right.rate != nil {
				both.rate = right.rate
			}
			product = append(product, both)
		}
	}
	if len(product) > maxHaproxyCases {
		return nil, fmt.Errorf("it has more than %d alternatives", maxHaproxyCases)
	}
	return product, nil
}

func haproxyPredefined(name string) []haproxyTerm {
	if method, ok := strings.CutPrefix(name, "METH_"); ok {
		values := []string{method}
		if method == "GET" {
			values = []string{"GET", "HEAD"}
		}
		return []haproxyTerm{{fetch: "method", values: values}}
	}
	if name == "LOCALHOST" {
		return []haproxyTerm{{fetch: "src", values: []string{"127.0.0.0/8", "::1"}}}
	}
	return nil
}

func (t haproxyTerm) compile(negate bool) (haproxyCase, error) {
	if t.problem != "" {
		return haproxyCase{}, errors.New(t.problem)
	}
	if isHaproxyRate(t.fetch) {
		rate, err := t.rate(negate)
		return haproxyCase{rate: rate}, err
	}
	attribute, method, err := t.attribute()
	if err != nil {
		return haproxyCase{}, err
	}
	one := haproxyCase{conds: []condition{{attribute: attribute, negate: negate}}}
	if method == "found" || strings.HasSuffix(t.fetch, "_cnt") {
		one.conds[0].values = []string{"*"}
		return one, nil
	}
	for _, value := range t.values {
		text, err := haproxyValue(attribute, method, value)
		if err != nil {
			return haproxyCase{}, err
		}
		one.conds[0].values = append(one.conds[0].values, text)
	}
	if len(t.values) == 0 {
		return haproxyCase{}, fmt.Errorf("%s has no values", t.fetch)
	}
	if t.ignoreCase && attribute != "host" && attribute != "method" {
		one.differences = []Difference{{"", fmt.Sprintf("HAProxy compares %s with -i, in any case.", t.fetch), "mete compares exactly.", "List the spellings that your service takes."}}
	}
	return one, nil
}

func (t haproxyTerm) rate(negate bool) (*haproxyRate, error) {
	found := haproxyRateFetch.FindStringSubmatch(t.fetch)
	if found == nil {
		return nil, fmt.Errorf("mete counts requests and has no counterpart of %s", t.fetch)
	}
	if len(t.values) != 1 {
		return nil, fmt.Errorf("%s is compared with %d numbers", t.fetch, len(t.values))
	}
	n, err := strconv.ParseInt(t.values[0], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s is compared with %q", t.fetch, t.values[0])
	}
	r := &haproxyRate{counter: found[2]}
	args := strings.Split(t.arg, ",")
	switch {
	case found[1] == "src":
		r.table = t.arg
	case found[2] != "":
		r.table = t.arg
	default:
		r.counter = args[0]
		if len(args) > 1 {
			r.table = args[1]
		}
	}
	switch operator := t.operator; {
	case operator == "gt" && !negate, operator == "le" && negate:
		r.most = n
	case operator == "ge" && !negate, operator == "lt" && negate:
		r.most = n - 1
	default:
		return nil, fmt.Errorf("it denies requests below a rate, or at one")
	}
	return r, nil
}

// attribute returns the attribute for a fetch, and how its values are compared.
func (t haproxyTerm) attribute() (attribute, method string, err error) {
	fetch := strings.TrimPrefix(t.fetch, "req.")
	method = t.method
	for _, suffix := range []string{"_beg", "_end", "_sub", "_reg", "_dir", "_dom", "_len", "_str", "_sub", "_found", "_ip"} {
		if base, ok := strings.CutSuffix(fetch, suffix); ok && method == "" {
			fetch, method = base, suffix[1:]
		}
	}
	arg, _, _ := strings.Cut(t.arg, ",")
	switch fetch {
	case "path":
		return "path", method, nil
	case "method":
		return "method", method, nil
	case "src":
		return "ip:address", method, nil
	case "hdr", "fhdr", "hdr_cnt", "fhdr_cnt":
		if strings.EqualFold(arg, "host") {
			return "host", method, nil
		}
		return "header:" + strings.ToLower(arg), method, nil
	case "url_param", "urlp":
		return "query:" + arg, method, nil
	case "cook":
		return "cookie:" + arg, method, nil
	}
	return "", "", fmt.Errorf("mete has no attribute for %s", t.fetch)
}

func haproxyValue(attribute, method, value string) (string, error) {
	if attribute == "ip:address" {
		if text := networkValue(value); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("%q is not an address or network", value)
	}
	if attribute == "host" && method == "" || attribute == "host" && method == "str" {
		value, _, _ = strings.Cut(strings.ToLower(value), ":")
	}
	switch method {
	case "", "str":
		if strings.HasSuffix(value, "*") {
			return "", fmt.Errorf("%q ends in *, which mete would read as a wildcard", value)
		}
		return literalValue(attribute, value), nil
	case "beg":
		return literalValue(attribute, value) + "*", nil
	case "reg":
		literal, exact, ok := literalRegexp(value)
		if ok && exact {
			return literalValue(attribute, literal), nil
		}
		if ok {
			return literalValue(attribute, literal) + "*", nil
		}
	}
	return "", fmt.Errorf("the policy language compares whole values and beginnings, not %s", method)
}

func haproxyKey(source string) (keys []string, differences []Difference, err error) {
	name, arg, converter := splitFetch(source)
	arg, _, _ = strings.Cut(arg, ",")
	wide := Difference{"", "HAProxy counts each IPv6 address by itself.", "mete counts all addresses of a /64 as one client, because one client has a whole /64.",
		"Use ip:address/128 in limit_keys to count like HAProxy."}
	if mask, ok := strings.CutPrefix(converter, "ipmask("); ok && name == "src" {
		four, six, _ := strings.Cut(strings.TrimSuffix(mask, ")"), ",")
		if bits, err := strconv.Atoi(six); err == nil && four == "32" && bits > 0 && bits <= 128 {
			if bits == 64 {
				return []string{"ip:address"}, nil, nil
			}
			return []string{fmt.Sprintf("ip:address/%d", bits)}, nil, nil
		}
		return nil, nil, fmt.Errorf("mete always counts a whole IPv4 address")
	}
	if converter != "" && converter != "lower" {
		return nil, nil, fmt.Errorf("it converts %s with %s", name, converter)
	}
	switch strings.TrimPrefix(name, "req.") {
	case "src":
		return []string{"ip:address"}, []Difference{wide}, nil
	case "hdr", "fhdr", "hdr_ip":
		switch lower := strings.ToLower(arg); {
		case lower == "host":
			return []string{"host"}, nil, nil
		case lower == "x-forwarded-for" || name == "hdr_ip" || name == "req.hdr_ip":
			return []string{"ip:address"}, []Difference{wide, {"", fmt.Sprintf("HAProxy uses the header %s, which a client can write.", arg),
				"mete uses the client's address.", "Set trusted_proxies of mete to the addresses of your proxies."}}, nil
		default:
			return []string{"header:" + lower}, nil, nil
		}
	case "url_param", "urlp":
		return []string{"query:" + arg}, nil, nil
	case "cook":
		return []string{"cookie:" + arg}, nil, nil
	case "path":
		return []string{"path"}, nil, nil
	case "url":
		return []string{"path"}, []Difference{{"", "url includes the query.", "mete uses the path, so requests that differ in the query share a bucket.", ""}}, nil
	case "method":
		return []string{"method"}, nil, nil
	case "base", "base32":
		return []string{"host", "path"}, nil, nil
	case "base32+src":
		return []string{"host", "path", "ip:address"}, []Difference{wide}, nil
	case "url32+src":
		return []string{"host", "path", "ip:address"}, []Difference{wide, {"", "url32 includes the query.", "mete uses the path, so requests that differ in the query share a bucket.", ""}}, nil
	case "int", "bool", "str", "always_true", "dst", "dst_port", "fe_id", "be_id":
		return []string{}, nil, nil
	}
	return nil, nil, fmt.Errorf("mete has no attribute for %s", name)
}
