// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"
)

func apisixMatch(route node) (match map[string]any, reason string) {
	match = map[string]any{}
	for _, name := range []string{"vars", "filter_func", "script"} {
		if route.field(name).exists {
			return nil, fmt.Sprintf("has %s.", name)
		}
	}
	var paths []string
	for _, path := range slices.Concat(route.field("uri").texts(), route.field("uris").texts()) {
		prefix, wildcard := strings.CutSuffix(path, "*")
		switch {
		case strings.Contains(prefix, "*") || strings.Contains(path, ":"):
			return nil, "has a path with parameters."
		case wildcard && (prefix == "/" || prefix == ""):
			paths = append(paths, "*")
		case wildcard:
			paths = append(paths, pathValue(prefix)+"*")
		default:
			paths = append(paths, pathValue(path))
		}
	}
	if len(paths) > 0 && !slices.Contains(paths, "*") {
		match["path"] = oneOrMore(paths)
	}
	hosts := slices.Concat(route.field("host").texts(), route.field("hosts").texts())
	for i, host := range hosts {
		if !isHostPattern(host) {
			return nil, "has a wildcard within its host."
		}
		hosts[i] = strings.ToLower(host)
	}
	if len(hosts) > 0 {
		match["host"] = oneOrMore(hosts)
	}
	if methods := route.field("methods").texts(); len(methods) > 0 {
		match["method"] = oneOrMore(methods)
	}
	if addresses := slices.Concat(route.field("remote_addr").texts(), route.field("remote_addrs").texts()); len(addresses) > 0 {
		match["ip:address"] = oneOrMore(addresses)
	}
	return match, ""
}

// isHostPattern reports whether a policy can match a host, which may have a star instead of its first or last labels.
func isHostPattern(host string) bool {
	name := strings.TrimPrefix(host, "*.")
	if name == host {
		name = strings.TrimSuffix(host, ".*") + "."
	}
	return !strings.Contains(name, "*")
}

var apisixVariables = map[string]string{
	"remote_addr": "ip:address", "consumer_name": kongConsumer, "uri": "path", "host": "host", "request_method": "method",
}

func apisixAttribute(variable string) string {
	if attribute, ok := apisixVariables[variable]; ok {
		return attribute
	}
	for _, source := range []struct{ prefix, attribute string }{{"http_", "header:"}, {"arg_", "query:"}, {"cookie_", "cookie:"}} {
		if name, ok := strings.CutPrefix(variable, source.prefix); ok && name != "" {
			if source.prefix == "http_" {
				name = strings.ReplaceAll(name, "_", "-")
			}
			return source.attribute + name
		}
	}
	return ""
}

// addWithKey adds a rule with the key of a plugin. APISIX counts by address if the key of a request is empty, so
// most plugins become two tiers. addWithKey returns false if mete cannot express the key.
func (f *apisixFile) addWithKey(n node, rule *Rule) bool {
	key := n.field("key").text()
	if key == "" {
		key = "remote_addr"
	}
	var variables []string
	switch n.field("key_type").text() {
	case "constant":
	case "var_combination":
		for _, word := range strings.Fields(key) {
			variables = append(variables, strings.TrimPrefix(word, "$"))
		}
	default:
		variables = []string{key}
	}
	rule.LimitKeys = []string{}
	for _, variable := range variables {
		attribute := apisixAttribute(variable)
		if attribute == "" {
			f.Differ(n.position(), fmt.Sprintf("The plugin %s counts by the variable %s.", n.key, variable), "mete has no rule for it.", "Write a rule with an attribute that has its value.")
			return false
		}
		rule.LimitKeys = append(rule.LimitKeys, attribute)
	}
	if len(variables) > 1 && !slices.Equal(rule.LimitKeys, []string{"ip:address"}) {
		rule.OnMissing = "empty"
		f.Differ(n.position(), "A combination of variables that are all empty is counted by address.", "mete counts such requests in one bucket.", "")
	}
	f.add(n, *rule)
	if len(rule.LimitKeys) != 1 {
		return true
	}
	attribute := rule.LimitKeys[0]
	if attribute == kongConsumer {
		f.consumersDiffer(n)
	}
	_, fixed := rule.Match[attribute].(string)
	if always := slices.Contains([]string{"ip:address", "path", "method"}, attribute); !always && !fixed {
		f.add(n, byAddress(f.Rules, *rule, attribute))
	}
	return true
}

func (f *apisixFile) add(n node, rule Rule) {
	rule.Name = ruleName(f.Rules, rule.Name)
	f.Rules = append(f.Rules, rule)
	if slices.Contains(rule.LimitKeys, "ip:address") {
		addressDiffers(&f.Result, n.doc.file, "APISIX")
	}
}
