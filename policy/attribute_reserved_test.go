// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// Facts that mete does not know are errors in every place that names an attribute, with
// a hint at a header that a CDN sets. A kill switch on an unknown fact once blocked
// nothing.
func TestUnknownFacts(t *testing.T) {
	const (
		rules = `"rules": [{"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 5}}]`
		until = `"reason": "r", "author": "a", "expires_at": "2099-01-01T00:00:00Z"`
	)
	places := map[string]string{
		"limit_keys":  `{"rules": [{"name": "r", "limit_keys": ["FACT"], "algorithm_config": {"rps": 1, "burst": 5}}]}`,
		"match":       `{"rules": [{"name": "r", "limit_keys": [], "match": {"FACT": "x"}, "algorithm_config": {"rps": 1, "burst": 5}}]}`,
		"cost_source": `{"rules": [{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5, "cost_source": "attribute:FACT"}}]}`,
		"slot_by":     `{"slot_by": "FACT", ` + rules + `}`,
		"override":    `{` + rules + `, "overrides": [{"id": "o", "action": "block", "match": {"FACT": "x"}, ` + until + `}]}`,
		"kill switch": `{` + rules + `, "kill_switches": [{"scope_key": "FACT", "scope_value": "true", ` + until + `}]}`,
		"test":        `{` + rules + `, "tests": [{"name": "t", "request": {"FACT": "x"}, "expect": "allowed"}]}`,
	}
	for _, fact := range []string{"ip:type", "ip:city", "ip:org", "ua:bot_category", "UA:os", "geo:city", "time:hour", "response:status", "body:model", "tls:ja3"} {
		for place, text := range places {
			mistakes := mistakesIn([]byte(strings.ReplaceAll(text, "FACT", fact)))
			if len(mistakes) != 1 || mistakes[0].Hint == "" || mistakes[0].Path == "" || !strings.Contains(mistakes[0].Reason, "mete has no ") &&
				!strings.Contains(mistakes[0].Reason, "the attributes of the client's address are") && !strings.Contains(mistakes[0].Reason, "the only attribute of the user agent is") {
				t.Errorf("%s in %s: %v, want one mistake that says that mete does not know it", fact, place, mistakes)
			}
		}
		if _, err := policy.NormalizeAttribute(fact); !errors.Is(err, policy.ErrAttribute) {
			t.Errorf("Normalize(%s): %v, want an ErrAttribute", fact, err)
		}
	}
	for fact, hint := range map[string]string{"ip:type": "header:x-client-type", "geo:country": "ip:country", "ua:os": "header:x-bot-category", "ip:adress": "write ip:address"} {
		if _, err := policy.ParseAttribute(fact); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, want the hint %s", fact, err, hint)
		}
	}
	// Custom names are valid if they only begin with the letters of a reserved word.
	for _, own := range []string{"tenant", "user:id", "timezone", "uagroup:x", "geofence:id", "country", "bot"} {
		if a, err := policy.ParseAttribute(own); err != nil || a.Source != policy.SourceCustom {
			t.Errorf("%s: %v, %v; want a custom attribute", own, a, err)
		}
	}
}
