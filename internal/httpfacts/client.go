// SPDX-License-Identifier: Apache-2.0

package httpfacts

import "github.com/metehq/mete"

// Client returns what tells apart the clients that d is told to: the address,
// and what the rule that decided keys by. It is for spreading those that have
// to wait: the key alone would send all who share a bucket back at once, the
// address alone all who are behind one proxy.
func (f *Facts) Client(d *mete.Decision) []string {
	address, _ := f.Address()
	parts := []string{address}
	if decider := d.Decider(); decider != nil {
		for _, a := range decider.Rule.LimitKeys {
			value, _ := f.Lookup(a)
			parts = append(parts, value)
		}
	}
	return parts
}
