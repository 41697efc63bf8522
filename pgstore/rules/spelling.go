// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/policy"
)

// spellings are the words for attributes in patterns that mete writes itself, where
// the vocabulary gives them that meaning.
var spellings = []struct{ label, name string }{
	{"user", "user_id"}, {"ip", "ip"}, {"endpoint", "path"}, {"tenant", "tenant"}, {"api_key", "api_key"},
}

// spell writes limit_keys, and the value of path that requests must have, as a
// key_pattern with its scope. Where there is no pattern for the keys, it is custom;
// where there is none for the path, taken is false.
func (v vocabulary) spell(keys []string, path string) (text, scope string, taken bool) {
	var labels, parts []string
	taken = path != "" && isLiteral(path) && v["endpoint"] == "path"
	if taken {
		labels, parts = append(labels, ScopeEndpoint), append(parts, "endpoint:"+path)
	}
	for _, key := range keys {
		label, name := v.placeholderFor(key)
		if label != "" {
			name = label + ":" + name
		}
		labels, parts = append(labels, label), append(parts, name)
	}
	if len(parts) == 0 {
		return patternGlobal, ScopeGlobal, false
	}
	text = strings.Join(parts, ":")
	p, wrong := v.parsePattern(text)
	same := wrong == nil && len(p.keys) == len(keys) && utf8.RuneCountInString(text) <= maxPatternRunes
	for i := range keys {
		same = same && p.keys[i] == keys[i]
	}
	switch {
	case same:
		return text, scopeOf(labels), taken
	case taken: // the path may be what does not fit
		return v.spell(keys, "")
	}
	return patternCustom, ScopeCustom, false
}

// placeholderFor returns how a pattern names an attribute: the label, which may be
// empty, and the name in braces.
func (v vocabulary) placeholderFor(attribute string) (label, braced string) {
	for _, s := range spellings {
		if a, wrong := v.attribute(s.name); wrong == nil && a == attribute {
			return s.label, "{" + s.name + "}"
		}
	}
	if a, err := policy.ParseAttribute(attribute); err == nil {
		switch a.Source {
		case policy.SourceCustom:
			return "", "{attribute:" + attribute + "}"
		case policy.SourceIP:
			label = ScopeIP
		}
	}
	return label, "{" + attribute + "}"
}

// scopeOf returns the scope of a pattern with these labels.
func scopeOf(labels []string) string {
	if len(labels) == 1 {
		switch labels[0] {
		case ScopeUser, ScopeEndpoint, ScopeIP:
			return labels[0]
		}
	}
	return ScopeCustom
}

// labelsOf returns the labels of a pattern's parts, as far as they can be read.
func labelsOf(text string) (labels []string) {
	for rest, more := text, true; more; {
		part, next, again, wrong := cutPart(rest)
		if wrong != nil {
			return labels
		}
		label, _, _ := strings.Cut(part, ":")
		if strings.HasPrefix(part, "{") {
			label = ""
		}
		labels, rest, more = append(labels, label), next, again
	}
	return labels
}

// ScopeFor returns the scope that a key_pattern has unless something else is said.
func ScopeFor(keyPattern string) string {
	if keyPattern == patternGlobal {
		return ScopeGlobal
	}
	return scopeOf(labelsOf(keyPattern))
}
