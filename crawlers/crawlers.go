// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/metehq/mete/policy"
)

//go:embed patterns.txt
var patterns string

// Find returns the value of ua:bot for a user agent: true or false. It has no value for other attributes. It fits the field Find
// of [policy.Facts].
func Find(a policy.Attribute, userAgent string) (value string, ok bool) {
	switch {
	case a.Source != policy.SourceAgent || a.Name != "bot":
		return "", false
	case IsCrawler(userAgent):
		return "true", true
	}
	return "false", true
}

// IsCrawler reports whether a user agent belongs to a known robot. Its time is linear in the length of the user agent.
// The first call compiles the patterns in some milliseconds.
func IsCrawler(userAgent string) bool { return compiled().match(userAgent) }

var compiled = sync.OnceValue(func() *list {
	l, err := newList(strings.Split(strings.TrimSuffix(patterns, "\n"), "\n"))
	if err != nil {
		panic(err) // the patterns are part of the program, and TestPatterns compiles them
	}
	return l
})
