// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

// checkTemplates finds path templates that another value of the same list contains.
func (l *linter) checkTemplates() {
	for _, d := range l.all {
		for i := range d.view.Alternatives {
			for _, c := range d.view.Alternatives[i].Clauses {
				if !l.checkTemplatesOf(d, &c) {
					return
				}
			}
		}
	}
}

// checkTemplatesOf returns false if no more values may be compared.
func (l *linter) checkTemplatesOf(d *rule, c *inspect.Clause) bool {
	for i, t := range c.Templates {
		set, by := space.WithTemplate(t), ""
		for _, p := range c.Prefixes {
			if !l.countLook() {
				return false
			}
			if set.Within(space.WithPrefix(p)) {
				by = p + "*"
			}
		}
		for j, u := range c.Templates {
			if !l.countLook() {
				return false
			}
			if other := space.WithTemplate(u); j != i && set.Within(other) && (j < i || !other.Within(set)) {
				by = u.String()
			}
		}
		if by != "" {
			l.warn(d.Path, "idle-template", fmt.Sprintf("the template %q of rule %q matches only paths that %q matches", t, d.Name, by), "remove it")
		}
	}
	return true
}
