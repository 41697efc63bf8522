// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"time"
)

// ParseOverride reads an [Override] in JSON, as it stands in a policy file. Every
// field that is unknown or given twice, or of another type, is reported: the error
// is an [Errors]. Whether it makes sense is for [Matcher.WithOverrides] to say.
func ParseOverride(data []byte) (o Override, err error) {
	c := newCompiler(&Matcher{}, time.Time{})
	root := c.parse(data)
	if root == nil {
		return o, c.errors()
	}
	if obj := c.object(root, overrideSchema); obj != nil {
		for _, name := range []string{"id", "action", "key", "algorithm", "reason", "author"} {
			if f := obj.field(name); f != nil && f.kind != isText {
				c.add(f, name+" must be text", "")
			}
		}
		if f := obj.field("rules"); f != nil {
			list, _ := c.list(f, "rules", false, MaxRules)
			for _, n := range list {
				if n.kind != isText {
					c.add(n, "rules must be names", "")
				}
			}
		}
		c.instant(obj.field("created_at"), "created_at")
		c.instant(obj.field("expires_at"), "expires_at")
	}
	if err := c.errors(); err != nil {
		return o, err
	}
	if err := json.Unmarshal(root.appendJSON(nil), &o); err != nil {
		return Override{}, Errors{{Reason: fmt.Sprintf("not an override: %v", err)}}
	}
	return o, nil
}
