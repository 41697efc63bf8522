// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/metehq/mete/internal/spell"
	"github.com/metehq/mete/policy"
)

// maxPatternRunes bounds a key_pattern, as the type of its column does.
const maxPatternRunes = 128

// A pattern is what a key_pattern says.
type pattern struct {
	keys  []string  // attributes, in order: requests with equal values share a bucket
	match []literal // attributes that must have a value
}

// A literal is a label and a value: endpoint:/api/search.
type literal struct{ attribute, value string }

// A vocabulary are the names that stand for attributes: the rows of
// rate_limit_attribute.
type vocabulary map[string]string

// A patternError says what is wrong with a pattern, and what to write instead.
type patternError struct{ reason, hint string }

// parsePattern reads a key_pattern: see the package documentation. Of "custom" it
// returns nothing.
func (v vocabulary) parsePattern(s string) (p pattern, wrong *patternError) {
	if s == patternGlobal || s == patternCustom {
		return p, nil
	}
	for rest, more := s, true; more; {
		var part string
		if part, rest, more, wrong = cutPart(rest); wrong != nil {
			return p, wrong
		}
		label, value, labeled := strings.Cut(part, ":")
		switch {
		case strings.HasPrefix(part, "{"):
			wrong = v.placeholder(&p, part)
		case !labeled || !isLabel(label):
			return p, &patternError{fmt.Sprintf("%q is neither {ATTRIBUTE} nor LABEL:VALUE", part),
				"as in user:{user_id}, endpoint:/api/search, tenant:{tenant}:user:{user_id} or global"}
		case strings.HasPrefix(value, "{"):
			wrong = v.placeholder(&p, value) // the label is for people
		default:
			wrong = v.literal(&p, label, value)
		}
		if wrong != nil {
			return p, wrong
		}
	}
	return p, nil
}

// cutPart returns the first part of a pattern, with its label, and what follows the
// colon behind it.
func cutPart(s string) (part, rest string, more bool, wrong *patternError) {
	end := 0
	if !strings.HasPrefix(s, "{") {
		if end = strings.IndexByte(s, ':') + 1; end == 0 {
			return s, "", false, nil
		}
	}
	if strings.HasPrefix(s[end:], "{") {
		length := strings.IndexByte(s[end:], '}') + 1
		if length == 0 {
			return "", "", false, &patternError{fmt.Sprintf("%q has no closing brace", s[end:]), ""}
		}
		if end += length; end < len(s) && s[end] != ':' {
			return "", "", false, &patternError{fmt.Sprintf("a colon is missing before %q", s[end:]), ""}
		}
	} else if length := strings.IndexByte(s[end:], ':'); length >= 0 {
		end += length
	} else {
		end = len(s)
	}
	part, rest, more = s[:end], "", end < len(s)
	if more {
		rest = s[end+1:]
	}
	return part, rest, more, nil
}

// placeholder reads {name}.
func (v vocabulary) placeholder(p *pattern, braced string) *patternError {
	a, wrong := v.attribute(braced[1 : len(braced)-1])
	if wrong == nil {
		p.keys = append(p.keys, a)
	}
	return wrong
}

// literal reads label:value.
func (v vocabulary) literal(p *pattern, label, value string) *patternError {
	if !isLiteral(value) {
		return &patternError{fmt.Sprintf("%q is no value: it is empty or has a space or a brace", value), "say it in spec.match"}
	}
	a, wrong := v.attribute(label)
	if wrong != nil {
		return wrong
	}
	p.match = append(p.match, literal{a, value})
	return nil
}

// attribute returns what a name of a pattern stands for: a row of
// rate_limit_attribute, or an attribute of the policy language. One that only an
// embedding program knows must say so, or else every slip of the pen would be one.
func (v vocabulary) attribute(name string) (string, *patternError) {
	if a, ok := v[name]; ok {
		return a, nil
	}
	rest, custom := strings.CutPrefix(name, "attribute:")
	a, err := policy.ParseAttribute(rest)
	switch {
	case err == nil && (custom || a.Source != policy.SourceCustom):
		return a.Spelled(), nil
	case custom || err != nil && strings.Contains(name, ":"):
		return "", &patternError{strings.TrimPrefix(err.Error(), policy.ErrAttribute.Error()+": "), ""}
	}
	known := append(slices.Sorted(maps.Keys(v)), "method", "path", "host")
	hint := fmt.Sprintf("insert it into %s, or write an attribute such as {header:x-user} or {attribute:%s}", attributeTable, name)
	if near := spell.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return "", &patternError{fmt.Sprintf("%q stands for no attribute", name), hint}
}

// isLabel reports whether s can be a label, or a name in rate_limit_attribute.
func isLabel(s string) bool {
	if s == "" || len(s) > 32 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// isLiteral reports whether a value can stand in a pattern.
func isLiteral(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return strings.ContainsRune(":{}", c) || unicode.IsSpace(c) || !unicode.IsGraphic(c)
	}) < 0
}
