// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import "strings"

// A listItem is a member of a structured-field list with its parameters. The parser is more lenient than RFC
// 9651: unquoted words may contain anything except separators.
type listItem struct {
	value  string
	params []param
}

type param struct{ name, value string }

// Bounds of a list. Longer lists are invalid.
const (
	maxListItems = 64
	maxParams    = 16
)

func (i *listItem) int(names ...string) (int64, bool) {
	for _, name := range names {
		for _, p := range i.params {
			if p.name != name {
				continue
			}
			if n, ok := parseSeconds(p.value); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// parseList parses a list such as "a";q=1;w=2, "b";q=3.
func parseList(text string) ([]listItem, bool) {
	var items []listItem
	for rest := strings.Trim(text, " \t"); rest != ""; {
		if len(items) == maxListItems {
			return nil, false
		}
		var item listItem
		var ok bool
		if item.value, rest, ok = parseBare(rest); !ok {
			return nil, false
		}
		for strings.HasPrefix(rest, ";") {
			var p string
			if p, rest, ok = parseBare(strings.TrimLeft(rest[1:], " \t")); !ok || len(item.params) == maxParams {
				return nil, false
			}
			name, value, _ := strings.Cut(p, "=")
			item.params = append(item.params, param{name, value})
		}
		items = append(items, item)
		if rest = strings.TrimLeft(rest, " \t"); rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, false
		}
		if rest = strings.TrimLeft(rest[1:], " \t,"); rest == "" {
			break // trailing comma
		}
	}
	return items, true
}

func parseBare(text string) (value, rest string, ok bool) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < ' ' && c != '\t' || c >= 0x7f:
			return "", "", false
		case quoted && c == '\\':
			if i++; i == len(text) {
				return "", "", false
			}
			b.WriteByte(text[i])
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ';'):
			return strings.TrimRight(b.String(), " \t"), text[i:], true
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimRight(b.String(), " \t"), "", !quoted
}
