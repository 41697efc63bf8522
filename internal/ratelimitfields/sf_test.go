// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"fmt"
	"strconv"
	"strings"
)

// An sfItem is a string with integer parameters: all the RateLimit fields need.
type sfItem struct {
	name   string
	params map[string]int64
}

// parseList reads a structured-field list of strings with integer parameters as
// RFC 9651, 4.2.1 does, and refuses everything else.
func parseList(s string) (items []sfItem, err error) {
	for rest := strings.Trim(s, " "); ; {
		var it sfItem
		if it, rest, err = parseItem(rest); err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		items = append(items, it)
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return items, nil
		}
		if rest[0] != ',' {
			return nil, fmt.Errorf("%q: want a comma before %q", s, rest)
		}
		rest = strings.TrimLeft(rest[1:], " \t")
	}
}

func parseItem(s string) (it sfItem, rest string, err error) {
	if it.name, rest, err = parseString(s); err != nil {
		return it, "", err
	}
	it.params = map[string]int64{}
	for strings.HasPrefix(rest, ";") {
		rest = strings.TrimLeft(rest[1:], " ")
		n := 0
		for n < len(rest) && (rest[n] >= 'a' && rest[n] <= 'z' || n > 0 && (rest[n] >= '0' && rest[n] <= '9' || strings.IndexByte("_-.*", rest[n]) >= 0)) {
			n++
		}
		key := rest[:n]
		digits, ok := strings.CutPrefix(rest[n:], "=")
		if n == 0 || !ok {
			return it, "", fmt.Errorf("want a parameter at %q", rest)
		}
		n = 0
		for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
			n++
		}
		value, err := strconv.ParseInt(digits[:n], 10, 64)
		if err != nil || n > 15 {
			return it, "", fmt.Errorf("want an integer of at most 15 digits at %q", digits)
		}
		if _, twice := it.params[key]; twice {
			return it, "", fmt.Errorf("parameter %s occurs twice", key)
		}
		it.params[key], rest = value, digits[n:]
	}
	return it, rest, nil
}

func parseString(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		return "", "", fmt.Errorf("want a string at %q", s)
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return value, s[i+1:], nil
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", fmt.Errorf("bad escape in %q", s)
			}
		case c < 0x20 || c > 0x7e:
			return "", "", fmt.Errorf("byte %#x in %q", c, s)
		}
		value += string(s[i])
	}
	return "", "", fmt.Errorf("string %q is not closed", s)
}
