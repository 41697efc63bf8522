// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// traefikTerm matches the first matcher of a router's rule, such as PathPrefix(`/api`, `/v1`).
var traefikTerm = regexp.MustCompile("^\\s*([A-Za-z0-9]+)\\s*\\(\\s*((?:`[^`]*`|\"[^\"]*\"|[\\s,])*)\\)\\s*")

var traefikValue = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")

// traefikMatch returns the match for a router's rule. It supports matchers joined with &&. Each may be a list
// of matchers of one kind joined with ||. For other rules it returns a reason.
func traefikMatch(rule string) (match map[string]any, reason string) {
	match = map[string]any{}
	rest := rule
	for {
		attribute, values, after, reason := traefikClause(rest)
		if reason != "" {
			return nil, reason
		}
		if _, twice := match[attribute]; twice {
			return nil, fmt.Sprintf("has two conditions on %s.", attribute)
		}
		if !slices.Contains(values, "*") {
			match[attribute] = oneOrMore(values)
		} else if strings.HasPrefix(attribute, "header:") {
			match[attribute] = "*"
		}
		next, more := strings.CutPrefix(after, "&&")
		switch {
		case more:
			rest = next
		case strings.TrimSpace(after) == "":
			return match, ""
		default:
			return nil, "has a part that mete cannot express: " + strings.TrimSpace(after)
		}
	}
}

// traefikClause reads one clause: a matcher, or several joined with ||, in optional parentheses. It rejects a
// top-level || without parentheses next to other clauses, because && binds more tightly.
func traefikClause(text string) (attribute string, values []string, rest, reason string) {
	rest = strings.TrimSpace(text)
	inner, parentheses := strings.CutPrefix(rest, "(")
	if parentheses {
		rest = inner
	}
	for terms := 1; ; terms++ {
		m := traefikTerm.FindStringSubmatch(rest)
		if m == nil {
			return "", nil, "", "has a part that mete cannot express: " + rest
		}
		a, v, reason := traefikMatcher(m[1], m[2])
		switch {
		case reason != "":
			return "", nil, "", reason
		case attribute != "" && a != attribute:
			return "", nil, "", "joins different conditions with ||."
		}
		attribute, values, rest = a, append(values, v...), rest[len(m[0]):]
		if next, or := strings.CutPrefix(rest, "||"); or {
			rest = next
			continue
		}
		if parentheses {
			next, closed := strings.CutPrefix(rest, ")")
			if !closed {
				return "", nil, "", "has a part that mete cannot express: " + rest
			}
			rest = strings.TrimSpace(next)
		} else if terms > 1 && rest != "" {
			return "", nil, "", "joins different conditions with ||."
		}
		return attribute, values, rest, ""
	}
}

func traefikMatcher(name, arguments string) (attribute string, values []string, reason string) {
	var args []string
	for _, quoted := range traefikValue.FindAllString(arguments, -1) {
		args = append(args, quoted[1:len(quoted)-1])
	}
	if len(args) == 0 {
		return "", nil, fmt.Sprintf("has the matcher %s without a value.", name)
	}
	for _, arg := range args {
		switch name {
		case "Host":
			attribute, values = "host", append(values, strings.ToLower(arg))
		case "Path":
			attribute, values = "path", append(values, pathValue(arg))
		case "PathPrefix":
			if attribute = "path"; arg == "/" {
				values = append(values, "*") // all paths
			} else {
				values = append(values, pathValue(arg)+"*")
			}
		case "Method":
			attribute, values = "method", append(values, strings.ToUpper(arg))
		case "ClientIP":
			attribute, values = "ip:address", append(values, arg)
		case "Header", "Headers", "Query":
			if len(args) != 2 {
				return "", nil, fmt.Sprintf("has the matcher %s with %d values.", name, len(args))
			}
			source := "header:" + strings.ToLower(args[0])
			if name == "Query" {
				source = "query:" + args[0]
			}
			return source, []string{args[1]}, ""
		default:
			return "", nil, fmt.Sprintf("has the matcher %s, which mete cannot express.", name)
		}
	}
	if slices.ContainsFunc(args, func(arg string) bool { return strings.ContainsAny(arg, "{}") && attribute == "path" }) {
		return "", nil, "has a path template."
	}
	return attribute, values, ""
}
