// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/metehq/mete/internal/parse"
)

// ParseOverride parses an [Override] in the JSON form of policy files. It reports unknown and duplicate fields and
// fields of the wrong type, as [Errors]. [Matcher.WithOverrides] checks the rest.
func ParseOverride(data []byte) (o Override, err error) {
	c := newCompiler(&Matcher{}, time.Time{})
	root := c.Parse(data, MaxFileBytes)
	if root == nil {
		return o, c.errors()
	}
	if obj := c.Object(root, overrideTable); obj != nil {
		for _, name := range []string{"id", "action", "key", "algorithm", "reason", "author"} {
			if f := obj.Field(name); f != nil && f.Kind != parse.KindText {
				c.Add(f, name+" must be text", "")
			}
		}
		if f := obj.Field("rules"); f != nil {
			list, _ := c.Items(f, "rules", false, MaxRules)
			for _, n := range list {
				if n.Kind != parse.KindText {
					c.Add(n, "rules must be names", "")
				}
			}
		}
		c.checkForms(obj, nil, inOverride)
		c.Instant(obj.Field("created_at"), "created_at")
		c.Instant(obj.Field("expires_at"), "expires_at")
	}
	if err := c.errors(); err != nil {
		return o, err
	}
	if err := json.Unmarshal(moveOwnLimit(root).AppendJSON(nil), &o); err != nil {
		return Override{}, Errors{{Reason: fmt.Sprintf("not an override: %v", err)}}
	}
	return o, nil
}
