// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete"
)

// deciders returns the names of the deciding rule and of its limit if the names differ.
func deciders(d *mete.Decision) []string {
	if d.Rule == "" {
		return nil
	}
	if s := d.Decider(); s != nil && s.Limit.Name != d.Rule {
		return []string{d.Rule, s.Limit.Name}
	}
	return []string{d.Rule}
}

func wouldDeny(d *mete.Decision) (names []string) {
	for i := range d.Shadow {
		if s := &d.Shadow[i]; !s.Allowed && !slices.Contains(names, s.Rule.Name) {
			names = append(names, s.Rule.Name)
		}
	}
	return names
}

func appliedRules(d *mete.Decision) (names []string) {
	for i := range d.Limits() {
		if name := d.Limits()[i].Rule.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if d.RefusingRule() != nil {
		names = append(names, d.Rule)
	}
	return names
}

func overrideIDs(d *mete.Decision) (ids []string) {
	if d.Override != nil {
		ids = append(ids, d.Override.ID)
	}
	for i := range d.Limits() {
		if o := d.Limits()[i].Limit.Override; o != nil && !slices.Contains(ids, o.ID) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// isChangedBy reports whether an override changed the decision. "" means no override.
func isChangedBy(d *mete.Decision, id string) bool {
	ids := overrideIDs(d)
	return id == "" && len(ids) == 0 || slices.Contains(ids, id)
}

func activeShares(d *mete.Decision) (shares []string) {
	for i := range d.Limits() {
		if s := d.Limits()[i].Stage(); s != nil && !slices.Contains(shares, s.Share) {
			shares = append(shares, s.Share)
		}
	}
	return shares
}

// inStage reports whether the stage with a share is active. "" means no stage.
func inStage(d *mete.Decision, share string) bool {
	shares := activeShares(d)
	return share == "" && len(shares) == 0 || slices.Contains(shares, share)
}

func sameNames(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}

func listNames(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

func describe(d *mete.Decision) string {
	s := d.Decider()
	switch {
	case d.Allowed && d.Override != nil:
		return "allowed by override " + d.Override.ID
	case d.Allowed && s == nil:
		return "allowed, because no enforced rule applies"
	case d.Allowed:
		text := fmt.Sprintf("allowed by %s, with %v left", s.Limit.Name, s.Room())
		if d.Wait > 0 {
			text += ", after a wait of " + formatDuration(d.Wait)
		}
		return text
	case d.Override != nil:
		return fmt.Sprintf("denied by override %s (%s)", d.Override.ID, d.Reason)
	case s == nil:
		return fmt.Sprintf("denied by %s (%s)", d.Rule, d.Reason)
	}
	return fmt.Sprintf("denied by %s (%s), retry after %s", s.Limit.Name, d.Reason, formatDuration(d.RetryAfter))
}
