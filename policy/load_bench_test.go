// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// hugeFiles are files with [policy.MaxRules] rules over 1000 paths and hosts, as
// people, programs and consoles write them.
var hugeFiles = []struct {
	name string
	file func() string
}{
	{"matches", func() string { // one policy, whose rules all have a path and a host
		var rules []string
		for i := range policy.MaxRules {
			rules = append(rules, fmt.Sprintf(`{"name":"r%d","group":"g","limit_keys":["ip:address"],"match":{"path":"/v1/%d/*","host":"h%d.example"},`+
				`"algorithm_config":{"rps":%d,"burst":20}}`, i, i%1000, i/10, 1+i%7))
		}
		return `{"rules":[` + strings.Join(rules, ",") + `]}`
	}},
	{"selectors", func() string { // 1000 policies of ten tiers
		var policies []string
		for p := range policy.MaxRules / 10 {
			var rules []string
			for i := range 10 {
				rules = append(rules, fmt.Sprintf(`{"name":"p%d-%d","limit_keys":["header:x-api-key"],"match":{"jwt:plan":"plan-%d"},`+
					`"algorithm_config":{"rps":%d,"burst":20}}`, p, i, i, 1+i))
			}
			policies = append(policies, fmt.Sprintf(`{"id":"p%d","spec":{"selector":{"pathPrefix":"/v1/%d/","hosts":["h%d.example"]},"rules":[%s]}}`,
				p, p, p%100, strings.Join(rules, ",")))
		}
		return `{"bundle_version":1,"policies":[` + strings.Join(policies, ",") + `]}`
	}},
	{"lists", func() string { // lists of paths and of methods, and a rule for the rest
		var rules []string
		for i := range policy.MaxRules - 1 {
			rules = append(rules, fmt.Sprintf(`{"name":"r%d","limit_keys":["jwt:sub"],"match":{"path":["/a/%d","/b/%d","/c/%d/*"],"method":["GET","HEAD"]%s},`+
				`"algorithm_config":{"rps":%d,"burst":20}}`, i, i%1000, i%1000, i%1000, fmt.Sprintf(`,"host":["h%d.example","g%d.example"]`, i/1000, i/1000), 1+i%7))
		}
		rules = append(rules, `{"name":"rest","limit_keys":["jwt:sub"],"algorithm_config":{"rps":1,"burst":20}}`)
		return `{"rules":[` + strings.Join(rules, ",") + `]}`
	}},
}

func BenchmarkLoad10000(b *testing.B) {
	for _, bc := range hugeFiles {
		b.Run(bc.name, func(b *testing.B) {
			data := []byte(bc.file())
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Load(data, policy.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
